-- The three roles through which aidb hands out rights. None can log in, none is a member of another, and none has any
-- right on user data. Roles belong to the cluster, not to the database: they may exist already, made by aidb in another
-- database, and they stay when the extension is dropped.
DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['aidb_users', 'aidb_governance', 'aidb_auditor'] LOOP
        CONTINUE WHEN EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = wanted);
        BEGIN
            EXECUTE pg_catalog.format('CREATE ROLE %I NOLOGIN', wanted);
        EXCEPTION
            -- CREATE EXTENSION in another database of the cluster came first.
            WHEN duplicate_object OR unique_violation THEN NULL;
        END;
    END LOOP;
END
$$;

COMMENT ON ROLE aidb_users IS
    'aidb: may create and call agents, models and tools and read the public views. Grants nothing on user data.';
COMMENT ON ROLE aidb_governance IS
    'aidb: may create, repoint and retire purposes. Independent of aidb_users.';
COMMENT ON ROLE aidb_auditor IS
    'aidb: may read everybody''s conversations, tasks and activity log. Cannot run anything.';

