-- The tool that describes one object. Rules as in api/80_catalog_list.sql, but whatever is asked for by name is shown,
-- extensions' objects included.

CREATE OR REPLACE FUNCTION aidb.catalog_get_object_details(schema text DEFAULT NULL, object_name text DEFAULT NULL)
RETURNS TABLE (
    schema_name text,
    object_name text,
    object_type text,
    comment text,
    columns jsonb,
    primary_key jsonb,
    unique_keys jsonb,
    foreign_keys jsonb,
    check_constraints jsonb,
    arguments text,
    return_type text,
    truncated boolean
)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    WITH asked (schema, name) AS MATERIALIZED (
        SELECT nullif($1, ''), nullif($2, '')
    ),
    usable AS MATERIALIZED (
        SELECT s.oid, s.nspname
        FROM pg_namespace s, asked a
        WHERE (a.schema IS NULL OR s.nspname = a.schema) AND has_schema_privilege(s.oid, 'USAGE')
    ),
    found AS (
        SELECT u.nspname, c.relname AS name,
               CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' ELSE 'table' END AS type,
               'pg_class'::regclass AS class, c.oid
        FROM usable u
        JOIN pg_class c ON c.relnamespace = u.oid
        CROSS JOIN asked a
        WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
          -- Models like to write schema.table where only a table is asked for.
          AND (c.relname = a.name OR (a.schema IS NULL AND u.nspname || '.' || c.relname = a.name))
          AND (has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
               OR has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE, REFERENCES'))
      UNION ALL
        SELECT u.nspname, p.proname,
               CASE p.prokind WHEN 'p' THEN 'procedure' ELSE 'function' END,
               'pg_proc'::regclass, p.oid
        FROM usable u
        JOIN pg_proc p ON p.pronamespace = u.oid
        CROSS JOIN asked a
        WHERE (p.proname = a.name OR (a.schema IS NULL AND u.nspname || '.' || p.proname = a.name))
          AND has_function_privilege(p.oid, 'EXECUTE')
    ),
    shown AS (
        SELECT f.*, count(*) OVER () AS total
        FROM found f
        ORDER BY f.nspname ~ '^pg_' OR f.nspname = 'information_schema', f.nspname, f.name, f.oid
        LIMIT 200
    )
    SELECT
        o.nspname::text,
        o.name::text,
        o.type,
        obj_description(o.oid, o.class::text::name),
        (SELECT jsonb_agg(
                    jsonb_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod), 'not_null', a.attnotnull)
                    || jsonb_strip_nulls(jsonb_build_object(
                           'default', CASE WHEN a.attgenerated = '' THEN pg_get_expr(d.adbin, d.adrelid) END,
                           'generated', CASE WHEN a.attgenerated <> '' THEN pg_get_expr(d.adbin, d.adrelid)
                                             WHEN a.attidentity = 'a' THEN 'always as identity'
                                             WHEN a.attidentity = 'd' THEN 'by default as identity' END,
                           'comment', col_description(a.attrelid, a.attnum),
                           'values', (SELECT jsonb_agg(e.enumlabel ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = a.atttypid)))
                    ORDER BY a.attnum)
         FROM pg_attribute a
         LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
         WHERE o.class = 'pg_class'::regclass AND a.attrelid = o.oid AND a.attnum > 0 AND NOT a.attisdropped
           AND has_column_privilege(a.attrelid, a.attnum, 'SELECT, INSERT, UPDATE, REFERENCES')),
        keys.primary_key,
        keys.unique_keys,
        keys.foreign_keys,
        keys.check_constraints,
        CASE WHEN o.class = 'pg_proc'::regclass THEN pg_get_function_arguments(o.oid) END,
        CASE WHEN o.class = 'pg_proc'::regclass THEN pg_get_function_result(o.oid) END,
        o.total > 200
    FROM shown o
    LEFT JOIN LATERAL (
        SELECT
            (jsonb_agg(to_jsonb(k.columns)) FILTER (WHERE k.contype = 'p')) -> 0 AS primary_key,
            jsonb_agg(to_jsonb(k.columns) ORDER BY k.conname) FILTER (WHERE k.contype = 'u') AS unique_keys,
            jsonb_agg(jsonb_build_object('columns', k.columns, 'references', k.target, 'referenced_columns', k.target_columns)
                      ORDER BY k.conname) FILTER (WHERE k.contype = 'f') AS foreign_keys,
            jsonb_agg(k.definition ORDER BY k.conname) FILTER (WHERE k.contype = 'c') AS check_constraints
        FROM (
            SELECT c.contype, c.conname,
                   ARRAY(SELECT a.attname::text FROM unnest(c.conkey) WITH ORDINALITY x (num, pos)
                         JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = x.num ORDER BY x.pos) AS columns,
                   (SELECT n.nspname || '.' || t.relname FROM pg_class t JOIN pg_namespace n ON n.oid = t.relnamespace
                    WHERE t.oid = c.confrelid) AS target,
                   ARRAY(SELECT a.attname::text FROM unnest(c.confkey) WITH ORDINALITY x (num, pos)
                         JOIN pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = x.num ORDER BY x.pos) AS target_columns,
                   CASE c.contype WHEN 'c' THEN pg_get_constraintdef(c.oid, true) END AS definition
            FROM pg_constraint c
            WHERE o.class = 'pg_class'::regclass AND c.conrelid = o.oid AND c.contype IN ('p', 'u', 'f', 'c')
        ) k
    ) keys ON true
    ORDER BY o.nspname ~ '^pg_' OR o.nspname = 'information_schema', o.nspname, o.name, o.oid
$$;
COMMENT ON FUNCTION aidb.catalog_get_object_details(text, text) IS
    'Describes the tables, views and functions of one name on which the caller has a privilege (overloaded functions are several). schema: where; every schema when omitted, and object_name may then be schema.name. columns: name, type, not_null, default, generated, comment, values of an enum; only those the caller has a privilege on. primary_key, unique_keys: column names. foreign_keys: columns, references, referenced_columns. Extensions'' objects are shown too. Stands behind the tool of that name. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.catalog_get_object_details(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.catalog_get_object_details(text, text) TO aidb_users;

