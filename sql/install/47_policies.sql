-- Temporal policies: which tool may follow which. A policy is a state machine over the names of tools; a session is where
-- one conversation stands in it; an event is a call that it let pass.
--
-- Only the guard (c_shim/guard.c) writes sessions and events, with the owner's rights. A trigger refuses everybody else who is
-- not a superuser, so that not even pg_write_all_data is a way past it, through a view or directly (api/33_policy_views.sql).

CREATE TABLE aidb_internal.policies (
    name text NOT NULL,
    initial_state text NOT NULL,
    description text,
    mode text NOT NULL DEFAULT 'enforce',
    owner regrole NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    deleted_at timestamptz,
    CONSTRAINT policies_pkey PRIMARY KEY (name),
    CONSTRAINT policies_name_check CHECK (name <> ''),
    CONSTRAINT policies_mode_check CHECK (mode IN ('enforce', 'log_only'))
);
COMMENT ON TABLE aidb_internal.policies IS
    'Temporal policies. Read it through aidb.policies; write it through aidb.create_policy, update_policy and delete_policy. A retired policy keeps its row, because what names it must be refused rather than run unguarded.';
COMMENT ON COLUMN aidb_internal.policies.owner IS
    'Who created the policy: its conditions are evaluated with the rights of this role, and only its members may write them. Kept as the role itself, so it follows a rename; a dump writes its name, so restore roles before data.';
REVOKE ALL ON aidb_internal.policies FROM PUBLIC;
SELECT pg_extension_config_dump('aidb_internal.policies', '');

-- The primary key does policy work: two rows cannot match one call, and no row is a denial.
-- No foreign key: pg_restore -j loads the tables of an extension in any order. Who writes here has locked the policy.
CREATE TABLE aidb_internal.tool_transitions (
    policy text NOT NULL,
    from_state text NOT NULL,
    tool_name text NOT NULL,
    to_state text,
    condition text,
    condition_sql text,
    counts_principal boolean NOT NULL DEFAULT false,
    CONSTRAINT tool_transitions_pkey PRIMARY KEY (policy, from_state, tool_name),
    CONSTRAINT tool_transitions_condition_check CHECK ((condition IS NULL) = (condition_sql IS NULL))
);
COMMENT ON TABLE aidb_internal.tool_transitions IS
    'The transitions of temporal policies. Read it through aidb.tool_transitions; write it through aidb.add_transition and remove_transition.';
COMMENT ON COLUMN aidb_internal.tool_transitions.to_state IS
    'NULL: the state stays what it is.';
COMMENT ON COLUMN aidb_internal.tool_transitions.condition IS
    'The condition as it was written.';
COMMENT ON COLUMN aidb_internal.tool_transitions.condition_sql IS
    'The same as it is evaluated: each name in it says its schema, so it means the same under any search_path. $1 are the arguments, $2 the session, $3 the principal.';
COMMENT ON COLUMN aidb_internal.tool_transitions.counts_principal IS
    'The condition counts over all sessions of a principal, so calls of one principal are let through one at a time.';
REVOKE ALL ON aidb_internal.tool_transitions FROM PUBLIC;
SELECT pg_extension_config_dump('aidb_internal.tool_transitions', '');

-- caller and opened_for are whose row it is, as caller and principal are in agent_task_queue; principal is the end user
-- whose events count together, which an application may name freely. Room in the pages keeps an update of the state out of
-- the index.
CREATE TABLE aidb_internal.policy_sessions (
    id uuid NOT NULL,
    policy text NOT NULL,
    principal text NOT NULL,
    state text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    caller text NOT NULL,
    opened_for text NOT NULL,
    CONSTRAINT policy_sessions_pkey PRIMARY KEY (id, policy)
) WITH (fillfactor = 60);
COMMENT ON TABLE aidb_internal.policy_sessions IS
    'Where a conversation stands in a policy. Read it through aidb.policy_sessions; only the guard writes it.';
REVOKE ALL ON aidb_internal.policy_sessions FROM PUBLIC;
SELECT pg_extension_config_dump('aidb_internal.policy_sessions', '');

-- No foreign key to the session: the guard holds its lock when it inserts, and the check would cost as much as the insert.
CREATE TABLE aidb_internal.session_events (
    id bigint GENERATED ALWAYS AS IDENTITY,
    session_id uuid NOT NULL,
    policy text NOT NULL,
    tool_name text NOT NULL,
    params jsonb NOT NULL,
    from_state text NOT NULL,
    to_state text NOT NULL,
    called_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    principal text NOT NULL,
    rank smallint NOT NULL,
    would_deny text,
    outcome text,
    CONSTRAINT session_events_pkey PRIMARY KEY (id)
);
COMMENT ON TABLE aidb_internal.session_events IS
    'Calls that a policy let pass, in the order id. Append-only. Read it through aidb.session_events; only the guard writes it.';
COMMENT ON COLUMN aidb_internal.session_events.rank IS
    'A call that several machines let pass has a row for each: 0 is the first of the call, 1 the first of its session, 2 any other. Counts read the first ones.';
COMMENT ON COLUMN aidb_internal.session_events.would_deny IS
    'The refusal that the call would have got, were the policy not log_only.';
COMMENT ON COLUMN aidb_internal.session_events.outcome IS
    'unknown: the effect is outside the database and nobody knows whether it happened.';
REVOKE ALL ON aidb_internal.session_events FROM PUBLIC;
SELECT pg_extension_config_dump('aidb_internal.session_events', '');
SELECT pg_extension_config_dump('aidb_internal.session_events_id_seq', '');

-- For the conditions that count: in a time, and since an event.
CREATE INDEX session_events_session_idx ON aidb_internal.session_events (session_id, tool_name, called_at) WHERE rank < 2;
CREATE INDEX session_events_session_id_idx ON aidb_internal.session_events (session_id, tool_name, id) WHERE rank < 2;
CREATE INDEX session_events_principal_idx ON aidb_internal.session_events (principal, tool_name, called_at) WHERE rank = 0;
CREATE INDEX session_events_principal_id_idx ON aidb_internal.session_events (principal, tool_name, id) WHERE rank = 0;

-- Not in a dump: it is counted again where it is missing, and a dump has the events.
CREATE TABLE aidb_internal.event_totals (
    kind text NOT NULL,
    who text NOT NULL,
    tool_name text NOT NULL,
    path text NOT NULL,
    upto bigint NOT NULL,
    calls bigint NOT NULL,
    total numeric NOT NULL,
    since bigint NOT NULL,
    CONSTRAINT event_totals_pkey PRIMARY KEY (kind, who, tool_name, path, upto),
    CONSTRAINT event_totals_kind_check CHECK (kind IN ('session', 'principal'))
);
COMMENT ON TABLE aidb_internal.event_totals IS
    'What the events of a session or a principal came to until one of them, so that a condition over much need not read it all. Only the guard writes it; a change of events by a superuser deletes it.';
COMMENT ON COLUMN aidb_internal.event_totals.who IS 'A session or a principal, as kind says.';
COMMENT ON COLUMN aidb_internal.event_totals.path IS 'The argument that is summed up; the empty text: calls are only counted.';
COMMENT ON COLUMN aidb_internal.event_totals.upto IS 'The id of the last event that may be in it.';
COMMENT ON COLUMN aidb_internal.event_totals.since IS 'The id of the first event that may be in it; 0: all are. Only totals since the same event can be subtracted.';
REVOKE ALL ON aidb_internal.event_totals FROM PUBLIC;
