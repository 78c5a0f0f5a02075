-- What runs now.

CREATE OR REPLACE VIEW aidb.running_tasks WITH (security_barrier) AS
SELECT
    t.id AS task_id,
    coalesce(a.name, d.name) AS agent,
    t.conversation_id,
    t.caller AS caller_role,
    t.principal,
    t.status,
    t.phase,
    CASE WHEN t.phase LIKE 'tool:%' THEN substr(t.phase, 6) END AS tool,
    t.phase_at AS since,
    t.rounds,
    t.input_tokens,
    t.output_tokens,
    t.created_at,
    t.started_at,
    t.attempts,
    aidb_internal.worker_pid(t.worker) AS pid
FROM aidb_internal.agent_task_queue t
LEFT JOIN aidb_internal.agents a ON a.id = t.agent_id
LEFT JOIN aidb_internal.deleted_agents d ON d.id = t.agent_id
WHERE NOT t.blocking
  AND t.status IN ('PENDING', 'IN_PROGRESS', 'RECOVERY', 'AWAIT_APPROVAL')
  AND ((t.caller = CURRENT_USER AND t.principal = (SELECT coalesce(nullif(current_setting('aidb.principal', true), ''), CURRENT_USER))
       AND t.created_at >= (SELECT aidb.history_since()))
       OR (SELECT pg_has_role(CURRENT_USER, 'aidb_auditor', 'MEMBER')));
COMMENT ON VIEW aidb.running_tasks IS
    'Background tasks that are not over: waiting, running or awaiting an approval. Readers see their own (same role and same aidb.principal), aidb_auditor all. Privileges: SELECT for aidb_users and aidb_auditor.';
COMMENT ON COLUMN aidb.running_tasks.phase IS 'What the task does now: queue, model, tool:<name>, sleep or awaiting_confirmation.';
COMMENT ON COLUMN aidb.running_tasks.tool IS 'The tool that it is running.';
COMMENT ON COLUMN aidb.running_tasks.since IS 'Since when it does that.';
COMMENT ON COLUMN aidb.running_tasks.rounds IS 'Model calls begun.';
COMMENT ON COLUMN aidb.running_tasks.attempts IS 'How often it was interrupted and taken up again since its last step.';
COMMENT ON COLUMN aidb.running_tasks.pid IS 'The worker process that has it in hand, as in pg_stat_activity.';
REVOKE ALL ON aidb.running_tasks FROM PUBLIC;
GRANT SELECT ON aidb.running_tasks TO aidb_users, aidb_auditor;
