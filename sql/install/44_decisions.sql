-- Decisions: one row for every boundary that an agent's run crossed or was stopped at. Unlike the log, which says what
-- an agent did, this says as whom, whether it was allowed, and why not.
--
-- The rows of one run form a chain (chain_id, chain_n): each holds the hash of the one before. The first of a chain
-- holds the hash of the newest row that was there when the run began, so a whole run cannot be taken out unnoticed.
-- Hashes are computed where the row is made (extension/internal/decision) and again by aidb.verify_decisions.
CREATE TABLE aidb_internal.decision_log (
    decision_id uuid NOT NULL,
    chain_id uuid NOT NULL,
    chain_n integer NOT NULL,
    at timestamptz NOT NULL,
    conversation_id uuid,
    task_id uuid,
    agent text,
    purpose text,
    tool text,
    interaction_point text NOT NULL,
    principal text NOT NULL,
    caller text NOT NULL,
    session_user_name text NOT NULL,
    role text,
    status text NOT NULL,
    denial_reason text,
    attempted_escalation boolean NOT NULL DEFAULT false,
    object text,
    query_text text,
    query_hash text,
    rows bigint,
    sqlstate text,
    duration_us bigint NOT NULL,
    prev_hash bytea NOT NULL,
    hash bytea NOT NULL
) PARTITION BY RANGE (at);
COMMENT ON TABLE aidb_internal.decision_log IS
    'One row for each decision. Only the extension inserts; nobody but a superuser can change or remove a row, and aidb.verify_decisions shows that. Read it through aidb.decisions. Partitioned by time, see aidb.log_partitions.';
-- No CHECK constraints: they would be read and compiled again for every call, and only the extension writes here.
COMMENT ON COLUMN aidb_internal.decision_log.interaction_point IS
    'The boundary: sql_exec, mcp_call, model_call, delegation, policy, approval (an action that waits for a person).';
COMMENT ON COLUMN aidb_internal.decision_log.status IS 'allowed or denied; denial_reason is set when denied.';
COMMENT ON COLUMN aidb_internal.decision_log.chain_id IS 'The run that the decision belongs to.';
COMMENT ON COLUMN aidb_internal.decision_log.chain_n IS 'Its place in that run, from 1.';
COMMENT ON COLUMN aidb_internal.decision_log.query_text IS
    'The statement as submitted, at most 5 KB; its tail is cut.';
COMMENT ON COLUMN aidb_internal.decision_log.query_hash IS 'SHA-256 of the whole statement, in hexadecimal.';
COMMENT ON COLUMN aidb_internal.decision_log.attempted_escalation IS
    'The statement''s text holds an attempt to change who it runs as, whatever stopped it.';
REVOKE ALL ON aidb_internal.decision_log FROM PUBLIC;

-- As that of action_log, in 43_runs.sql.
CREATE TABLE aidb_internal.decision_log_default PARTITION OF aidb_internal.decision_log (
    CONSTRAINT decision_log_pkey PRIMARY KEY (decision_id)
) DEFAULT;
COMMENT ON TABLE aidb_internal.decision_log_default IS
    'Part of aidb_internal.decision_log: what is in no other partition of it.';
REVOKE ALL ON aidb_internal.decision_log_default FROM PUBLIC;
ALTER TABLE aidb_internal.decision_log_default ENABLE ROW LEVEL SECURITY;
SELECT pg_extension_config_dump('aidb_internal.decision_log_default', '');

-- A conversation's decisions.
CREATE INDEX decision_log_conversation_idx ON aidb_internal.decision_log_default (conversation_id) WHERE conversation_id IS NOT NULL;
-- A time range, for audits and aidb.verify_decisions, and the newest of all (c_shim/newest.c). There is no
-- sequence: a call that is rolled back leaves nothing at all behind, not even a number used up.
CREATE INDEX decision_log_at_idx ON aidb_internal.decision_log_default (at, decision_id);
