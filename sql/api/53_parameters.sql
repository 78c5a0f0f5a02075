-- Declared parameters of SQL tools: checked once, when the tool is registered.

-- The parameters as they are stored. required, default and enum may be left out of what is given.
CREATE OR REPLACE FUNCTION aidb_internal.tool_parameters(params jsonb, names text[])
RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    p jsonb;
    given text[] := '{}';
    sorted jsonb := '[]';
    n text;
    k text;
BEGIN
    IF params IS NULL OR jsonb_typeof(params) <> 'array' THEN
        RAISE EXCEPTION 'params must be an array made by aidb.tool_params()' USING ERRCODE = 'invalid_parameter_value',
            HINT = 'Use ''[]'' for a tool without parameters.';
    END IF;
    FOR p IN SELECT * FROM jsonb_array_elements(params) LOOP
        IF jsonb_typeof(p) <> 'object' OR jsonb_typeof(p -> 'name') IS DISTINCT FROM 'string' OR jsonb_typeof(p -> 'type') IS DISTINCT FROM 'string' THEN
            RAISE EXCEPTION 'each parameter must be an object with a name and a type' USING ERRCODE = 'invalid_parameter_value';
        END IF;
        n := p ->> 'name';
        FOR k IN SELECT * FROM jsonb_object_keys(p) LOOP
            IF k NOT IN ('name', 'type', 'description', 'required', 'default', 'enum', 'enum_values', 'base', 'labels') THEN
                RAISE EXCEPTION 'parameter % does not have the key %', aidb_internal.quoted(n), aidb_internal.quoted(k) USING ERRCODE = 'invalid_parameter_value';
            END IF;
        END LOOP;
        IF n !~ '^[A-Za-z_][A-Za-z0-9_]*$' OR octet_length(n) > 63 THEN
            RAISE EXCEPTION 'parameter name % must be letters, digits and underscores', aidb_internal.quoted(n) USING ERRCODE = 'invalid_parameter_value';
        END IF;
        IF n = ANY (given) THEN
            RAISE EXCEPTION 'parameter % is declared twice', aidb_internal.quoted(n) USING ERRCODE = 'invalid_parameter_value';
        END IF;
        IF n <> ALL (names) THEN
            RAISE EXCEPTION 'parameter % is declared but not used in the statement', aidb_internal.quoted(n) USING ERRCODE = 'invalid_parameter_value',
                HINT = format('Write ${%s} where its value belongs, outside literals and comments.', n);
        END IF;
        given := given || n;
    END LOOP;
    FOREACH n IN ARRAY names LOOP
        IF n <> ALL (given) THEN
            RAISE EXCEPTION 'parameter % is used but not declared', aidb_internal.quoted(n) USING ERRCODE = 'invalid_parameter_value',
                HINT = format('Add aidb.tool_param(%L, type, description) to params.', n);
        END IF;
        SELECT e INTO p FROM jsonb_array_elements(params) e WHERE e ->> 'name' = n;
        sorted := sorted || jsonb_build_array(jsonb_strip_nulls(jsonb_build_object(
            'name', n, 'type', p ->> 'type', 'description', coalesce(p ->> 'description', ''),
            'required', coalesce((p ->> 'required')::boolean, NOT p ? 'default'),
            'enum', coalesce(nullif(p -> 'enum', 'null'), nullif(p -> 'enum_values', 'null')))) ||
            CASE WHEN p ? 'default' THEN jsonb_build_object('default', p -> 'default') ELSE '{}' END);
    END LOOP;
    RETURN sorted;
END
$$;
COMMENT ON FUNCTION aidb_internal.tool_parameters(jsonb, text[]) IS
    'Checks declared parameters against those used, and returns them in the order of their numbers. base and labels are made anew by aidb_internal.tool_type.';
REVOKE ALL ON FUNCTION aidb_internal.tool_parameters(jsonb, text[]) FROM PUBLIC;

-- What a parameter's type looks like in JSON when its name does not say it.
CREATE OR REPLACE FUNCTION aidb_internal.tool_type(type text)
RETURNS jsonb
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    WITH RECURSIVE
        declared AS (
            SELECT t.oid, t.typtype, t.typcategory = 'A' AND t.typelem <> 0 AS is_array, CASE WHEN t.typcategory = 'A' THEN t.typelem ELSE t.oid END AS element
            FROM pg_type t WHERE t.oid = type::regtype
        ),
        beneath AS (
            SELECT t.oid, t.typtype, t.typbasetype, 0 AS depth FROM pg_type t JOIN declared d ON t.oid = d.element
            UNION ALL
            SELECT t.oid, t.typtype, t.typbasetype, b.depth + 1 FROM beneath b JOIN pg_type t ON t.oid = b.typbasetype WHERE b.typtype = 'd'
        ),
        base AS (SELECT * FROM beneath ORDER BY depth DESC LIMIT 1)
    SELECT jsonb_strip_nulls(jsonb_build_object(
        'base', CASE WHEN base.depth > 0 THEN format_type(base.oid, NULL) || CASE WHEN declared.is_array THEN '[]' ELSE '' END END,
        'labels', (SELECT jsonb_agg(e.enumlabel ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = base.oid)))
    FROM declared, base
$$;
COMMENT ON FUNCTION aidb_internal.tool_type(text) IS
    'base: the type beneath a domain, or beneath the domain that an array is of. labels: those of an enum.';
REVOKE ALL ON FUNCTION aidb_internal.tool_type(text) FROM PUBLIC;

-- What is wrong with the values that a declaration names itself, its default and those to choose from. Only types of PostgreSQL
-- itself are tried: the input of a type that somebody made may be his code, which does not run with the owner's rights.
CREATE OR REPLACE FUNCTION aidb_internal.check_tool_values(p jsonb, type text)
RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    t pg_type;
    is_default boolean;
    v jsonb;
BEGIN
    SELECT x.* INTO t FROM pg_type x WHERE x.oid = type::regtype;
    FOR is_default, v IN
        SELECT false, e FROM jsonb_array_elements(CASE jsonb_typeof(p -> 'enum') WHEN 'array' THEN p -> 'enum' ELSE '[]' END) e
        UNION ALL
        SELECT true, e FROM jsonb_array_elements(CASE WHEN t.typcategory = 'A' AND jsonb_typeof(p -> 'default') = 'array' THEN p -> 'default'
                                                      ELSE jsonb_build_array(p -> 'default') END) e
        WHERE p ? 'default' AND e <> 'null'
    LOOP
        IF is_default AND p ? 'enum' AND jsonb_typeof(v) <> 'array' AND NOT p -> 'enum' ? (v #>> '{}') THEN
            RAISE EXCEPTION 'default % of parameter % is not one of its values', v, aidb_internal.quoted(p ->> 'name') USING ERRCODE = 'invalid_parameter_value';
        ELSIF is_default AND t.typcategory = 'A' AND jsonb_typeof(p -> 'default') <> 'array'
              OR jsonb_typeof(v) IN ('object', 'array') AND t.typcategory <> 'A' AND t.typname NOT IN ('json', 'jsonb')
                 AND t.typnamespace = 'pg_catalog'::regnamespace THEN
            RAISE EXCEPTION 'value % of parameter % is not one of type %', v, aidb_internal.quoted(p ->> 'name'), p ->> 'type' USING ERRCODE = 'invalid_parameter_value';
        END IF;
        CONTINUE WHEN t.typnamespace <> 'pg_catalog'::regnamespace OR t.typtype <> 'b' OR t.typcategory = 'A' OR t.typname IN ('json', 'jsonb', 'bytea');
        BEGIN
            EXECUTE format('SELECT CAST($1 AS %s)', type::regtype) USING v #>> '{}';
        EXCEPTION WHEN data_exception THEN
            RAISE EXCEPTION 'value % of parameter % is not one of type %', v, aidb_internal.quoted(p ->> 'name'), p ->> 'type' USING ERRCODE = 'invalid_parameter_value';
        END;
    END LOOP;
END
$$;
COMMENT ON FUNCTION aidb_internal.check_tool_values(jsonb, text) IS
    'Raises when a parameter''s default, or one of the values to choose from, is none of its type.';
REVOKE ALL ON FUNCTION aidb_internal.check_tool_values(jsonb, text) FROM PUBLIC;
