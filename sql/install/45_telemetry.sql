-- Telemetry that stays in the database: spans in OpenTelemetry's form, for viewers that know it. The decision log
-- (aidb.decisions) is the record; these rows repeat it where aidb.otel_client asks for that.
CREATE SCHEMA aidb_otel;
COMMENT ON SCHEMA aidb_otel IS
    'OpenTelemetry spans of aidb. Written by the extension only; readable by aidb_governance.';
REVOKE ALL ON SCHEMA aidb_otel FROM PUBLIC;
-- users too, so that they are told which table they may not read, rather than which schema
GRANT USAGE ON SCHEMA aidb_otel TO aidb_governance, aidb_users;

CREATE SEQUENCE aidb_otel.traces_id_seq;
REVOKE ALL ON aidb_otel.traces_id_seq FROM PUBLIC;
CREATE TABLE aidb_otel.traces (
    -- no identity: what becomes of one in a partition differs between majors of PostgreSQL
    id bigint NOT NULL DEFAULT nextval('aidb_otel.traces_id_seq'),
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    payload_json jsonb,
    payload_binary bytea,
    export_status text NOT NULL DEFAULT 'pending',
    export_attempts integer NOT NULL DEFAULT 0,
    next_export_attempt_at timestamptz,
    last_export_error text,
    trace_id text NOT NULL,
    span_id text NOT NULL,
    parent_span_id text,
    pg_session_id text,
    gen_ai_conversation_id text,
    mcp_session_id text,
    decision_status text,
    CONSTRAINT traces_payload_check CHECK (payload_json IS NOT NULL OR payload_binary IS NOT NULL),
    CONSTRAINT traces_export_status_check CHECK (export_status IN ('pending', 'exported', 'failed'))
) PARTITION BY RANGE (recorded_at);
COMMENT ON TABLE aidb_otel.traces IS
    'One row a span. payload_json is an OTLP export request (protojson) with that one span. Partitioned by time, see aidb.log_partitions.';
COMMENT ON COLUMN aidb_otel.traces.payload_binary IS 'The same in protobuf, for whoever stores it so; aidb itself writes JSON, and this is NULL.';
COMMENT ON COLUMN aidb_otel.traces.export_status IS 'pending, exported or failed: for an exporter to keep account of. aidb has none, so it stays pending.';
COMMENT ON COLUMN aidb_otel.traces.export_attempts IS 'How often an exporter has tried.';
COMMENT ON COLUMN aidb_otel.traces.next_export_attempt_at IS 'When an exporter is to try again.';
COMMENT ON COLUMN aidb_otel.traces.last_export_error IS 'Why the last try failed.';
COMMENT ON COLUMN aidb_otel.traces.trace_id IS 'The run: 32 hexadecimal digits.';
COMMENT ON COLUMN aidb_otel.traces.span_id IS '16 hexadecimal digits.';
COMMENT ON COLUMN aidb_otel.traces.parent_span_id IS 'NULL for the root of a trace.';
COMMENT ON COLUMN aidb_otel.traces.pg_session_id IS 'The session, as %c of log_line_prefix has it; root spans only.';
COMMENT ON COLUMN aidb_otel.traces.mcp_session_id IS 'The session with an MCP server that a call was made in, as the server names it; else NULL.';
COMMENT ON COLUMN aidb_otel.traces.decision_status IS 'allowed or denied for spans named purpose_decision, else NULL.';
REVOKE ALL ON aidb_otel.traces FROM PUBLIC;
GRANT SELECT ON aidb_otel.traces TO aidb_governance;
SELECT pg_extension_config_dump('aidb_otel.traces_id_seq', '');

-- As that of action_log, in 43_runs.sql.
CREATE TABLE aidb_otel.traces_default PARTITION OF aidb_otel.traces (
    CONSTRAINT traces_pkey PRIMARY KEY (id)
) DEFAULT;
COMMENT ON TABLE aidb_otel.traces_default IS
    'Part of aidb_otel.traces: what is in no other partition of it.';
REVOKE ALL ON aidb_otel.traces_default FROM PUBLIC;
ALTER TABLE aidb_otel.traces_default ENABLE ROW LEVEL SECURITY;
SELECT pg_extension_config_dump('aidb_otel.traces_default', '');

CREATE INDEX traces_trace_id_idx ON aidb_otel.traces_default (trace_id);
CREATE INDEX traces_pg_session_id_idx ON aidb_otel.traces_default (pg_session_id) WHERE pg_session_id IS NOT NULL;
CREATE INDEX traces_gen_ai_conversation_id_idx ON aidb_otel.traces_default (gen_ai_conversation_id) WHERE gen_ai_conversation_id IS NOT NULL;
CREATE INDEX traces_mcp_session_id_idx ON aidb_otel.traces_default (mcp_session_id) WHERE mcp_session_id IS NOT NULL;
CREATE INDEX traces_decision_status_idx ON aidb_otel.traces_default (decision_status) WHERE decision_status IS NOT NULL;
