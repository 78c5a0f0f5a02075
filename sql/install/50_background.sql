-- Tasks that run in the background. A task's row in agent_task_queue says how it stands; what it was submitted with is
-- here, written once. A background task has blocking false.
--
-- Who may move a task's status:
--
--     agent_submit   ->  PENDING          no worker has it
--     a worker       ->  IN_PROGRESS      worker is that worker's number
--     the keeper     ->  RECOVERY         its worker is gone; the next one goes on from the last step that was committed
--     a worker       ->  AWAIT_APPROVAL   no worker has it, and nobody else anything of it
--     a worker       ->  IN_PROGRESS      with phase sleep: no worker has it; the keeper makes it PENDING when the time is over
--     confirm_action, reject_action, and the keeper when the time is over
--                    ->  PENDING          again: the next worker goes on from the last step
--     a worker       ->  SUCCESS, ERROR, TIMEOUT, DENIED
--     cancel_task    ->  CANCELED         or the worker, told by cancel_task, when it has the task in hand

-- A task that is pruned or deleted with its agent takes its rows of these two along (forget_tasks, in 65_background_change.sql). They
-- have no foreign key: pg_restore -j loads the tables of an extension in any order.
CREATE TABLE aidb_internal.submitted_tasks (
    task_id uuid NOT NULL,
    agent text NOT NULL,
    prompt text NOT NULL,
    read_only boolean,
    output_type jsonb,
    search_path text NOT NULL,
    CONSTRAINT submitted_tasks_pkey PRIMARY KEY (task_id)
);
COMMENT ON TABLE aidb_internal.submitted_tasks IS
    'What background tasks were submitted with. Only the extension reads and writes it.';
COMMENT ON COLUMN aidb_internal.submitted_tasks.search_path IS
    'That of the submitter''s session: tools look names up there.';
REVOKE ALL ON aidb_internal.submitted_tasks FROM PUBLIC;
SELECT pg_extension_config_dump('aidb_internal.submitted_tasks', '');

CREATE TABLE aidb_internal.task_cancels (
    task_id uuid NOT NULL,
    why text NOT NULL,
    CONSTRAINT task_cancels_pkey PRIMARY KEY (task_id)
);
COMMENT ON TABLE aidb_internal.task_cancels IS
    'Tasks that a worker has in hand and is to end. It takes them from here, so that nobody''s open transaction keeps a worker waiting for a row.';
REVOKE ALL ON aidb_internal.task_cancels FROM PUBLIC;
SELECT pg_extension_config_dump('aidb_internal.task_cancels', '');

-- What a worker may take next, oldest first for each of those who share a session user.
CREATE INDEX agent_task_queue_claimable_idx ON aidb_internal.agent_task_queue (initiated_by, caller, principal, created_at, id)
    WHERE worker IS NULL AND NOT blocking AND parent_task_id IS NULL AND status IN ('PENDING', 'RECOVERY');
-- What waits for a person or sleeps, for the keeper, which looks when the first of them has waited long enough.
CREATE INDEX agent_task_queue_awaiting_idx ON aidb_internal.agent_task_queue (awaits_until)
    WHERE awaits_until IS NOT NULL AND NOT blocking AND parent_task_id IS NULL;
-- What workers have in hand: for a cancel, and when a worker is gone.
CREATE INDEX agent_task_queue_worker_idx ON aidb_internal.agent_task_queue (worker) WHERE worker IS NOT NULL;
