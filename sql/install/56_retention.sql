-- The partitions of the logs, and what must stay of decisions that are gone: enough for aidb.verify_decisions to go on
-- from where they end.

CREATE TABLE aidb_internal.log_partitions (
    kind text NOT NULL,
    name text NOT NULL,
    from_at timestamptz NOT NULL,
    until_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    dropped_at timestamptz,
    dropped_by text,
    last_id uuid,
    last_hash bytea,
    CONSTRAINT log_partitions_pkey PRIMARY KEY (kind, name)
);
COMMENT ON TABLE aidb_internal.log_partitions IS
    'The partitions that were made, those that are gone included. One that is not marked as dropped and not there was taken away by somebody else: aidb.verify_decisions says so. Read it through aidb.log_partitions.';
COMMENT ON COLUMN aidb_internal.log_partitions.name IS
    'A default partition has a row once something in it was deleted: what was older than until_at.';
COMMENT ON COLUMN aidb_internal.log_partitions.last_id IS 'Of decisions: the newest that went, and last_hash its hash.';
REVOKE ALL ON aidb_internal.log_partitions FROM PUBLIC;
SELECT pg_extension_config_dump('aidb_internal.log_partitions', '');

-- Of decisions that are gone, those that others follow: of each run that goes on after them its last, and what was the
-- newest when a later run began. A few for each partition, as many as there were runs at a time.
CREATE TABLE aidb_internal.kept_hashes (
    hash bytea NOT NULL,
    chain_id uuid NOT NULL,
    chain_n integer NOT NULL,
    at timestamptz NOT NULL,
    CONSTRAINT kept_hashes_pkey PRIMARY KEY (hash)
);
COMMENT ON TABLE aidb_internal.kept_hashes IS
    'The hashes of decisions that were dropped and that others follow.';
REVOKE ALL ON aidb_internal.kept_hashes FROM PUBLIC;
SELECT pg_extension_config_dump('aidb_internal.kept_hashes', '');

CREATE TABLE aidb_internal.kept_counts (
    task_id uuid NOT NULL,
    decisions integer NOT NULL,
    CONSTRAINT kept_counts_pkey PRIMARY KEY (task_id)
);
COMMENT ON TABLE aidb_internal.kept_counts IS
    'How many decisions were dropped of tasks that have others still.';
REVOKE ALL ON aidb_internal.kept_counts FROM PUBLIC;
SELECT pg_extension_config_dump('aidb_internal.kept_counts', '');
