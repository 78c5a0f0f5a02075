-- The words that a person confirms with in a reply (agents with confirm_replies). A reply is a yes only if all of it is
-- made of these, of one language, with a yes among them; there is no list of words that mean no.
--
--   yes      is a confirmation by itself
--   filler   may stand beside one ("please"), and is nothing alone
--
-- language '*' is for what is of no language: signs.
-- The words are written in ASCII, as JSON writes what is beyond it: this script must load into a database of any encoding. A
-- word that such a database cannot hold is none there.
CREATE OR REPLACE FUNCTION aidb_internal.spelled(word text)
RETURNS text
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN CASE WHEN strpos(word, chr(92)) = 0 THEN word ELSE ('["' || word || '"]')::jsonb ->> 0 END;
EXCEPTION
    WHEN OTHERS THEN RETURN NULL;
END
$$;
COMMENT ON FUNCTION aidb_internal.spelled(text) IS
    'A word with its escapes replaced; NULL when the database''s encoding does not have it.';
REVOKE ALL ON FUNCTION aidb_internal.spelled(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb_internal.spelled(text) TO aidb_users, aidb_governance;

CREATE OR REPLACE VIEW aidb.confirmation_words AS
SELECT w.language, w.word, w.kind
FROM (
    SELECT shipped.language, shipped.word, coalesce(c.kind, shipped.kind) AS kind
    FROM (
        SELECT s.language, aidb_internal.spelled(w.word) AS word, s.kind
        FROM (VALUES
            ('*', 'yes', ARRAY['\ud83d\udc4d', '\u2705', '\ud83d\udc4c', '\u2611', '\u2714', '\ud83c\udd97']),
            ('en', 'yes', ARRAY['yes', 'yep', 'yeah', 'yup', 'ok', 'okay', 'sure', 'confirm', 'confirmed', 'agreed', 'approve', 'approved',
                                'go ahead', 'do it', 'please do', 'go for it', 'of course', 'sounds good']),
            ('en', 'filler', ARRAY['please', 'thanks', 'thank you', 'absolutely', 'definitely', 'i', 'that is fine', 'that''s fine']),
            ('es', 'yes', ARRAY['s\u00ed', 'si', 'vale', 'adelante', 'confirmo', 'confirmado', 'de acuerdo', 'dale', 'claro', 'correcto', 'ok', 'okay',
                                'hazlo', 'h\u00e1galo', 'est\u00e1 bien', 'perfecto', 'por supuesto']),
            ('es', 'filler', ARRAY['por favor', 'gracias', 'muchas gracias', 'lo']),
            ('de', 'yes', ARRAY['ja', 'jawohl', 'okay', 'ok', 'einverstanden', 'best\u00e4tige', 'best\u00e4tigt', 'in ordnung', 'mach es', 'machen sie es',
                                'mach das', 'klar', 'gerne', 'passt', 'nat\u00fcrlich']),
            ('de', 'filler', ARRAY['bitte', 'danke', 'vielen dank', 'ich', 'das']),
            ('fr', 'yes', ARRAY['oui', 'ok', 'okay', 'd''accord', 'd\u2019accord', 'vas-y', 'allez-y', 'confirm\u00e9', 'je confirme', 'entendu', 'parfait',
                                'bien s\u00fbr', 'c''est bon', 'c\u2019est bon', 'ouais']),
            ('fr', 'filler', ARRAY['merci', 's''il vous pla\u00eet', 's\u2019il vous pla\u00eet', 's''il te pla\u00eet', 's\u2019il te pla\u00eet', 'stp', 'svp', 'beaucoup'])
        ) s (language, kind, words), unnest(s.words) w (word)
    ) shipped
    LEFT JOIN aidb_internal.confirmation_words c ON c.language = shipped.language AND c.word = shipped.word
    UNION
    SELECT c.language, c.word, c.kind FROM aidb_internal.confirmation_words c
) w
WHERE w.kind <> 'none' AND w.word IS NOT NULL;
COMMENT ON VIEW aidb.confirmation_words IS
    'The words that confirm a waiting action in a reply to an agent with confirm_replies. A reply confirms if it has at most six words, all of them are here under one language (or ''*''), and one of them is a yes; a question mark, quotation marks, a number or any other word make it no answer, and what waits is rejected. Privileges: SELECT for aidb_users and aidb_governance.';
COMMENT ON COLUMN aidb.confirmation_words.word IS 'A word or a phrase, in small letters.';
COMMENT ON COLUMN aidb.confirmation_words.kind IS 'yes: confirms. filler: may stand beside a yes.';
REVOKE ALL ON aidb.confirmation_words FROM PUBLIC;
GRANT SELECT ON aidb.confirmation_words TO aidb_users, aidb_governance;

CREATE OR REPLACE FUNCTION aidb_internal.set_confirmation_word(language text, word text, kind text)
RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
BEGIN
    IF aidb_internal.is_blank(language) OR octet_length(language) > 20 OR aidb_internal.is_blank(word) OR octet_length(word) > 100 THEN
        RAISE EXCEPTION 'language and word must not be empty, nor longer than 20 and 100 bytes' USING ERRCODE = 'invalid_parameter_value';
    ELSIF kind IS NULL OR kind NOT IN ('yes', 'filler', 'none') THEN
        RAISE EXCEPTION 'kind % is not one of yes, filler, none', aidb_internal.quoted(kind) USING ERRCODE = 'invalid_parameter_value';
    END IF;
    INSERT INTO aidb_internal.confirmation_words AS w (language, word, kind) VALUES (lower(language), lower(word), kind)
    ON CONFLICT ON CONSTRAINT confirmation_words_pkey DO UPDATE SET kind = excluded.kind;
END
$$;
COMMENT ON FUNCTION aidb_internal.set_confirmation_word(text, text, text) IS 'Behind aidb.set_confirmation_word.';
REVOKE ALL ON FUNCTION aidb_internal.set_confirmation_word(text, text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.set_confirmation_word(language text, word text, kind text DEFAULT 'yes')
RETURNS void
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.set_confirmation_word(text, text, text) IS
    'Adds a word or phrase to aidb.confirmation_words as a yes or a filler, or takes it away (none). Raises 22023 for anything else, and 42501 inside a tool call. Privileges: aidb_governance.';
REVOKE ALL ON FUNCTION aidb.set_confirmation_word(text, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.set_confirmation_word(text, text, text) TO aidb_governance;
