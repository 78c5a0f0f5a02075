-- Whose the history under a name is. Tasks, log, decisions and the like name the role that called; a role that is dropped
-- and made anew under the name of another must not be shown what that one did. A row is written when a role first calls
-- something that leaves a trace: from then on the name is that role's.
--
-- Rows are only added. There is no key, for a second session of the same role would wait for the first one's transaction;
-- the earliest row of a role under a name counts. role is a regrole, so that a dump carries it by name and a restore finds
-- the role that has the name there.
CREATE TABLE aidb_internal.callers (
    name text NOT NULL,
    role regrole NOT NULL,
    since timestamptz NOT NULL
);
COMMENT ON TABLE aidb_internal.callers IS
    'Since when a name has stood for which role in the history. aidb.history_since reads it.';
REVOKE ALL ON aidb_internal.callers FROM PUBLIC;
SELECT pg_extension_config_dump('aidb_internal.callers', '');
CREATE INDEX callers_name_idx ON aidb_internal.callers (name);
