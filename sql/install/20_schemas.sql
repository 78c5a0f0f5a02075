-- No IF NOT EXISTS: a schema of that name that is there already was made by somebody else, and what it holds could stand
-- in front of what this script creates.

CREATE SCHEMA aidb;
COMMENT ON SCHEMA aidb IS
    'The public interface of aidb: functions, views and types.';
REVOKE ALL ON SCHEMA aidb FROM PUBLIC;
GRANT USAGE ON SCHEMA aidb TO aidb_users, aidb_governance, aidb_auditor;

CREATE SCHEMA aidb_internal;
COMMENT ON SCHEMA aidb_internal IS
    'What is behind the interface of aidb: tables, and functions that only the extension calls. Of all this, users may read action_log and agent_task_queue (their own rows); the rest may change with any release.';
REVOKE ALL ON SCHEMA aidb_internal FROM PUBLIC;
-- USAGE lets a role name what is inside; what it may touch is said with each object, and for nearly all of them it is
-- nothing. The governors are here so that they are told which table they may not write, rather than which schema.
GRANT USAGE ON SCHEMA aidb_internal TO aidb_users, aidb_auditor, aidb_governance;

