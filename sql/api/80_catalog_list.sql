-- Tools with which a model finds its way in a database it does not know: the listings.
--
-- They run as whoever calls the tool, under a purpose as a role that may have no rights in aidb at all, so they use
-- nothing but pg_catalog; and they show only what that role can use. The search_path is pinned because operators and
-- types are looked up in it.
--
-- Common rules: at most 200 rows; truncated is true in every row when there are more. An empty text is the same as none.
-- A name matches exactly, or by LIKE when it has a % in it. Objects of PostgreSQL, of aidb and of other extensions are
-- left out, and so are partitions, which their table stands for.

CREATE OR REPLACE FUNCTION aidb.catalog_list_schemas(include_system boolean DEFAULT false)
RETURNS TABLE (schema_name text, comment text, truncated boolean)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT n.nspname::text, obj_description(n.oid, 'pg_namespace'), n.total > 200
    FROM (
        SELECT s.oid, s.nspname, count(*) OVER () AS total
        FROM pg_namespace s
        WHERE has_schema_privilege(s.oid, 'USAGE')
          AND ($1 IS TRUE OR (
               s.nspname !~ '^pg_' AND s.nspname <> 'information_schema'
               AND NOT EXISTS (SELECT FROM pg_depend d
                               WHERE d.classid = 'pg_namespace'::regclass AND d.objid = s.oid AND d.deptype = 'e')))
        ORDER BY s.nspname
        LIMIT 200
    ) n
    ORDER BY n.nspname
$$;
COMMENT ON FUNCTION aidb.catalog_list_schemas(boolean) IS
    'Schemas that the caller may use. include_system: those of PostgreSQL and of extensions too. At most 200 rows; truncated is true when there are more. Stands behind the tool of that name. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.catalog_list_schemas(boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.catalog_list_schemas(boolean) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb.catalog_list_objects(
    schema text DEFAULT NULL,
    object_type text DEFAULT NULL,
    name_pattern text DEFAULT NULL
)
RETURNS TABLE (schema_name text, object_name text, object_type text, comment text, truncated boolean)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    WITH asked (schema, type, pattern) AS MATERIALIZED (
        -- materialized_view and Tables are what models write for "materialized view" and "table".
        SELECT nullif($1, ''), nullif(rtrim(replace(lower($2), '_', ' '), 's'), ''), nullif($3, '')
    ),
    usable AS MATERIALIZED (
        SELECT s.oid, s.nspname
        FROM pg_namespace s, asked a
        WHERE s.nspname !~ '^pg_' AND s.nspname <> 'information_schema'
          AND (a.schema IS NULL OR s.nspname = a.schema OR (strpos(a.schema, '%') > 0 AND s.nspname LIKE a.schema))
          AND has_schema_privilege(s.oid, 'USAGE')
          AND NOT EXISTS (SELECT FROM pg_depend d
                          WHERE d.classid = 'pg_namespace'::regclass AND d.objid = s.oid AND d.deptype = 'e')
    ),
    -- Read in one pass and joined afterwards: a look-up for each schema would go through a whole index each time.
    everything AS MATERIALIZED (
        SELECT c.relnamespace AS namespace, c.relname AS name,
               CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' ELSE 'table' END AS type,
               'pg_class' AS class, c.oid
        FROM pg_class c, asked a
        WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
          AND NOT c.relispartition
          AND (a.type IS NULL OR a.type NOT IN ('function', 'procedure'))
          AND (a.pattern IS NULL OR c.relname = a.pattern OR c.relname LIKE a.pattern)
          AND c.oid NOT IN (SELECT d.objid FROM pg_depend d
                            WHERE d.refclassid = 'pg_extension'::regclass AND d.classid = 'pg_class'::regclass AND d.deptype = 'e')
      UNION ALL
        SELECT p.pronamespace, p.proname, CASE p.prokind WHEN 'p' THEN 'procedure' ELSE 'function' END, 'pg_proc', p.oid
        FROM pg_proc p, asked a
        WHERE (a.type IS NULL OR a.type IN ('function', 'procedure'))
          AND (a.pattern IS NULL OR p.proname = a.pattern OR p.proname LIKE a.pattern)
          AND p.oid NOT IN (SELECT d.objid FROM pg_depend d
                            WHERE d.refclassid = 'pg_extension'::regclass AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e')
    ),
    candidates AS MATERIALIZED (
        SELECT u.nspname, e.name, e.type, e.class, e.oid
        FROM everything e
        JOIN usable u ON u.oid = e.namespace
        CROSS JOIN asked a
        WHERE a.type IS NULL OR e.type = a.type
    )
    SELECT r.nspname::text, r.name::text, r.type, obj_description(r.oid, r.class::name), r.total > 200
    FROM (
        SELECT c.*, count(*) OVER () AS total
        FROM candidates c
        WHERE CASE c.class
                  WHEN 'pg_proc' THEN has_function_privilege(c.oid, 'EXECUTE')
                  ELSE has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
                       OR has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE, REFERENCES')
              END
        ORDER BY c.nspname, c.name, c.type, c.oid
        LIMIT 200
    ) r
    ORDER BY r.nspname, r.name, r.type, r.oid
$$;
COMMENT ON FUNCTION aidb.catalog_list_objects(text, text, text) IS
    'Tables, views, materialized views, foreign tables, functions and procedures on which the caller has any privilege. schema, name_pattern: an exact name, or a LIKE pattern. object_type: table, view, materialized view, foreign table, function or procedure. Partitions are not listed beside their table. At most 200 rows; truncated is true when there are more. Stands behind the tool of that name. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.catalog_list_objects(text, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.catalog_list_objects(text, text, text) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb.catalog_list_relations(schema text DEFAULT NULL, table_name text DEFAULT NULL)
RETURNS TABLE (
    constraint_name text,
    from_schema text,
    from_table text,
    from_columns text[],
    to_schema text,
    to_table text,
    to_columns text[],
    truncated boolean
)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    WITH asked (schema, name) AS MATERIALIZED (
        SELECT nullif($1, ''), nullif($2, '')
    ),
    -- The ends that were asked for, and each other end is looked up from its foreign key.
    ends AS MATERIALIZED (
        SELECT c.oid, n.nspname, c.relname
        FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p')
          AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
          AND has_schema_privilege(n.oid, 'USAGE')
          AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_namespace'::regclass AND d.objid = n.oid AND d.deptype = 'e')
    )
    SELECT r.conname::text,
           r.from_schema::text, r.from_table::text,
           ARRAY(SELECT a.attname::text FROM unnest(r.conkey) WITH ORDINALITY k (num, pos)
                 JOIN pg_attribute a ON a.attrelid = r.conrelid AND a.attnum = k.num ORDER BY k.pos),
           r.to_schema::text, r.to_table::text,
           ARRAY(SELECT a.attname::text FROM unnest(r.confkey) WITH ORDINALITY k (num, pos)
                 JOIN pg_attribute a ON a.attrelid = r.confrelid AND a.attnum = k.num ORDER BY k.pos),
           r.total > 200
    FROM (
        SELECT k.oid, k.conname, k.conrelid, k.confrelid, k.conkey, k.confkey,
               f.nspname AS from_schema, f.relname AS from_table, t.nspname AS to_schema, t.relname AS to_table,
               count(*) OVER () AS total
        FROM pg_constraint k
        JOIN ends f ON f.oid = k.conrelid
        JOIN ends t ON t.oid = k.confrelid
        CROSS JOIN asked a
        WHERE k.contype = 'f'
          -- A partitioned table's foreign key is listed once, not again for each partition.
          AND k.conparentid = 0
          AND (   ((a.schema IS NULL OR f.nspname = a.schema OR (strpos(a.schema, '%') > 0 AND f.nspname LIKE a.schema))
                   AND (a.name IS NULL OR f.relname = a.name OR (strpos(a.name, '%') > 0 AND f.relname LIKE a.name)))
               OR ((a.schema IS NULL OR t.nspname = a.schema OR (strpos(a.schema, '%') > 0 AND t.nspname LIKE a.schema))
                   AND (a.name IS NULL OR t.relname = a.name OR (strpos(a.name, '%') > 0 AND t.relname LIKE a.name))))
          AND (has_table_privilege(f.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
               OR has_any_column_privilege(f.oid, 'SELECT, INSERT, UPDATE, REFERENCES'))
          AND (has_table_privilege(t.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
               OR has_any_column_privilege(t.oid, 'SELECT, INSERT, UPDATE, REFERENCES'))
        ORDER BY f.nspname, f.relname, k.conname, k.oid
        LIMIT 200
    ) r
    ORDER BY r.from_schema, r.from_table, r.conname, r.oid
$$;
COMMENT ON FUNCTION aidb.catalog_list_relations(text, text) IS
    'Foreign keys between tables on both of which the caller has any privilege: those from or to tables of a schema, or from and to one table. schema, table_name: an exact name, or a LIKE pattern. At most 200 rows; truncated is true when there are more. Stands behind the tool of that name. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.catalog_list_relations(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.catalog_list_relations(text, text) TO aidb_users;

