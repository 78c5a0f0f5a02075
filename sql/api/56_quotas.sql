-- Quotas. Enforced by the Go side, at each request to a model (extension/internal/agent/meter.go).

CREATE OR REPLACE VIEW aidb.quotas AS
SELECT
    nullif(q.caller, '*') AS caller,
    nullif(q.principal, '') AS principal,
    q.tokens,
    q.cost,
    q.calls,
    q.set_by,
    q.set_at
FROM aidb_internal.quotas q;
COMMENT ON VIEW aidb.quotas IS
    'What may be used in a day (UTC). Privileges: SELECT for aidb_users, aidb_governance and aidb_auditor.';
COMMENT ON COLUMN aidb.quotas.caller IS 'The role; NULL: every role, each with its own.';
COMMENT ON COLUMN aidb.quotas.principal IS 'The end user behind it; *: each of them, NULL: all of them together.';
REVOKE ALL ON aidb.quotas FROM PUBLIC;
GRANT SELECT ON aidb.quotas TO aidb_users, aidb_governance, aidb_auditor;

CREATE OR REPLACE VIEW aidb.quota_usage WITH (security_barrier) AS
SELECT
    (u.at AT TIME ZONE 'UTC')::date AS day,
    u.caller,
    u.principal,
    sum(u.calls)::bigint AS calls,
    sum(u.tokens)::bigint AS tokens,
    sum(u.cost) AS cost
FROM aidb_internal.quota_usage u
WHERE (u.caller = CURRENT_USER AND u.principal = (SELECT coalesce(nullif(current_setting('aidb.principal', true), ''), CURRENT_USER))
       AND u.at >= (SELECT aidb.history_since()))
   OR (SELECT pg_has_role(CURRENT_USER, 'aidb_auditor', 'MEMBER') OR pg_has_role(CURRENT_USER, 'aidb_governance', 'MEMBER'))
GROUP BY 1, 2, 3;
COMMENT ON VIEW aidb.quota_usage IS
    'What was used on a day (UTC), as far as there were quotas to count for and it was committed. Readers see their own, aidb_governance and aidb_auditor all. Privileges: SELECT for aidb_users, aidb_governance and aidb_auditor.';
COMMENT ON COLUMN aidb.quota_usage.calls IS 'Calls that asked a model: of agents, delegates included in the call above, and of generate_text.';
COMMENT ON COLUMN aidb.quota_usage.tokens IS 'Input and output, estimated where the provider did not say.';
REVOKE ALL ON aidb.quota_usage FROM PUBLIC;
GRANT SELECT ON aidb.quota_usage TO aidb_users, aidb_governance, aidb_auditor;

CREATE OR REPLACE FUNCTION aidb_internal.set_quota(caller text, principal text, tokens bigint, cost numeric, calls bigint)
RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_variable
DECLARE
    problem text;
BEGIN
    IF caller = '*' THEN
        caller := NULL;
    END IF;
    IF caller IS NOT NULL AND aidb_internal.is_blank(caller) THEN
        problem := 'Invalid parameters: caller must not be empty';
    ELSIF principal IS NOT NULL AND aidb_internal.is_blank(principal) THEN
        problem := 'Invalid parameters: principal must not be empty';
    ELSIF caller IS NULL AND principal <> '*' THEN
        problem := 'Invalid parameters: a principal needs the caller that it is behind';
    ELSIF tokens < 0 OR calls < 0 OR cost < 0 OR cost >= 9000000 THEN
        problem := 'Invalid parameters: tokens, cost and calls must not be below zero, and cost less than 9000000';
    END IF;
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION '%', problem USING ERRCODE = 'invalid_parameter_value';
    ELSIF NOT EXISTS (SELECT FROM pg_roles r WHERE caller IS NULL OR r.rolname = caller) THEN
        RAISE NOTICE 'role % does not exist yet', aidb_internal.quoted(caller);
    END IF;
    DELETE FROM aidb_internal.quotas q
    WHERE q.caller = coalesce(set_quota.caller, '*') AND q.principal = coalesce(set_quota.principal, '');
    IF tokens IS NOT NULL OR cost IS NOT NULL OR calls IS NOT NULL THEN
        INSERT INTO aidb_internal.quotas (caller, principal, tokens, cost, calls, set_by)
        VALUES (coalesce(caller, '*'), coalesce(principal, ''), tokens, cost, calls, aidb_internal.caller());
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.set_quota(text, text, bigint, numeric, bigint) IS
    'Behind aidb.set_quota.';
REVOKE ALL ON FUNCTION aidb_internal.set_quota(text, text, bigint, numeric, bigint) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.set_quota(
    caller text DEFAULT NULL,
    principal text DEFAULT NULL,
    tokens bigint DEFAULT NULL,
    cost numeric DEFAULT NULL,
    calls bigint DEFAULT NULL
)
RETURNS void
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.set_quota(text, text, bigint, numeric, bigint) IS
    'Limits what may be used in a day (UTC), in place of what was set for the same caller and principal. caller: the role that calls; NULL: every role, each with its own quota. principal: the end user behind it (aidb.principal); ''*'': each of them, NULL: all of them together. tokens: input and output. cost: by the price of the models, which must have one. calls: of agents and of generate_text. All three NULL: no quota any more. Every quota that fits a call holds. They are compared before each request to a model, so one request may overshoot; a call that is over ends with an error. What a call uses counts as it is used, for all sessions of the server, whatever becomes of its transaction; after a restart of the server, what was committed counts of that day. Raises 22023 for a wrong argument. Privileges: aidb_governance.';
REVOKE ALL ON FUNCTION aidb.set_quota(text, text, bigint, numeric, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.set_quota(text, text, bigint, numeric, bigint) TO aidb_governance;

