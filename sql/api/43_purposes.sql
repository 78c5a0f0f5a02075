-- Purposes. Unlike the agent functions these raise. Only aidb_governance may call them; a governor need not hold the
-- role it maps, and the role need not exist.

CREATE OR REPLACE FUNCTION aidb_internal.check_purpose_arguments(name text, role text)
RETURNS void
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    problem text := aidb_internal.name_problem('purpose name', name);
BEGIN
    IF problem IS NULL AND aidb_internal.is_blank(role) THEN
        problem := 'Invalid parameters: purpose role must not be empty';
    END IF;
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION '%', problem USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.check_purpose_arguments(text, text) IS
    'Raises when a purpose''s name or role is blank.';
REVOKE ALL ON FUNCTION aidb_internal.check_purpose_arguments(text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.check_purpose_policy(policy text)
RETURNS void
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    problem text := aidb_internal.policy_problem(policy);
BEGIN
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION '%', problem
            USING ERRCODE = CASE WHEN problem LIKE '%not found' THEN 'undefined_object' ELSE 'object_not_in_prerequisite_state' END;
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.check_purpose_policy(text) IS
    'Raises when a purpose cannot be given this policy.';
REVOKE ALL ON FUNCTION aidb_internal.check_purpose_policy(text) FROM PUBLIC;

-- Servers need not be registered yet, as the role need not exist.
CREATE OR REPLACE FUNCTION aidb_internal.check_allowed_servers(servers text[])
RETURNS void
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    problem text := aidb_internal.name_list_problem('allowed_servers', servers);
BEGIN
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION '%', problem USING ERRCODE = 'invalid_parameter_value';
    ELSIF '*' = ANY (servers) AND cardinality(servers) > 1 THEN
        RAISE EXCEPTION 'Invalid parameters: allowed_servers must not have ''*'' beside names' USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.check_allowed_servers(text[]) IS
    'Raises when a list of MCP servers is no list of names.';
REVOKE ALL ON FUNCTION aidb_internal.check_allowed_servers(text[]) FROM PUBLIC;

-- A governor is told what will not work, but not stopped: the role is judged when a tool runs, as it is then.
CREATE OR REPLACE FUNCTION aidb_internal.remark_on_role(role text, elevated boolean)
RETURNS void
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    r pg_catalog.pg_roles;
BEGIN
    SELECT * INTO r FROM pg_catalog.pg_roles p WHERE p.rolname = role;
    IF NOT FOUND THEN
        RAISE NOTICE 'role % does not exist yet', aidb_internal.quoted(role);
    ELSIF (r.rolsuper OR r.rolbypassrls) AND NOT elevated THEN
        RAISE WARNING 'role % is one that tools may not run as', aidb_internal.quoted(role)
            USING DETAIL = 'It is a superuser or bypasses row-level security.',
                  HINT = 'Choose another role, or say allow_elevated => true.';
    ELSIF r.rolsuper OR r.rolbypassrls THEN
        RAISE WARNING 'tools of this purpose run with all the rights of role %', aidb_internal.quoted(role);
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.remark_on_role(text, boolean) IS
    'Says so when the role of a purpose does not exist or has too many rights to be used.';
REVOKE ALL ON FUNCTION aidb_internal.remark_on_role(text, boolean) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.create_purpose(name text, role text, description text, allow_elevated boolean, policy text, allowed_servers text[])
RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_variable
BEGIN
    PERFORM aidb_internal.check_purpose_arguments(name, role);
    PERFORM aidb_internal.check_purpose_policy(policy);
    PERFORM aidb_internal.check_allowed_servers(allowed_servers);
    -- A retired purpose is revived; one that is live makes the statement touch no row.
    INSERT INTO aidb_internal.purpose_registry AS p (name, role, role_oid, description, allow_elevated, policy, allowed_servers)
    VALUES (name, role, (SELECT r.oid FROM pg_roles r WHERE r.rolname = role), description, coalesce(allow_elevated, false), nullif(policy, ''),
            nullif(allowed_servers, '{*}'))
    ON CONFLICT ON CONSTRAINT purpose_registry_pkey DO UPDATE SET
        role = excluded.role,
        role_oid = excluded.role_oid,
        description = coalesce(excluded.description, p.description),
        allow_elevated = excluded.allow_elevated,
        allowed_servers = excluded.allowed_servers,
        policy = CASE WHEN create_purpose.policy = '' THEN NULL ELSE coalesce(excluded.policy, p.policy) END,
        updated_at = clock_timestamp(),
        deleted_at = NULL
    WHERE p.deleted_at IS NOT NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'purpose % already exists', aidb_internal.quoted(name) USING ERRCODE = 'duplicate_object';
    END IF;
    PERFORM aidb_internal.remark_on_role(role, coalesce(allow_elevated, false));
END
$$;
COMMENT ON FUNCTION aidb_internal.create_purpose(text, text, text, boolean, text, text[]) IS
    'Behind aidb.create_purpose.';
REVOKE ALL ON FUNCTION aidb_internal.create_purpose(text, text, text, boolean, text, text[]) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.create_purpose(name text, role text, description text DEFAULT NULL, allow_elevated boolean DEFAULT NULL, policy text DEFAULT NULL, allowed_servers text[] DEFAULT NULL)
RETURNS void
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.create_purpose(text, text, text, boolean, text, text[]) IS
    'Registers a purpose: tool calls of agents that carry it run as role. A retired purpose of that name is revived with the new role; its description is kept when none is given. The role need not exist and the caller need not be a member of it: both are looked at when a tool runs. allow_elevated lets tools run as a superuser, as a role that bypasses row-level security, may create roles or replicate, or is a member of pg_execute_server_program and the like; without it they are refused. policy: a temporal policy that the tool calls of every agent with this purpose must be permitted by, besides the agent''s own; a revived purpose keeps the one that it had, '''' names none. allowed_servers: the MCP servers whose tools agents with the purpose may call; NULL or {*}: all, {}: none. Raises 22023 when name or role is blank and 42710 when a live purpose has the name. Privileges: aidb_governance.';
REVOKE ALL ON FUNCTION aidb.create_purpose(text, text, text, boolean, text, text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.create_purpose(text, text, text, boolean, text, text[]) TO aidb_governance;

CREATE OR REPLACE FUNCTION aidb_internal.update_purpose(name text, role text, description text, allow_elevated boolean, policy text, allowed_servers text[])
RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_variable
BEGIN
    PERFORM aidb_internal.check_purpose_arguments(name, coalesce(role, 'unchanged'));
    PERFORM aidb_internal.check_purpose_policy(policy);
    PERFORM aidb_internal.check_allowed_servers(allowed_servers);
    IF role IS NULL AND description IS NULL AND allow_elevated IS NULL AND policy IS NULL AND allowed_servers IS NULL THEN
        RAISE NOTICE 'nothing to change';
        RETURN;
    END IF;
    UPDATE aidb_internal.purpose_registry p SET
        role = coalesce(update_purpose.role, p.role),
        role_oid = CASE WHEN update_purpose.role IS NULL THEN p.role_oid ELSE (SELECT r.oid FROM pg_roles r WHERE r.rolname = update_purpose.role) END,
        description = coalesce(update_purpose.description, p.description),
        allow_elevated = coalesce(update_purpose.allow_elevated, p.allow_elevated),
        allowed_servers = nullif(coalesce(update_purpose.allowed_servers, p.allowed_servers), '{*}'),
        policy = nullif(coalesce(update_purpose.policy, p.policy), ''),
        updated_at = clock_timestamp()
    WHERE p.name = update_purpose.name AND p.deleted_at IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'purpose % not found', aidb_internal.quoted(name) USING ERRCODE = 'undefined_object';
    END IF;
    IF role IS NOT NULL THEN
        PERFORM aidb_internal.remark_on_role(role, (SELECT p.allow_elevated FROM aidb_internal.purpose_registry p WHERE p.name = update_purpose.name));
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.update_purpose(text, text, text, boolean, text, text[]) IS
    'Behind aidb.update_purpose.';
REVOKE ALL ON FUNCTION aidb_internal.update_purpose(text, text, text, boolean, text, text[]) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.update_purpose(name text, role text DEFAULT NULL, description text DEFAULT NULL, allow_elevated boolean DEFAULT NULL, policy text DEFAULT NULL, allowed_servers text[] DEFAULT NULL)
RETURNS void
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.update_purpose(text, text, text, boolean, text, text[]) IS
    'Changes the role, description, allow_elevated, allowed_servers ({*}: all) or temporal policy of a live purpose; NULL leaves it as it is, and the policy '''' takes the policy away. Takes effect with the next call of every agent that carries the purpose. With nothing to change it succeeds without looking at the registry. Raises 22023 when name or role is blank and 42704 when there is no live purpose of that name. Privileges: aidb_governance.';
REVOKE ALL ON FUNCTION aidb.update_purpose(text, text, text, boolean, text, text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.update_purpose(text, text, text, boolean, text, text[]) TO aidb_governance;

CREATE OR REPLACE FUNCTION aidb_internal.delete_purpose(name text)
RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_variable
DECLARE
    retired boolean;
BEGIN
    PERFORM aidb_internal.check_purpose_arguments(name, 'unchanged');
    SELECT p.deleted_at IS NOT NULL INTO retired
    FROM aidb_internal.purpose_registry p WHERE p.name = delete_purpose.name FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'purpose % not found', aidb_internal.quoted(name) USING ERRCODE = 'undefined_object';
    ELSIF retired THEN
        RAISE EXCEPTION 'purpose % already deleted', aidb_internal.quoted(name)
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    UPDATE aidb_internal.purpose_registry p SET deleted_at = clock_timestamp(), updated_at = clock_timestamp()
    WHERE p.name = delete_purpose.name;
END
$$;
COMMENT ON FUNCTION aidb_internal.delete_purpose(text) IS
    'Behind aidb.delete_purpose.';
REVOKE ALL ON FUNCTION aidb_internal.delete_purpose(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.delete_purpose(name text)
RETURNS void
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.delete_purpose(text) IS
    'Retires a purpose. Agents that carry it are refused from their next call on; they never fall back to their caller''s rights. aidb.create_purpose revives it. Raises 42704 when there is no such purpose and 55000 when it is retired already. Privileges: aidb_governance.';
REVOKE ALL ON FUNCTION aidb.delete_purpose(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.delete_purpose(text) TO aidb_governance;

