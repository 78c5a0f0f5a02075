-- Forking, exporting and importing conversations. These run with the owner's rights, to which row security does not
-- apply, so each says whose conversations it takes.

-- A conversation and those that it was forked from, nearest first, each with its last step that counts.
CREATE OR REPLACE FUNCTION aidb_internal.lineage(conversation_id uuid)
RETURNS TABLE (conversation_id uuid, until_at timestamptz, until_id uuid, depth integer)
LANGUAGE sql STABLE
AS $$
    WITH RECURSIVE line AS (
        SELECT $1 AS conversation_id, 'infinity'::timestamptz AS until_at, NULL::uuid AS until_id, 0 AS depth
        UNION ALL
        SELECT o.parent_conversation_id, o.until_at, o.until_id, l.depth + 1
        FROM line l
        JOIN aidb_internal.conversation_origins o ON o.conversation_id = l.conversation_id AND o.kind = 'fork'
        WHERE l.depth < 1000
    )
    SELECT l.conversation_id, l.until_at, l.until_id, l.depth FROM line l
$$;
COMMENT ON FUNCTION aidb_internal.lineage(uuid) IS
    'A conversation and those it was forked from, each with its last step that is part of the history.';
REVOKE ALL ON FUNCTION aidb_internal.lineage(uuid) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.steps(conversation_id uuid)
RETURNS SETOF aidb_internal.action_log
LANGUAGE sql STABLE
AS $$
    SELECT a.*
    FROM aidb_internal.lineage($1) l
    -- OFFSET 0: each conversation is looked up by its index, instead of all logs being read for a join
    CROSS JOIN LATERAL (SELECT s.* FROM aidb_internal.action_log s WHERE s.conversation_id = l.conversation_id OFFSET 0) a
    WHERE l.until_id IS NULL OR (a.created_at, a.id) <= (l.until_at, l.until_id)
    ORDER BY l.depth DESC, a.created_at, a.id
$$;
COMMENT ON FUNCTION aidb_internal.steps(uuid) IS
    'The steps of a conversation in order, those of the conversations it was forked from included.';
REVOKE ALL ON FUNCTION aidb_internal.steps(uuid) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.fork_conversation(message_id text)
RETURNS text
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_variable
DECLARE
    me text := aidb_internal.caller();
    wanted uuid;
    step aidb_internal.action_log;
    fork uuid := gen_random_uuid();
BEGIN
    IF aidb_internal.is_blank(message_id) THEN
        RAISE EXCEPTION 'message id must not be empty' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    wanted := aidb_internal.to_uuid(message_id);
    IF wanted IS NULL THEN
        RAISE EXCEPTION 'invalid message id %: not a uuid', aidb_internal.quoted(message_id)
            USING ERRCODE = 'invalid_text_representation';
    END IF;
    SELECT l.* INTO step
    FROM aidb_internal.action_log l
    WHERE l.task_id = (SELECT r.task_id FROM aidb_internal.logged_steps r WHERE r.prompt_id = wanted OR r.answer_id = wanted)
      AND l.id = wanted AND l.action_type IN ('user_prompt', 'answer')
      AND l.caller = me AND l.principal = aidb_internal.caller_principal()
              AND l.created_at >= (SELECT aidb_internal.history_since());
    IF NOT FOUND THEN
        RAISE EXCEPTION 'message % not found', aidb_internal.quoted(message_id) USING ERRCODE = 'undefined_object';
    END IF;
    INSERT INTO aidb_internal.conversation_origins (conversation_id, kind, agent_id, parent_conversation_id, forked_from_message_id,
        until_at, until_id, caller, initiated_by, principal)
    VALUES (fork, 'fork', step.agent_id, step.conversation_id, step.id, step.created_at, step.id, me, SESSION_USER,
            aidb_internal.caller_principal());
    RETURN fork::text;
END
$$;
COMMENT ON FUNCTION aidb_internal.fork_conversation(text) IS
    'Behind aidb.fork_conversation.';
REVOKE ALL ON FUNCTION aidb_internal.fork_conversation(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.fork_conversation(message_id text)
RETURNS text
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.fork_conversation(text) IS
    'Begins a conversation that shares another one''s history up to and including a message, a prompt or an answer, and returns its id for aidb.agent_converse. Nothing is copied; what is said later in either is not seen in the other. aidb.conversations shows where it comes from. Raises 22023 when message_id is empty, 22P02 when it is not a uuid, 42704 when there is no such message of the caller''s own. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.fork_conversation(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.fork_conversation(text) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb_internal.export_conversation(conversation_id text)
RETURNS jsonb
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_variable
DECLARE
    me text := aidb_internal.caller();
    wanted uuid;
    document jsonb;
BEGIN
    IF aidb_internal.is_blank(conversation_id) THEN
        RAISE EXCEPTION 'conversation id must not be empty' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    wanted := aidb_internal.to_uuid(conversation_id);
    IF wanted IS NULL THEN
        RAISE EXCEPTION 'invalid conversation id %: not a uuid', aidb_internal.quoted(conversation_id)
            USING ERRCODE = 'invalid_text_representation';
    END IF;
    -- A fork's ancestors are the forker's own: fork_conversation saw to that.
    SELECT jsonb_build_object('format', 'aidb.conversation', 'version', 1, 'conversation_id', wanted, 'exported_at', clock_timestamp(),
               'agent', (array_agg(coalesce(a.name, d.name)))[1],
               'steps', jsonb_agg(jsonb_strip_nulls(jsonb_build_object('id', s.id, 'task', s.task_id, 'round', s.sequence_id,
                   'status', s.status, 'error', s.error, 'created_at', s.created_at, 'completed_at', s.completed_at))
                   || jsonb_build_object('type', s.action_type, 'request', s.request_payload, 'response', s.response_payload) ORDER BY s.n))
    INTO document
    FROM (SELECT t.*, row_number() OVER () AS n FROM aidb_internal.steps(wanted) t) s
    LEFT JOIN aidb_internal.agents a ON a.id = s.agent_id
    LEFT JOIN aidb_internal.deleted_agents d ON d.id = s.agent_id
    WHERE (s.caller = me AND s.principal = aidb_internal.caller_principal()
              AND s.created_at >= (SELECT aidb_internal.history_since())) OR pg_has_role(me, 'aidb_auditor', 'MEMBER')
    HAVING count(*) > 0;
    IF document IS NULL THEN
        RAISE EXCEPTION 'conversation % not found', aidb_internal.quoted(conversation_id) USING ERRCODE = 'undefined_object';
    END IF;
    RETURN document;
END
$$;
COMMENT ON FUNCTION aidb_internal.export_conversation(text) IS
    'Behind aidb.export_conversation.';
REVOKE ALL ON FUNCTION aidb_internal.export_conversation(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.export_conversation(conversation_id text)
RETURNS jsonb
LANGUAGE c STABLE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.export_conversation(text) IS
    'A conversation with all its steps as one JSON document, for aidb.import_conversation: {"format": "aidb.conversation", "version": 1, "conversation_id", "agent", "exported_at", "steps": [{"type", "request", "response", "id", "task", "round", "status", "error", "created_at", "completed_at"}]}. It holds what the log holds, so secrets are redacted. Raises 22023 when conversation_id is empty, 22P02 when it is not a uuid, 42704 when there is none of that id that the caller may see. Privileges: aidb_users, for their own conversations; members of aidb_auditor for all.';
REVOKE ALL ON FUNCTION aidb.export_conversation(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.export_conversation(text) TO aidb_users, aidb_auditor;

-- problem_of_step: a document may come from anywhere. What does not look like a step is refused by its number.
CREATE OR REPLACE FUNCTION aidb_internal.problem_of_step(step jsonb, newest timestamptz)
RETURNS text
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    member record;
    at timestamptz;
BEGIN
    IF jsonb_typeof(step) IS DISTINCT FROM 'object' THEN
        RETURN 'is not a JSON object';
    END IF;
    FOR member IN SELECT e.key, jsonb_typeof(e.value) AS type FROM jsonb_each(step) e LOOP
        IF (member.key IN ('request', 'response') AND member.type IN ('object', 'null')) IS NOT TRUE
           AND (member.key IN ('type', 'id', 'task', 'round', 'status', 'error', 'created_at', 'completed_at')
                AND member.type IN ('string', 'null')) IS NOT TRUE THEN
            RETURN format('has an unexpected member %s', aidb_internal.quoted(member.key));
        END IF;
    END LOOP;
    IF NOT EXISTS (SELECT FROM unnest(enum_range(NULL::aidb.action_type)) t (label) WHERE t.label::text = step ->> 'type') THEN
        RETURN 'has no type';
    ELSIF NOT EXISTS (SELECT FROM unnest(enum_range(NULL::aidb.task_status)) t (label) WHERE t.label::text = coalesce(step ->> 'status', 'SUCCESS')) THEN
        RETURN 'has an unknown status';
    ELSIF aidb_internal.to_uuid(step ->> 'id') IS NULL OR aidb_internal.to_uuid(step ->> 'task') IS NULL THEN
        RETURN 'has no id or no task';
    END IF;
    BEGIN
        at := (step ->> 'created_at')::timestamptz;
        IF (step ->> 'completed_at')::timestamptz < at OR NOT isfinite(at) OR NOT isfinite((step ->> 'completed_at')::timestamptz) THEN
            RETURN 'ends before it begins';
        END IF;
    EXCEPTION
        WHEN datetime_field_overflow OR invalid_datetime_format OR invalid_parameter_value THEN at := NULL;
    END;
    IF at IS NULL OR at > clock_timestamp() THEN
        RETURN 'has no time, or one to come';
    ELSIF at <= newest THEN
        RETURN 'is not later than the one before';
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION aidb_internal.problem_of_step(jsonb, timestamptz) IS
    'What is wrong with a step of an exported conversation, or NULL.';
REVOKE ALL ON FUNCTION aidb_internal.problem_of_step(jsonb, timestamptz) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.import_conversation(document jsonb, agent_name text)
RETURNS text
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_variable
DECLARE
    max_steps constant integer := 10000;
    max_bytes constant integer := 64 * 1024 * 1024;
    me text := aidb_internal.caller();
    my_principal text := aidb_internal.caller_principal();
    agent uuid;
    fresh uuid := gen_random_uuid();
    step jsonb;
    n integer := 0;
    newest timestamptz := '-infinity';
    problem text;
    -- old ids to new ones: a document must not say what is already there
    ids jsonb := '{}';
BEGIN
    IF jsonb_typeof(document) IS DISTINCT FROM 'object' OR document ->> 'format' IS DISTINCT FROM 'aidb.conversation'
       OR jsonb_typeof(document -> 'steps') IS DISTINCT FROM 'array' THEN
        RAISE EXCEPTION 'the document is not an exported conversation'
            USING ERRCODE = 'invalid_parameter_value', HINT = 'aidb.export_conversation makes one.';
    ELSIF document -> 'version' IS DISTINCT FROM '1' THEN
        RAISE EXCEPTION 'an exported conversation of version % cannot be read', aidb_internal.quoted(document ->> 'version')
            USING ERRCODE = 'feature_not_supported';
    ELSIF jsonb_array_length(document -> 'steps') NOT BETWEEN 1 AND max_steps OR octet_length(document::text) > max_bytes THEN
        RAISE EXCEPTION 'an exported conversation must have 1 to % steps and at most % bytes', max_steps, max_bytes
            USING ERRCODE = 'program_limit_exceeded';
    END IF;
    agent_name := coalesce(agent_name, document ->> 'agent');
    SELECT a.id INTO agent FROM aidb_internal.agents a WHERE a.name = agent_name;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'agent % not found', aidb_internal.quoted(agent_name)
            USING ERRCODE = 'undefined_object', HINT = 'Name another agent as agent_name.';
    END IF;

    FOR step IN SELECT s.value FROM jsonb_array_elements(document -> 'steps') WITH ORDINALITY s (value, n) ORDER BY s.n LOOP
        n := n + 1;
        problem := aidb_internal.problem_of_step(step, newest);
        IF problem IS NOT NULL THEN
            RAISE EXCEPTION 'step % of the exported conversation %', n, problem USING ERRCODE = 'invalid_parameter_value';
        END IF;
        newest := (step ->> 'created_at')::timestamptz;
    END LOOP;
    -- by no index: the steps may lie in several partitions of the log
    IF (SELECT count(DISTINCT (s ->> 'id')::uuid) FROM jsonb_array_elements(document -> 'steps') s) < n THEN
        RAISE EXCEPTION 'the exported conversation has the same id twice' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT jsonb_object_agg(o.id, gen_random_uuid()) INTO ids
    FROM (SELECT DISTINCT i.id FROM jsonb_array_elements(document -> 'steps') s,
                 LATERAL (VALUES (s ->> 'id'), (s ->> 'task'), (s ->> 'round')) i (id) WHERE i.id IS NOT NULL) o;

    INSERT INTO aidb_internal.action_log (id, conversation_id, agent_id, task_id, sequence_id, action_type, request_payload,
        response_payload, status, error, initiated_by, created_at, completed_at, caller, principal)
    SELECT (ids ->> (s ->> 'id'))::uuid, fresh, agent, (ids ->> (s ->> 'task'))::uuid, (ids ->> (s ->> 'round'))::uuid,
           (s ->> 'type')::aidb.action_type,
           CASE
               -- it names steps
               WHEN s ->> 'type' = 'compaction' THEN nullif(s -> 'request', 'null') || jsonb_build_object(
                   'from', ids -> (s #>> '{request,from}'), 'until', ids -> (s #>> '{request,until}'), 'before', ids -> (s #>> '{request,before}'),
                   'kept', (SELECT coalesce(jsonb_agg(ids -> k), '[]') FROM jsonb_array_elements_text(
                       CASE jsonb_typeof(s #> '{request,kept}') WHEN 'array' THEN s #> '{request,kept}' ELSE '[]' END) k WHERE ids ? k))
               ELSE nullif(s -> 'request', 'null')
           END,
           nullif(s -> 'response', 'null'), coalesce(s ->> 'status', 'SUCCESS')::aidb.task_status, s ->> 'error', SESSION_USER,
           (s ->> 'created_at')::timestamptz, (s ->> 'completed_at')::timestamptz, me, my_principal
    FROM jsonb_array_elements(document -> 'steps') s;
    INSERT INTO aidb_internal.conversation_origins (conversation_id, kind, agent_id, caller, initiated_by, principal)
    VALUES (fresh, 'import', agent, me, SESSION_USER, my_principal);
    RETURN fresh::text;
END
$$;
COMMENT ON FUNCTION aidb_internal.import_conversation(jsonb, text) IS
    'Behind aidb.import_conversation.';
REVOKE ALL ON FUNCTION aidb_internal.import_conversation(jsonb, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.import_conversation(document jsonb, agent_name text DEFAULT NULL)
RETURNS text
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.import_conversation(jsonb, text) IS
    'Makes a conversation of the caller''s own from what aidb.export_conversation gave, in this database or another, and returns its id. It can be read, continued, forked, and replayed by a model of provider replay. Every id in it is made anew; it has no tasks, no decisions and no role, since nothing was run, and aidb.conversations marks it as imported. agent_name: the agent it is to belong to, in place of the one it names. Raises 22023 for a document that is not one, 42704 when there is no such agent, 54000 for more than 10000 steps or 64 MB. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.import_conversation(jsonb, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.import_conversation(jsonb, text) TO aidb_users;

