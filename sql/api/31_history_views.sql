-- What happened, as far as the reader may see it. The views run with their owner's rights, to which row security does
-- not apply, so each says whose rows they are, or reads aidb_internal.action_log, which does: those of the role that called
-- the agent, with the principal it had then, and everything for aidb_auditor. (PostgreSQL 14 has no security_invoker, and a function in a view would be
-- permission-checked as the reader, so the predicate is written out each time.) security_barrier keeps a reader's own
-- functions away from rows that are not theirs. The sub-selects are evaluated once a query, not once a row.

CREATE OR REPLACE VIEW aidb.agent_tasks WITH (security_barrier) AS
SELECT
    t.id AS task_id,
    t.agent_id,
    t.conversation_id,
    t.request_message_id,
    t.response_message_id,
    t.caller AS caller_role,
    t.status,
    t.blocking,
    t.error,
    t.created_at,
    t.completed_at,
    t.parent_task_id,
    t.phase
FROM aidb_internal.agent_task_queue t
WHERE (t.caller = CURRENT_USER AND t.principal = (SELECT coalesce(nullif(current_setting('aidb.principal', true), ''), CURRENT_USER))
       AND t.created_at >= (SELECT aidb.history_since()))
   OR (SELECT pg_has_role(CURRENT_USER, 'aidb_auditor', 'MEMBER'));
COMMENT ON VIEW aidb.agent_tasks IS
    'One row for each call of an agent, by a user or by another agent. Readers see their own calls (same role and same aidb.principal) with all that was delegated in them, aidb_auditor all. Privileges: SELECT for aidb_users and aidb_auditor.';
COMMENT ON COLUMN aidb.agent_tasks.request_message_id IS 'The prompt, as id in aidb.conversation_log.';
COMMENT ON COLUMN aidb.agent_tasks.response_message_id IS 'The answer, as id in aidb.conversation_log; NULL until there is one.';
COMMENT ON COLUMN aidb.agent_tasks.caller_role IS 'The role that called the agent.';
COMMENT ON COLUMN aidb.agent_tasks.parent_task_id IS 'The task whose agent delegated this one; NULL: it was called from outside. See aidb.task_tree.';
COMMENT ON COLUMN aidb.agent_tasks.blocking IS 'true: the caller waits in its own session. false: it runs in the background.';
COMMENT ON COLUMN aidb.agent_tasks.phase IS 'What an unfinished background task does now: queue, model, tool:<name>, sleep or awaiting_confirmation.';
REVOKE ALL ON aidb.agent_tasks FROM PUBLIC;
GRANT SELECT ON aidb.agent_tasks TO aidb_users, aidb_auditor;

CREATE OR REPLACE VIEW aidb.conversation_log WITH (security_barrier) AS
SELECT
    l.id,
    l.conversation_id,
    l.agent_id,
    l.task_id,
    l.action_type,
    CASE l.action_type WHEN 'user_prompt' THEN l.request_payload ELSE l.response_payload END AS payload,
    l.created_at,
    l.completed_at
FROM aidb_internal.action_log l
WHERE l.action_type IN ('user_prompt', 'answer');
COMMENT ON VIEW aidb.conversation_log IS
    'Prompts and answers. Readers see their own conversations (same role and same aidb.principal), aidb_auditor all. Tool and model activity is in aidb_internal.action_log. Privileges: SELECT for aidb_users and aidb_auditor.';
COMMENT ON COLUMN aidb.conversation_log.action_type IS 'user_prompt or answer.';
COMMENT ON COLUMN aidb.conversation_log.payload IS 'The text is at key contents.';
REVOKE ALL ON aidb.conversation_log FROM PUBLIC;
GRANT SELECT ON aidb.conversation_log TO aidb_users, aidb_auditor;

CREATE OR REPLACE VIEW aidb.conversations WITH (security_barrier) AS
SELECT
    coalesce(c.conversation_id, o.conversation_id) AS conversation_id,
    coalesce(o.agent_id, c.agent_id) AS agent_id,
    o.parent_conversation_id,
    o.forked_from_message_id,
    t.status,
    coalesce(c.message_count, 0) + coalesce(o.shared, 0) AS message_count,
    coalesce(c.last_message_id, o.forked_from_message_id) AS last_message_id,
    coalesce(o.created_at, c.created_at) AS created_at,
    greatest(c.updated_at, t.completed_at, o.created_at) AS updated_at,
    coalesce(o.kind = 'import', false) AS imported
FROM (
    SELECT
        l.conversation_id,
        (array_agg(l.agent_id ORDER BY l.created_at, l.id))[1] AS agent_id,
        count(*) AS message_count,
        (array_agg(l.id ORDER BY l.created_at DESC, l.id DESC))[1] AS last_message_id,
        min(l.created_at) AS created_at,
        max(coalesce(l.completed_at, l.created_at)) AS updated_at
    FROM aidb_internal.action_log l
    WHERE l.action_type IN ('user_prompt', 'answer')
    GROUP BY l.conversation_id
) c
FULL JOIN (
    SELECT p.*,
           -- What a fork shares with those that it comes from, which are its owner's too.
           CASE p.kind WHEN 'fork' THEN (
               WITH RECURSIVE line AS (
                   SELECT p.parent_conversation_id AS conversation_id, p.until_at, p.until_id
                   UNION ALL
                   SELECT f.parent_conversation_id, f.until_at, f.until_id
                   FROM line l
                   JOIN aidb_internal.conversation_origins f ON f.conversation_id = l.conversation_id AND f.kind = 'fork'
               )
               SELECT count(*)
               FROM line l
               -- OFFSET 0: each conversation is looked up by its index, instead of all logs being read for a join
               CROSS JOIN LATERAL (SELECT s.* FROM aidb_internal.action_log s WHERE s.conversation_id = l.conversation_id OFFSET 0) a
               WHERE a.action_type IN ('user_prompt', 'answer') AND (a.created_at, a.id) <= (l.until_at, l.until_id)
           ) END AS shared
    FROM aidb_internal.conversation_origins p
    WHERE (p.caller = CURRENT_USER AND p.principal = (SELECT coalesce(nullif(current_setting('aidb.principal', true), ''), CURRENT_USER))
       AND p.created_at >= (SELECT aidb.history_since()))
       OR (SELECT pg_has_role(CURRENT_USER, 'aidb_auditor', 'MEMBER'))
) o ON o.conversation_id = c.conversation_id
LEFT JOIN LATERAL (
    SELECT q.status, q.completed_at
    FROM aidb_internal.agent_task_queue q
    WHERE q.conversation_id = coalesce(c.conversation_id, o.conversation_id)
    ORDER BY q.created_at DESC, q.id DESC
    LIMIT 1
) t ON true;
COMMENT ON VIEW aidb.conversations IS
    'One row for each conversation. Readers see their own (same role and same aidb.principal), aidb_auditor all. Privileges: SELECT for aidb_users and aidb_auditor.';
COMMENT ON COLUMN aidb.conversations.parent_conversation_id IS 'The conversation that it was forked from (aidb.fork_conversation); NULL: it is no fork.';
COMMENT ON COLUMN aidb.conversations.forked_from_message_id IS 'The last message that it shares with that one.';
COMMENT ON COLUMN aidb.conversations.status IS 'Status of its own newest task; NULL when it has none: a fork that was not continued, an import, or delete_agent(force => true) removed the tasks.';
COMMENT ON COLUMN aidb.conversations.message_count IS 'Prompts and answers, those included that a fork shares.';
COMMENT ON COLUMN aidb.conversations.imported IS 'Made by aidb.import_conversation: what it says to have happened did not happen here.';
REVOKE ALL ON aidb.conversations FROM PUBLIC;
GRANT SELECT ON aidb.conversations TO aidb_users, aidb_auditor;

