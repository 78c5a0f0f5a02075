-- What each call of a model used. aidb_internal.action_log says whose rows they are.

CREATE OR REPLACE VIEW aidb.model_calls WITH (security_barrier) AS
SELECT
    l.id,
    l.conversation_id,
    l.task_id,
    l.agent_id,
    CASE l.action_type WHEN 'compaction' THEN 'summary' ELSE 'reply' END AS kind,
    l.response_payload ->> 'model' AS model,
    coalesce(l.response_payload #> '{estimated,input}', nullif(l.response_payload #> '{usage,input}', 'null'))::bigint AS input_tokens,
    coalesce(l.response_payload #> '{estimated,output}', nullif(l.response_payload #> '{usage,output}', 'null'))::bigint AS output_tokens,
    nullif(l.response_payload #> '{usage,cached}', 'null')::bigint AS cached_tokens,
    nullif(l.response_payload #> '{usage,reasoning}', 'null')::bigint AS reasoning_tokens,
    coalesce(l.response_payload ? 'estimated', false) AS estimated,
    (l.response_payload -> 'cost')::numeric AS cost,
    l.completed_at - l.created_at AS latency,
    l.status,
    l.error,
    l.created_at
FROM aidb_internal.action_log l
WHERE l.action_type IN ('model_response', 'compaction');
COMMENT ON VIEW aidb.model_calls IS
    'One row for each call of a model by an agent: what it used, cost and took. Readers see their own calls (same role and same aidb.principal), aidb_auditor all. Privileges: SELECT for aidb_users and aidb_auditor.';
COMMENT ON COLUMN aidb.model_calls.id IS 'The step, as id in aidb_internal.action_log.';
COMMENT ON COLUMN aidb.model_calls.kind IS 'reply, or summary: a compaction.';
COMMENT ON COLUMN aidb.model_calls.model IS 'The name that the provider gives it.';
COMMENT ON COLUMN aidb.model_calls.input_tokens IS 'As the provider counted, or estimated where it did not say: one token for each four bytes of text.';
COMMENT ON COLUMN aidb.model_calls.output_tokens IS 'As input_tokens.';
COMMENT ON COLUMN aidb.model_calls.cached_tokens IS 'Those of the input that the provider had seen before; NULL: it did not say.';
COMMENT ON COLUMN aidb.model_calls.reasoning_tokens IS 'Those of the output that were thinking; NULL: the provider did not say.';
COMMENT ON COLUMN aidb.model_calls.estimated IS 'Whether a count was not given by the provider.';
COMMENT ON COLUMN aidb.model_calls.cost IS 'By the price in the model''s config; NULL: it has none.';
COMMENT ON COLUMN aidb.model_calls.latency IS 'From the request to the whole reply, retries included.';
REVOKE ALL ON aidb.model_calls FROM PUBLIC;
GRANT SELECT ON aidb.model_calls TO aidb_users, aidb_auditor;

