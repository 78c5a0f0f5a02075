-- The log, a step a row. Whose rows they are is said as in api/31_history_views.sql.

CREATE OR REPLACE VIEW aidb_internal.action_log WITH (security_barrier) AS
SELECT
    s.id,
    l.conversation_id,
    l.agent_id,
    l.task_id,
    s.round AS sequence_id,
    s.type AS action_type,
    s.request AS request_payload,
    s.response AS response_payload,
    coalesce(s.status, 'SUCCESS') AS status,
    s.error,
    nullif(coalesce(l.role, l.caller), '') AS role,
    coalesce(l.initiated_by, l.caller) AS initiated_by,
    s.decision AS decision_id,
    NULL::text AS decision,
    l.created_at + s.at * interval '1 microsecond' AS created_at,
    l.created_at + (s.at + s.took) * interval '1 microsecond' AS completed_at,
    l.caller,
    coalesce(l.principal, l.caller) AS principal
FROM aidb_internal.logged_steps l
CROSS JOIN LATERAL jsonb_to_recordset(l.steps) AS s (
    id uuid, round uuid, type aidb.action_type, request jsonb, response jsonb, status aidb.task_status, error text, decision uuid,
    at bigint, took bigint)
WHERE (l.caller = CURRENT_USER
       AND coalesce(l.principal, l.caller) = (SELECT coalesce(nullif(current_setting('aidb.principal', true), ''), CURRENT_USER))
       AND l.created_at >= (SELECT aidb.history_since()))
   OR (SELECT pg_has_role(CURRENT_USER, 'aidb_auditor', 'MEMBER'));
COMMENT ON VIEW aidb_internal.action_log IS
    'One row for each step of a task, in the order created_at, id. Nobody but the extension may insert, and nobody may update or delete. aidb_users see the rows of their own calls (same role and same aidb.principal), aidb_auditor all. Privileges: SELECT for aidb_users and aidb_auditor.';
COMMENT ON COLUMN aidb_internal.action_log.id IS
    'Also the message id of a prompt or an answer (aidb.get_message).';
COMMENT ON COLUMN aidb_internal.action_log.sequence_id IS
    'Shared by the steps of one round: the id of the first of them.';
COMMENT ON COLUMN aidb_internal.action_log.request_payload IS
    'user_prompt: contents, user, and note, what the model was told with it of actions that have ended. model_request: model, round, messages (their number), tools (their names). tool_call: tool_name, arguments, tool_call_id. tool_response: tool_name, tool_call_id, and used_tokens and used_cost of what the call delegated. compaction: reason (size or overflow), messages (how many were replaced), from and until (the first and the last of them, as ids of this table), before (the first that stays), kept (those before it that stay). approval: event, action_id, by.';
COMMENT ON COLUMN aidb_internal.action_log.response_payload IS
    'model_response: contents, tool_calls, finish_reason, model, usage, retries (error and wait_ms of the requests that failed before, where there were any), estimated (the counts that the provider did not give), cost (when the model has a price), and rejected, why the answer was sent back, when it does not match the output type. tool_response: contents, or error when the tool failed or was refused. answer: contents. error: error. compaction: summary, model, usage, estimated, cost. approval: steps, what came of each.';
COMMENT ON COLUMN aidb_internal.action_log.role IS
    'The role that tool calls of the task ran as.';
COMMENT ON COLUMN aidb_internal.action_log.initiated_by IS
    'session_user of the call.';
COMMENT ON COLUMN aidb_internal.action_log.decision_id IS
    'Reserved for the decision that let the step pass or stopped it.';
COMMENT ON COLUMN aidb_internal.action_log.decision IS
    'Reserved, as decision_id.';
COMMENT ON COLUMN aidb_internal.action_log.caller IS
    'The role that called the agent (current_user at the call).';
COMMENT ON COLUMN aidb_internal.action_log.principal IS
    'The end user behind the caller: aidb.principal as it was set at the call, else the caller.';
REVOKE ALL ON aidb_internal.action_log FROM PUBLIC;
GRANT SELECT ON aidb_internal.action_log TO aidb_users, aidb_auditor;

-- For those who write a step by itself: an event of an action, the end of a task that nobody worked on any more, an import.
CREATE OR REPLACE FUNCTION aidb_internal.log_step()
RETURNS trigger
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    INSERT INTO aidb_internal.logged_steps (
        conversation_id, agent_id, task_id, created_at, caller, principal, initiated_by, role, prompt_id, answer_id, steps)
    VALUES (
        NEW.conversation_id, NEW.agent_id, NEW.task_id, NEW.created_at, NEW.caller, nullif(NEW.principal, NEW.caller),
        nullif(NEW.initiated_by, NEW.caller), CASE WHEN NEW.role IS NULL THEN '' WHEN NEW.role <> NEW.caller THEN NEW.role END,
        CASE NEW.action_type WHEN 'user_prompt' THEN NEW.id END, CASE NEW.action_type WHEN 'answer' THEN NEW.id END,
        jsonb_build_array(jsonb_build_object('id', NEW.id, 'type', NEW.action_type, 'at', 0)
            || coalesce((SELECT jsonb_object_agg(k.key, k.value)
                         FROM (VALUES ('round', to_jsonb(NEW.sequence_id)), ('request', NEW.request_payload), ('response', NEW.response_payload),
                                      ('status', to_jsonb(nullif(NEW.status, 'SUCCESS'))), ('error', to_jsonb(NEW.error)),
                                      ('decision', to_jsonb(NEW.decision_id)),
                                      ('took', to_jsonb((extract(epoch FROM NEW.completed_at - NEW.created_at) * 1000000)::bigint))) k (key, value)
                         WHERE k.value IS NOT NULL), '{}')));
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION aidb_internal.log_step() IS
    'Writes a step that is inserted into aidb_internal.action_log.';
REVOKE ALL ON FUNCTION aidb_internal.log_step() FROM PUBLIC;
CREATE OR REPLACE TRIGGER log_step INSTEAD OF INSERT ON aidb_internal.action_log
    FOR EACH ROW EXECUTE FUNCTION aidb_internal.log_step();
