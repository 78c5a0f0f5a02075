-- Starting and reading conversations. These run with the owner's rights, to which row security does not apply, so each
-- says whose rows it shows: those of the caller with its principal, and everything for aidb_auditor.

CREATE OR REPLACE FUNCTION aidb_internal.start_agent_session(agent_name text)
RETURNS TABLE (conversation_id text)
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    IF aidb_internal.is_blank(agent_name) THEN
        RAISE EXCEPTION 'agent name must not be empty' USING ERRCODE = 'invalid_parameter_value';
    ELSIF NOT EXISTS (SELECT FROM aidb_internal.agents a WHERE a.name = agent_name) THEN
        RAISE EXCEPTION 'agent % not found', aidb_internal.quoted(agent_name) USING ERRCODE = 'undefined_object';
    END IF;
    conversation_id := gen_random_uuid()::text;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION aidb_internal.start_agent_session(text) IS
    'Behind aidb.start_agent_session.';
REVOKE ALL ON FUNCTION aidb_internal.start_agent_session(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.start_agent_session(agent_name text)
RETURNS TABLE (conversation_id text)
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.start_agent_session(text) IS
    'Returns a fresh conversation id to pass to aidb.agent_converse. Nothing is stored: the conversation exists once it is used. Raises 22023 when agent_name is empty and 42704 when there is no such agent. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.start_agent_session(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.start_agent_session(text) TO aidb_users;

-- to_uuid: what the type accepts (with or without hyphens and braces), without raising.
CREATE OR REPLACE FUNCTION aidb_internal.to_uuid(value text)
RETURNS uuid
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
    RETURN value::uuid;
EXCEPTION
    WHEN invalid_text_representation THEN RETURN NULL;
END
$$;
COMMENT ON FUNCTION aidb_internal.to_uuid(text) IS
    'The text as a uuid, NULL when it is none.';
REVOKE ALL ON FUNCTION aidb_internal.to_uuid(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.get_conversation(conversation_id text)
RETURNS TABLE (message_id text, task_id text, action_type text, role text, sender_id text, contents text)
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
DECLARE
    wanted uuid;
    me text := aidb_internal.caller();
    my_principal text := aidb_internal.caller_principal();
    everything boolean := pg_has_role(me, 'aidb_auditor', 'MEMBER');
BEGIN
    IF aidb_internal.is_blank(get_conversation.conversation_id) THEN
        RAISE EXCEPTION 'conversation id must not be empty' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    wanted := aidb_internal.to_uuid(get_conversation.conversation_id);
    IF wanted IS NULL THEN
        RAISE EXCEPTION 'invalid conversation id %: not a uuid', aidb_internal.quoted(get_conversation.conversation_id)
            USING ERRCODE = 'invalid_text_representation';
    END IF;

    RETURN QUERY
        SELECT
            l.id::text,
            l.task_id::text,
            l.action_type::text,
            CASE l.action_type WHEN 'user_prompt' THEN 'user' ELSE 'agent' END,
            CASE l.action_type WHEN 'user_prompt' THEN l.request_payload ->> 'user' ELSE coalesce(a.name, d.name) END,
            CASE l.action_type WHEN 'user_prompt' THEN l.request_payload ->> 'contents' ELSE l.response_payload ->> 'contents' END
        FROM aidb_internal.steps(wanted) WITH ORDINALITY l
        LEFT JOIN aidb_internal.agents a ON a.id = l.agent_id
        LEFT JOIN aidb_internal.deleted_agents d ON d.id = l.agent_id
        WHERE l.action_type IN ('user_prompt', 'answer')
          AND (everything OR (l.caller = me AND l.principal = my_principal
              AND l.created_at >= (SELECT aidb_internal.history_since())))
        ORDER BY l.ordinality;
END
$$;
COMMENT ON FUNCTION aidb_internal.get_conversation(text) IS
    'Behind aidb.get_conversation.';
REVOKE ALL ON FUNCTION aidb_internal.get_conversation(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.get_conversation(conversation_id text)
RETURNS TABLE (message_id text, task_id text, action_type text, role text, sender_id text, contents text)
LANGUAGE c STABLE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.get_conversation(text) IS
    'The prompts and answers of a conversation, oldest first, a fork with those that it shares; no row for one that does not exist or is somebody else''s. role: user or agent. sender_id: who asked, or the name of the agent that answered. Raises 22023 when conversation_id is empty and 22P02 when it is not a uuid. Privileges: aidb_users, for their own conversations; members of aidb_auditor for all.';
REVOKE ALL ON FUNCTION aidb.get_conversation(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.get_conversation(text) TO aidb_users, aidb_auditor;

CREATE OR REPLACE FUNCTION aidb_internal.get_message(message_id text)
RETURNS TABLE (message text, error text)
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    wanted uuid;
    me text := aidb_internal.caller();
BEGIN
    IF aidb_internal.is_blank(message_id) THEN
        error := 'message id must not be empty';
    ELSE
        wanted := aidb_internal.to_uuid(message_id);
        IF wanted IS NULL THEN
            error := format('invalid message id %s: not a uuid', aidb_internal.quoted(message_id));
        END IF;
    END IF;

    IF error IS NULL THEN
        SELECT CASE l.action_type WHEN 'user_prompt' THEN l.request_payload ->> 'contents' ELSE l.response_payload ->> 'contents' END
        INTO message
        FROM aidb_internal.action_log l
        -- its row is found by an index
        WHERE l.task_id = (SELECT r.task_id FROM aidb_internal.logged_steps r WHERE r.prompt_id = wanted OR r.answer_id = wanted)
          AND l.id = wanted
          AND l.action_type IN ('user_prompt', 'answer')
          AND ((l.caller = me AND l.principal = aidb_internal.caller_principal()
              AND l.created_at >= (SELECT aidb_internal.history_since())) OR pg_has_role(me, 'aidb_auditor', 'MEMBER'));
        IF NOT FOUND THEN
            error := format('message %s not found', aidb_internal.quoted(message_id));
        END IF;
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION aidb_internal.get_message(text) IS
    'Behind aidb.get_message.';
REVOKE ALL ON FUNCTION aidb_internal.get_message(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.get_message(message_id text)
RETURNS TABLE (message text, error text)
LANGUAGE c STABLE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.get_message(text) IS
    'The text of one prompt or answer. Always one row: message, or error when there is no such message or it is somebody else''s; it does not raise. Privileges: aidb_users, for their own conversations; members of aidb_auditor for all.';
REVOKE ALL ON FUNCTION aidb.get_message(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.get_message(text) TO aidb_users, aidb_auditor;

