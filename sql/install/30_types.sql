-- The labels and their order are part of the interface.

CREATE TYPE aidb.budget_strategy AS ENUM (
    'ignore',
    'error',
    'summarize',
    'attempt_complete'
);
COMMENT ON TYPE aidb.budget_strategy IS
    'What happens when a run exceeds one of its budgets. ignore: one warning, then go on (up to the ceiling of 25 rounds). error: halt with an error. summarize: ask the model for a short report and return that, also at the ceiling. attempt_complete: tell the model that its time is nearly over, allow 3 more rounds, then halt with an error.';
REVOKE ALL ON TYPE aidb.budget_strategy FROM PUBLIC;
GRANT USAGE ON TYPE aidb.budget_strategy TO aidb_users, aidb_auditor;

CREATE TYPE aidb.task_status AS ENUM (
    'PENDING',
    'IN_PROGRESS',
    'RECOVERY',
    'AWAIT_APPROVAL',
    'DENIED',
    'ERROR',
    'TIMEOUT',
    'CANCELED',
    'SUCCESS',
    'EVALUATING',
    'COMPLETE'
);
COMMENT ON TYPE aidb.task_status IS
    'State of a task (one call of an agent) or of one of its actions. A call that ran in its caller''s session ends as SUCCESS, ERROR, TIMEOUT (its time budget), CANCELED or DENIED.';
REVOKE ALL ON TYPE aidb.task_status FROM PUBLIC;
GRANT USAGE ON TYPE aidb.task_status TO aidb_users, aidb_auditor;

CREATE TYPE aidb.action_type AS ENUM (
    'user_prompt',
    'model_request',
    'model_response',
    'tool_call',
    'tool_response',
    'answer',
    'error',
    'compaction',
    'approval'
);
COMMENT ON TYPE aidb.action_type IS
    'Kind of a step in the activity log. One round is a model_request, its model_response, then a tool_call and a tool_response for each call the model asked for; the last round ends in answer or error. approval: an action was proposed to a person, confirmed, rejected, let expire or undone, which may be outside of any task.';
REVOKE ALL ON TYPE aidb.action_type FROM PUBLIC;
GRANT USAGE ON TYPE aidb.action_type TO aidb_users, aidb_auditor;

