-- Quotas: how much a role, and the people behind it, may use in a day. Days are those of UTC.
--
-- caller '*' means every role, each with its own quota. principal '' means all principals of a caller together, '*' each
-- of them alone.
CREATE TABLE aidb_internal.quotas (
    caller text NOT NULL,
    principal text NOT NULL,
    tokens bigint,
    cost numeric,
    calls bigint,
    set_by text NOT NULL,
    set_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT quotas_pkey PRIMARY KEY (caller, principal),
    CONSTRAINT quotas_limit_check CHECK (coalesce(tokens::numeric, cost, calls::numeric) IS NOT NULL)
);
COMMENT ON TABLE aidb_internal.quotas IS
    'What may be used in a day. Read it through aidb.quotas; write it through aidb.set_quota.';
REVOKE ALL ON aidb_internal.quotas FROM PUBLIC;
SELECT pg_extension_config_dump('aidb_internal.quotas', '');

-- Written only while there are quotas. A row a call, never updated: concurrent calls of one role must not wait for each
-- other. While the server runs, quotas go by its count in shared memory (c_shim/spent.c), which knows what was rolled back, too.
CREATE TABLE aidb_internal.quota_usage (
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    caller text NOT NULL,
    principal text NOT NULL,
    calls bigint NOT NULL,
    tokens bigint NOT NULL,
    cost numeric NOT NULL
);
COMMENT ON TABLE aidb_internal.quota_usage IS
    'What calls used, as far as quotas count it. Read it through aidb.quota_usage.';
REVOKE ALL ON aidb_internal.quota_usage FROM PUBLIC;
CREATE INDEX quota_usage_caller_idx ON aidb_internal.quota_usage (caller, at);
SELECT pg_extension_config_dump('aidb_internal.quota_usage', '');

