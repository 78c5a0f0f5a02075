-- What agents did. A task is one call of an agent, an action one step of it, a conversation the tasks that share a
-- conversation_id. A task with its actions is written at the end of the call, in the transaction of whoever called. A call
-- that an agent delegates to another is a task of its own, which names the one it works for.
--
-- Nothing here references aidb_internal.agents: the rows of a deleted agent stay (deleted_agents keeps its name), and a
-- call must not fail at its last step because somebody deleted the agent meanwhile.
--
-- caller and principal say whose rows they are. caller is the role that called the agent; principal is the end user
-- behind it for applications that share one role (SET aidb.principal), otherwise the caller's name again. Both must
-- match for a row to be visible, so users of a shared role do not see each other's conversations.

CREATE TABLE aidb_internal.agent_task_queue (
    id uuid NOT NULL,
    agent_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    request_message_id uuid,
    response_message_id uuid,
    role text,
    initiated_by text NOT NULL,
    status aidb.task_status NOT NULL,
    blocking boolean NOT NULL DEFAULT true,
    budget_consumed integer NOT NULL DEFAULT 0,
    rounds integer NOT NULL DEFAULT 0,
    decisions integer NOT NULL DEFAULT 0,
    input_tokens bigint,
    output_tokens bigint,
    timeout_at timestamptz,
    error text,
    created_at timestamptz NOT NULL,
    completed_at timestamptz,
    agent_schedule_id uuid,
    caller text NOT NULL,
    principal text NOT NULL,
    parent_task_id uuid,
    cost numeric,
    phase text,
    phase_at timestamptz,
    started_at timestamptz,
    worker bigint,
    attempts integer,
    awaits_until timestamptz,
    CONSTRAINT agent_task_queue_pkey PRIMARY KEY (id)
);
COMMENT ON TABLE aidb_internal.agent_task_queue IS
    'One row for each call of an agent. aidb_users see the rows of their own calls, aidb_auditor all; nobody is granted anything else. The view aidb.agent_tasks shows the same.';
COMMENT ON COLUMN aidb_internal.agent_task_queue.role IS
    'The role that tool calls ran as: the one the agent''s purpose resolved to, or the caller; a delegate''s is that of the agent that called it (see aidb.delegation_role).';
COMMENT ON COLUMN aidb_internal.agent_task_queue.initiated_by IS
    'session_user of the call.';
COMMENT ON COLUMN aidb_internal.agent_task_queue.budget_consumed IS
    'Input plus output tokens, estimated where the provider did not say.';
COMMENT ON COLUMN aidb_internal.agent_task_queue.decisions IS
    'How many decision records the call made, for aidb.verify_decisions.';
COMMENT ON COLUMN aidb_internal.agent_task_queue.input_tokens IS
    'What the provider reported; NULL: it did not say.';
COMMENT ON COLUMN aidb_internal.agent_task_queue.output_tokens IS
    'What the provider reported; NULL: it did not say.';
COMMENT ON COLUMN aidb_internal.agent_task_queue.cost IS
    'What the task''s own model calls cost by the price in the model''s config; NULL: the model has no price.';
COMMENT ON COLUMN aidb_internal.agent_task_queue.agent_schedule_id IS
    'Not used.';
COMMENT ON COLUMN aidb_internal.agent_task_queue.caller IS
    'The role that called the agent (current_user at the call).';
COMMENT ON COLUMN aidb_internal.agent_task_queue.principal IS
    'The end user behind the caller: aidb.principal as it was set at the call, else the caller.';
COMMENT ON COLUMN aidb_internal.agent_task_queue.parent_task_id IS
    'The task whose agent delegated this call; NULL: it was called from outside.';
COMMENT ON COLUMN aidb_internal.agent_task_queue.phase IS
    'What an unfinished background task does: queue, model, tool:<name>, sleep, awaiting_confirmation.';
COMMENT ON COLUMN aidb_internal.agent_task_queue.phase_at IS
    'Since when it does that.';
COMMENT ON COLUMN aidb_internal.agent_task_queue.started_at IS
    'When a worker began a background task.';
COMMENT ON COLUMN aidb_internal.agent_task_queue.worker IS
    'The worker process that has the background task in hand, by the number that it drew when it started; NULL: none has.';
COMMENT ON COLUMN aidb_internal.agent_task_queue.attempts IS
    'How often a background task was interrupted, by the end of its worker or an error of the server, since its last step.';
COMMENT ON COLUMN aidb_internal.agent_task_queue.awaits_until IS
    'When a background task that sleeps goes on, or one that waits for a person, without their answer.';
REVOKE ALL ON aidb_internal.agent_task_queue FROM PUBLIC;
GRANT SELECT ON aidb_internal.agent_task_queue TO aidb_users, aidb_auditor;
SELECT pg_extension_config_dump('aidb_internal.agent_task_queue', '');

-- The newest task of a conversation.
CREATE INDEX agent_task_queue_conversation_idx ON aidb_internal.agent_task_queue (conversation_id, created_at);
-- What a task delegated.
CREATE INDEX agent_task_queue_parent_idx ON aidb_internal.agent_task_queue (parent_task_id) WHERE parent_task_id IS NOT NULL;
-- "Does this agent have tasks?" when it is to be deleted.
CREATE INDEX agent_task_queue_agent_idx ON aidb_internal.agent_task_queue (agent_id);

ALTER TABLE aidb_internal.agent_task_queue ENABLE ROW LEVEL SECURITY;
CREATE POLICY agent_task_queue_own ON aidb_internal.agent_task_queue FOR SELECT USING (
    (caller = CURRENT_USER AND principal = (SELECT coalesce(nullif(current_setting('aidb.principal', true), ''), CURRENT_USER)))
    OR (SELECT pg_has_role(CURRENT_USER, 'aidb_auditor', 'MEMBER'))
);
COMMENT ON POLICY agent_task_queue_own ON aidb_internal.agent_task_queue IS
    'A task is visible to the role that called the agent, with the principal it had then, and to aidb_auditor.';

-- The steps of tasks, as they are stored: a row holds those that were written together, which are steps of one task that follow
-- each other. The view aidb_internal.action_log shows a step a row, and is how everybody reads them but those who need to be fast.
--
-- What the steps of a row have in common, most of all names and ids, is stored once, and their repeated keys compress well: a
-- turn takes less than half of what it takes as a row for each step, and as much less to write.
CREATE TABLE aidb_internal.logged_steps (
    conversation_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    task_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    caller text NOT NULL,
    principal text,
    initiated_by text,
    role text,
    prompt_id uuid,
    answer_id uuid,
    steps jsonb NOT NULL
) PARTITION BY RANGE (created_at);
COMMENT ON TABLE aidb_internal.logged_steps IS
    'The steps of tasks, a row for those that were written together. The view aidb_internal.action_log shows them one by one. Nobody is granted anything.';
COMMENT ON COLUMN aidb_internal.logged_steps.created_at IS
    'When the first of the steps began.';
COMMENT ON COLUMN aidb_internal.logged_steps.caller IS
    'The role that called the agent (current_user at the call).';
COMMENT ON COLUMN aidb_internal.logged_steps.principal IS
    'The end user behind the caller; NULL: the same name as caller.';
COMMENT ON COLUMN aidb_internal.logged_steps.initiated_by IS
    'session_user of the call; NULL: the same name as caller.';
COMMENT ON COLUMN aidb_internal.logged_steps.role IS
    'The role that tool calls of the task ran as; NULL: the same name as caller, an empty one: none did.';
COMMENT ON COLUMN aidb_internal.logged_steps.prompt_id IS
    'The id of the prompt among the steps, of which there is at most one.';
COMMENT ON COLUMN aidb_internal.logged_steps.answer_id IS
    'The id of the answer among the steps, of which there is at most one.';
COMMENT ON COLUMN aidb_internal.logged_steps.steps IS
    'The steps in order: objects of id, round, type, request, response, status (where it is not SUCCESS), error, decision, at (microseconds after created_at) and took (microseconds). What is NULL is left out.';
REVOKE ALL ON aidb_internal.logged_steps FROM PUBLIC;

-- This one and its like of the other logs take what no partition is for, so that no INSERT ever fails for the lack of one;
-- the others are made when it is time for them (aidb_internal.add_log_partition) and look like it.
--
-- Indexes belong to the partitions alone. A dump has the partitions that were made later with their indexes, as tables of
-- their own; were there indexes of the parent, CREATE EXTENSION would bring those, attaching a partition would make its own
-- by itself, and the dump's would be in its way.
--
-- Nobody is granted anything on a partition, and row security without a policy stops those who need no grant
-- (pg_read_all_data): the views are the only way to the rows.
--
-- Storage main and the low target: compressed whenever that makes it smaller, and beside its row as long as a page can hold it.
CREATE TABLE aidb_internal.logged_steps_default PARTITION OF aidb_internal.logged_steps DEFAULT WITH (toast_tuple_target = 128);
ALTER TABLE aidb_internal.logged_steps_default ALTER COLUMN steps SET STORAGE MAIN;
COMMENT ON TABLE aidb_internal.logged_steps_default IS
    'Part of aidb_internal.logged_steps: what is in no other partition of it.';
REVOKE ALL ON aidb_internal.logged_steps_default FROM PUBLIC;
ALTER TABLE aidb_internal.logged_steps_default ENABLE ROW LEVEL SECURITY;
SELECT pg_extension_config_dump('aidb_internal.logged_steps_default', '');

-- An index must earn its place. Ids are made in the order of time, which keeps every insert at the right end of each of these.
-- Of the steps' ids only those of messages are looked for (aidb.get_message).
CREATE UNIQUE INDEX logged_steps_prompt_idx ON aidb_internal.logged_steps_default (prompt_id) WHERE prompt_id IS NOT NULL;
CREATE UNIQUE INDEX logged_steps_answer_idx ON aidb_internal.logged_steps_default (answer_id) WHERE answer_id IS NOT NULL;
CREATE INDEX logged_steps_conversation_idx ON aidb_internal.logged_steps_default (conversation_id, created_at);
CREATE INDEX logged_steps_task_idx ON aidb_internal.logged_steps_default (task_id);
ALTER TABLE aidb_internal.logged_steps ENABLE ROW LEVEL SECURITY;
