package escape

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A sandbox that refuses everything holds too. These are statements that a model may well write and that have to work,
// with what it is to be given for them; a want that ends in … is a beginning.
type honest struct{ sql, want string }

var reading = map[string]honest{
	"select":              {"SELECT id, title FROM store.goods WHERE id = 3", `[{"id": 3, "title": "thing 3"}]`},
	"join and group":      {"SELECT c.name, count(*) AS n FROM store.customers c JOIN store.sales s ON s.customer = c.id GROUP BY c.name ORDER BY 1 LIMIT 1", `[{"name": "ann", "n": 20}]`},
	"left join":           {"SELECT count(*) AS n FROM store.goods g LEFT JOIN store.sales s ON s.good = g.id WHERE s.id IS NULL", `[{"n": 0}]`},
	"cte":                 {"WITH t AS (SELECT customer, sum(amount) AS s FROM store.sales GROUP BY 1) SELECT max(s) AS m FROM t", `[{"m": 630.00}]`},
	"recursive":           {"WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT sum(i) AS s FROM n", `[{"s": 15}]`},
	"window":              {"SELECT id, rank() OVER (ORDER BY amount DESC) AS r, lag(amount) OVER (ORDER BY id) AS l FROM store.sales ORDER BY id LIMIT 1", `[{"id": 1, "r": 60, "l": null}]`},
	"grouping sets":       {"SELECT customer, count(*) AS n FROM store.sales GROUP BY ROLLUP (customer) ORDER BY 1 NULLS LAST LIMIT 1", `[{"customer": 1, "n": 20}]`},
	"filter and distinct": {"SELECT count(DISTINCT good) FILTER (WHERE amount > 50) AS n, string_agg(DISTINCT customer::text, ',') AS c FROM store.sales", `[{"n": 10, "c": "1,2,3"}]`},
	"lateral":             {"SELECT c.name, x.amount FROM store.customers c, LATERAL (SELECT amount FROM store.sales s WHERE s.customer = c.id ORDER BY amount DESC LIMIT 1) x ORDER BY 1 LIMIT 1", `[{"name": "ann", "amount": 60.00}]`},
	"exists and in":       {"SELECT name FROM store.customers c WHERE EXISTS (SELECT FROM store.sales s WHERE s.customer = c.id) AND c.id IN (2, 3) ORDER BY 1", `[{"name": "bob"}, {"name": "cyd"}]`},
	"union":               {"SELECT 1 AS n UNION SELECT 2 EXCEPT SELECT 1 ORDER BY 1", `[{"n": 2}]`},
	"json":                {"SELECT profile ->> 'city' AS city, jsonb_path_query_first(profile, '$.age') AS age FROM store.customers WHERE profile @> '{\"city\": \"Oslo\"}'", `[{"city": "Oslo", "age": 31}]`},
	"json build":          {"SELECT jsonb_build_object('a', array_agg(id ORDER BY id)) AS j FROM store.customers", `[{"j": {"a": [1, 2, 3]}}]`},
	"arrays":              {"SELECT name, tags[1] AS first, cardinality(tags) AS n FROM store.customers WHERE 'vip' = ANY (tags) ORDER BY name", `[{"name": "ann", "first": "new", "n": 2}, {"name": "cyd", "first": "vip", "n": 1}]`},
	"unnest":              {"SELECT t, count(*) AS n FROM store.customers, unnest(tags) t GROUP BY t ORDER BY t", `[{"t": "new", "n": 1}, {"t": "vip", "n": 2}]`},
	"text search":         {"SELECT to_tsvector('english', 'running shoes') @@ to_tsquery('run') AS found", `[{"found": true}]`},
	"regular expressions": {"SELECT count(*) AS n FROM store.goods WHERE title ~ '^thing [0-9]$' AND title ILIKE 'THING%'", `[{"n": 9}]`},
	"dates":               {"SELECT date_trunc('month', at) AS month, count(*) AS n FROM store.sales WHERE at < '2024-05-11' GROUP BY 1", `[{"month": "2024-05-01T…`},
	"generate_series":     {"SELECT g AS n FROM generate_series(2, 8, 3) g", `[{"n": 2}, {"n": 5}, {"n": 8}]`},
	"volatile built-ins":  {"SELECT random() < 1 AS r, now() <= clock_timestamp() AS t, length(gen_random_uuid()::text) AS u, timeofday() <> '' AS d", `[{"r": true, "t": true, "u": 36, "d": true}]`},
	"stable plpgsql":      {"SELECT store.total(1) AS t", `[{"t": 630.00}]`},
	"sql function":        {"SELECT name FROM store.best(1)", `[{"name": "ann"}]`},
	"definer function":    {"SELECT store.ledger_lines() AS n", `[{"n": 10}]`},
	"row security":        {"SELECT body FROM store.mail", `[{"body": "for ann"}]`},
	"who":                 {"SELECT aidb.principal() AS p, aidb.agent_name() AS a, current_user AS u", `[{"p": "ann", "a": "guest_reads", "u": "guest"}]`},
	"pg_catalog":          {"SELECT relname FROM pg_class WHERE oid = 'store.goods'::regclass", `[{"relname": "goods"}]`},
	"information_schema":  {"SELECT column_name FROM information_schema.columns WHERE table_schema = 'store' AND table_name = 'goods' ORDER BY ordinal_position LIMIT 2", `[{"column_name": "id"}, {"column_name": "title"}]`},
	"definitions":         {"SELECT pg_get_viewdef('store.open_goods'::regclass) LIKE '%state%' AS v, obj_description('store.goods'::regclass) AS d, format_type('int4'::regtype, NULL) AS t", `[{"v": true, "d": null, "t": "integer"}]`},
	"sizes":               {"SELECT pg_total_relation_size('store.goods') > 0 AS t, pg_size_pretty(pg_relation_size('store.goods')) AS p, pg_database_size(current_database()) > 0 AS d, pg_table_size('store.goods') > 0 AS s", `[{"t": true, "p": "8192 bytes", "d": true, "s": true}]`},
	"statistics":          {"SELECT schemaname, relname FROM pg_stat_user_tables WHERE relname = 'goods'", `[{"schemaname": "store", "relname": "goods"}]`},
	"activity":            {"SELECT count(*) > 0 AS n FROM pg_stat_activity", `[{"n": true}]`},
	"locks":               {"SELECT count(*) > 0 AS n FROM pg_locks", `[{"n": true}]`},
	"rights":              {"SELECT has_table_privilege('store.goods', 'SELECT') AS g, has_table_privilege('store.ledger', 'SELECT') AS l", `[{"g": true, "l": false}]`},
	"settings":            {"SELECT setting FROM pg_settings WHERE name = 'server_encoding'", `[{"setting": "UTF8"}]`},
	"show":                {"SHOW server_encoding", `[{"server_encoding": "UTF8"}]`},
	"explain":             {"EXPLAIN (COSTS off) SELECT title FROM store.goods WHERE id = 1", `[{"QUERY PLAN": "…`},
	"explain analyze":     {"EXPLAIN (ANALYZE, FORMAT json) SELECT count(*) FROM store.goods", `[{"QUERY PLAN": […`},
	"explain of a write":  {"EXPLAIN (COSTS off) UPDATE store.goods SET stock = 1", `[{"QUERY PLAN": "Update on goods"}, …`},
	"values":              {"VALUES (1, 'a'), (2, 'b')", `[{"column1": 1, "column2": "a"}, {"column1": 2, "column2": "b"}]`},
	"table":               {"TABLE store.summary", `[{"n": 60}]`},
	"partitions":          {"SELECT count(*) AS n FROM store.events WHERE day >= '2024-02-01'", `[{"n": 70}]`},
	"sampling":            {"SELECT count(*) <= 40 AS n FROM store.goods TABLESAMPLE bernoulli (50)", `[{"n": true}]`},
	"domain to multirange": {"SELECT p, z, r, m, u, b, i, x, c, v FROM store.kinds",
		`[{"p": 1, "z": {"w": 2, "h": 3}, "r": "[1,5)", "m": "{[1,3),[5,7)}", "u": "8b9f0bd0-4d3a-4e55-8a70-8f4fa5ae9a01", "b": "\\xdead", "i": "1 day 02:00:00", "x": "<a/>", "c": "x  ", "v": "101"}]`},
	"odd numbers":        {"SELECT 'NaN'::numeric AS a, 'Infinity'::float8 AS b, '-Infinity'::numeric AS c, 1e300::float8 AS d, 0.1::numeric AS e, '-0'::float8 AS f", `[{"a": "NaN", "b": "Infinity", "c": "-Infinity", "d": 1e+300, "e": 0.1, "f": -0}]`},
	"odd dates":          {"SELECT 'infinity'::date AS a, '-infinity'::timestamptz AS b, '0044-03-15 BC'::date AS c, '24:00'::time AS d", `[{"a": "infinity", "b": "-infinity", "c": "0044-03-15 BC", "d": "24:00:00"}]`},
	"enum":               {"SELECT state, count(*) AS n FROM store.goods GROUP BY state", `[{"state": "new", "n": 40}]`},
	"composite and rows": {"SELECT (z).w AS w, ROW(1, 'x') AS r, ARRAY[ROW(1, 2)] AS a FROM store.kinds", `[{"w": 2, "r": {"f1": 1, "f2": "x"}, "a": [{"f1": 1, "f2": 2}]}]`},
	"nulls and empties":  {"SELECT NULL AS a, '' AS b, '{}'::integer[] AS c, '{}'::jsonb AS d, 'empty'::int4range AS e", `[{"a": null, "b": "", "c": [], "d": {}, "e": "empty"}]`},
	"no rows":            {"SELECT id FROM store.goods WHERE false", `[]`},
	"unicode":            {"SELECT 'æøå 漢字 🙂' AS v, U&'\\0041' AS u, E'a\\tb' AS t", "[{\"v\": \"æøå 漢字 🙂\", \"u\": \"A\", \"t\": \"a\\tb\"}]"},
	"more rows than fit": {"SELECT g AS n FROM generate_series(1, 200) g", `{"truncated": true, "note": "the result was cut after 100 rows…`},
	"comments":           {"-- which ones?\nSELECT /* the first */ 1 AS one;", `[{"one": 1}]`},
	"a policy's user":    {"SELECT session_user AS s, current_user AS c", `[{"s": "clerk", "c": "guest"}]`},
	"sleep a little":     {"SELECT pg_sleep(0.01) IS NULL AS v", `[{"v": false}]`},
}

var writing = []honest{
	{"INSERT INTO store.customers (name) VALUES ('dan') RETURNING id, shout", `[{"id": 4, "shout": "DAN"}]`},
	{"SELECT what, who FROM store.journal", `[{"what": "INSERT customers", "who": "guest"}]`},
	{"INSERT INTO store.sales (customer, good, amount) SELECT id, 1, 5 FROM store.customers WHERE name = 'dan'", `{"rows_affected": 1}`},
	{"UPDATE store.goods SET stock = stock + 1, price = round(price * 1.1, 2) WHERE id <= 3", `{"rows_affected": 3}`},
	{"UPDATE store.goods g SET title = s.t FROM (VALUES (5, 'five')) s (i, t) WHERE g.id = s.i RETURNING g.title", `[{"title": "five"}]`},
	{"DELETE FROM store.customers WHERE name = 'dan'", `{"rows_affected": 1}`},
	{"SELECT count(*) AS n FROM store.sales WHERE customer = 4", `[{"n": 0}]`},
	{"INSERT INTO store.scratch VALUES (1, 'a'), (2, 'b') ON CONFLICT (k) DO UPDATE SET v = excluded.v", `{"rows_affected": 2}`},
	{"INSERT INTO store.scratch VALUES (1, 'z') ON CONFLICT (k) DO UPDATE SET v = excluded.v RETURNING v", `[{"v": "z"}]`},
	{"MERGE INTO store.scratch s USING (VALUES (2, 'm'), (3, 'n')) v (k, v) ON s.k = v.k WHEN MATCHED THEN UPDATE SET v = v.v WHEN NOT MATCHED THEN INSERT VALUES (v.k, v.v)", `{"rows_affected": 2}`},
	{"WITH d AS (DELETE FROM store.scratch WHERE k = 3 RETURNING v) SELECT v FROM d", `[{"v": "n"}]`},
	{"SELECT k FROM store.scratch WHERE k = 1 FOR UPDATE SKIP LOCKED", `[{"k": 1}]`},
	{"CALL store.restock(7, 3)", `[{"now": 5}]`},
	{"DO $$ DECLARE r record; BEGIN FOR r IN SELECT k FROM store.scratch LOOP UPDATE store.scratch SET v = v || r.k WHERE k = r.k; END LOOP; END $$", `{"command": "DO"}`},
	{"DO $$ DECLARE c CURSOR FOR SELECT k FROM store.scratch FOR UPDATE; BEGIN FOR r IN c LOOP UPDATE store.scratch SET v = 'c' WHERE CURRENT OF c; END LOOP; END $$", `{"command": "DO"}`},
	{"DO $$ BEGIN BEGIN INSERT INTO store.scratch VALUES (1, 'dup'); EXCEPTION WHEN unique_violation THEN INSERT INTO store.scratch VALUES (9, 'nine'); END; END $$", `{"command": "DO"}`},
	{"DO $$ BEGIN EXECUTE format('UPDATE store.%I SET v = %L WHERE k = $1', 'scratch', 'dynamic') USING 9; END $$", `{"command": "DO"}`},
	{"SELECT k, v FROM store.scratch ORDER BY k", `[{"k": 1, "v": "c"}, {"k": 2, "v": "c"}, {"k": 9, "v": "dynamic"}]`},
	{"SELECT store.book('a line') AS n", `[{"n": 11}]`},
	{"UPDATE store.open_goods SET stock = 9 WHERE id = 8 RETURNING stock", `[{"stock": 9}]`},
	{"INSERT INTO store.events VALUES (500, '2024-07-01')", `{"rows_affected": 1}`},
	{"SELECT nextval('store.sales_id_seq') > 0 AS n, currval('store.sales_id_seq') > 0 AS c", `[{"n": true, "c": true}]`},
	{"EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) UPDATE store.scratch SET v = 'explained' WHERE k = 1", `[{"QUERY PLAN": "Update on scratch …`},
	{"UPDATE store.mail SET body = 'read' RETURNING owner", `[{"owner": "ann"}]`},
	{"INSERT INTO store.kinds (p, z, r) VALUES (5, (1, 2), '(,3]') RETURNING p, z, r", `[{"p": 5, "z": {"w": 1, "h": 2}, "r": "(,4)"}]`},
	{"TRUNCATE store.scratch", `{"command": "TRUNCATE TABLE"}`},
	{"INSERT INTO store.customers (name, profile) VALUES ('it''s', jsonb_build_object('q', '\"')) RETURNING name, profile", `[{"name": "it's", "profile": {"q": "\""}}]`},
}

func TestHonestStatements_Work(t *testing.T) {
	db := database(t)
	more, err := os.ReadFile("legit.sql")
	require.NoError(t, err)
	require.NoError(t, script(t.Context(), db, string(more)))
	conn := connect(t, "clerk", db)
	do(t, conn, "SET aidb.principal = 'ann'")
	meets := func(t *testing.T, agent string, h honest) {
		t.Helper()
		s := tell(t.Context(), conn, agent, h.sql)
		require.Empty(t, s.state, "%s: %s", h.sql, s.message)
		if beginning, ok := strings.CutSuffix(h.want, "…"); ok {
			require.True(t, strings.HasPrefix(s.output, beginning), "%s gave %s", h.sql, s)
			return
		}
		require.Equal(t, h.want, s.output, h.sql)
	}
	for name, h := range reading {
		t.Run("reading/"+name, func(t *testing.T) {
			meets(t, "guest_reads", h)
			// A writing call reads as well.
			h.want = strings.Replace(h.want, "guest_reads", "guest_writes", 1)
			meets(t, "guest_writes", h)
		})
	}
	// These build on each other.
	for _, h := range writing {
		if strings.HasPrefix(h.sql, "MERGE") && version(t, conn) < 150000 {
			h.sql = "INSERT INTO store.scratch VALUES (2, 'm'), (3, 'n') ON CONFLICT (k) DO UPDATE SET v = excluded.v"
		}
		meets(t, "guest_writes", h)
	}
}
