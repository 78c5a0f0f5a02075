-- class: internal
-- caller: member
-- mode: readonly
-- must: what others have asked agents cannot be read through row security or views, with functions that look either
-- setup:
GRANT aidb_users TO guest;
SET ROLE guest;
CREATE FUNCTION guest.looks(jsonb) RETURNS boolean LANGUAGE plpgsql IMMUTABLE COST 0.0001 AS $f$ BEGIN RAISE EXCEPTION 'saw %', $1; END $f$;
CREATE FUNCTION guest.looks(text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE COST 0.0001 AS $f$ BEGIN RAISE EXCEPTION 'saw %', $1; END $f$;
RESET ROLE;
SELECT harness.tell('guest_reads', 'SELECT ''HUSH of postgres'' AS v');
-- before:
SELECT harness.tell('guest_reads', 'SELECT ''HUSH of clerk'' AS v')
-- attacks:
SELECT request_payload::text AS v FROM aidb_internal.action_log
SELECT count(*) AS n FROM aidb_internal.action_log WHERE guest.looks(request_payload)
SELECT payload::text AS v FROM aidb.conversation_log WHERE guest.looks(payload)
SELECT query_text FROM aidb.decisions WHERE guest.looks(query_text)
SELECT * FROM aidb.conversations
SELECT m.* FROM aidb_internal.action_log l, aidb.get_conversation(l.conversation_id::text) m
SELECT most_common_vals::text AS v FROM pg_stats WHERE tablename = 'action_log'
-- check:
SELECT judge.told() NOT LIKE '%HUSH%'
