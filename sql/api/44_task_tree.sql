-- A call with all that was delegated in it.

CREATE OR REPLACE FUNCTION aidb_internal.task_tree(task_id uuid)
RETURNS TABLE (
    task_id uuid,
    parent_task_id uuid,
    depth integer,
    agent text,
    status aidb.task_status,
    role text,
    conversation_id uuid,
    rounds integer,
    budget_consumed integer,
    error text,
    created_at timestamptz,
    completed_at timestamptz,
    cost numeric,
    tree_tokens bigint,
    tree_cost numeric
)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    -- The argument is $1: its name is also that of a column.
    WITH RECURSIVE tree AS (
        SELECT t.id, 0 AS depth, ARRAY[t.created_at] AS path, ARRAY[t.id] AS above
        FROM aidb_internal.agent_task_queue t
        WHERE t.id = $1
          AND ((t.caller = aidb_internal.caller() AND t.principal = aidb_internal.caller_principal()
              AND t.created_at >= (SELECT aidb_internal.history_since()))
               OR pg_has_role(aidb_internal.caller(), 'aidb_auditor', 'MEMBER'))
        UNION ALL
        -- Whose the first task is, theirs are the others.
        SELECT t.id, p.depth + 1, p.path || t.created_at, p.above || t.id
        FROM tree p
        JOIN aidb_internal.agent_task_queue t ON t.parent_task_id = p.id
    )
    SELECT t.id, t.parent_task_id, p.depth, coalesce(a.name, d.name), t.status, t.role, t.conversation_id, t.rounds,
           t.budget_consumed, t.error, t.created_at, t.completed_at, t.cost, s.tokens, s.cost
    FROM tree p
    JOIN aidb_internal.agent_task_queue t ON t.id = p.id
    CROSS JOIN LATERAL (
        SELECT sum(q.budget_consumed)::bigint AS tokens, sum(q.cost) AS cost
        FROM tree below
        JOIN aidb_internal.agent_task_queue q ON q.id = below.id
        WHERE t.id = ANY (below.above)
    ) s
    LEFT JOIN aidb_internal.agents a ON a.id = t.agent_id
    LEFT JOIN aidb_internal.deleted_agents d ON d.id = t.agent_id
    ORDER BY p.path, p.depth
$$;
COMMENT ON FUNCTION aidb_internal.task_tree(uuid) IS 'Behind aidb.task_tree.';
REVOKE ALL ON FUNCTION aidb_internal.task_tree(uuid) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.task_tree(task_id uuid)
RETURNS TABLE (
    task_id uuid,
    parent_task_id uuid,
    depth integer,
    agent text,
    status aidb.task_status,
    role text,
    conversation_id uuid,
    rounds integer,
    budget_consumed integer,
    error text,
    created_at timestamptz,
    completed_at timestamptz,
    cost numeric,
    tree_tokens bigint,
    tree_cost numeric
)
LANGUAGE c STABLE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.task_tree(uuid) IS
    'A call of an agent with all that was delegated in it: one row a task, each followed by its own delegates'' in the order of time. depth: 0 for the task that was asked for. role: what its tools ran as. budget_consumed, cost: input and output tokens of that task alone, and their price. tree_tokens, tree_cost: those of the task and all below it. No row for a task that does not exist or is somebody else''s. Privileges: aidb_users, for their own calls; members of aidb_auditor for all.';
REVOKE ALL ON FUNCTION aidb.task_tree(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.task_tree(uuid) TO aidb_users, aidb_auditor;
