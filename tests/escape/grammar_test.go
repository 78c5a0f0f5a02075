package escape

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
)

// grammar makes statements: honest SQL, attacks, and what lies between them.
type grammar struct {
	*rand.Rand
	seeds  []string // the attacks of the cases
	honest []string // statements that work
}

func (g *grammar) one(of ...string) string { return of[g.IntN(len(of))] }

func (g *grammar) chance(percent int) bool { return g.IntN(100) < percent }

func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

var (
	tables  = []string{"store.goods", "guest.pad", "store.orders", "guest.early", "guest.walled", "guest.glass", "store.lines", "guest.late", "pg_class", "pg_settings"}
	foreign = []string{"store.ledger", "safe.breach", "aidb_internal.action_log", "aidb_internal.logged_steps", "aidb.agents", "aidb.decisions", "pg_authid", "pg_cursors", "pg_prepared_statements", "pg_largeobject", "pg_locks", "pg_stat_activity", "information_schema.tables"}
	columns = []string{"id", "title", "stock", "note", "a", "b", "price", "state", "line", "name", "setting", "oid", "relname"}
	calls   = []string{
		"set_config('role', 'none', %s)", "set_config('transaction_read_only', NULL, true)", "pg_advisory_lock(%s)", "pg_try_advisory_xact_lock(%s)", "pg_advisory_unlock_all()",
		"pg_notify('news', %s)", "nextval('guest.pad_id_seq')", "setval('guest.pad_id_seq', 1)", "lastval()", "currval('guest.pad_id_seq')", "lo_create(0)", "loread(0, 10)", "lo_unlink(70001)",
		"pg_read_file('PG_VERSION')", "pg_ls_dir('.')", "pg_terminate_backend(pg_backend_pid())", "pg_cancel_backend(pg_backend_pid())", "pg_current_xact_id()", "txid_current()", "pg_export_snapshot()",
		"query_to_xml(%s, true, true, '')", "cursor_to_xml('mine', 2, true, true, '')", "table_to_xml('store.ledger', true, true, '')", "ts_stat(%s)", "current_query()", "setseed(0.1)",
		"guest.run(%s)", "guest.run_stable(%s)", "guest.run_caught(%s)", "guest.run_twice(%s, %s)", "guest.run_set(%s)", "guest.run_definer(%s)", "guest.pure(%s)", "guest.fetch('mine')", "guest.fetch('<unnamed portal 1>')",
		"guest.payload('x')", "guest.scribble('x')", "guest.sly('x')", "guest.gather(%s)", "store.count_goods()", "store.states()",
		"aidb.run_sql_query(%s)", "aidb.execute_sql(%s)", "aidb.principal()", "aidb.create_purpose('p', 'postgres')", "aidb.update_purpose('guest', 'postgres')", "aidb.sleep(0)",
		"(SELECT message FROM aidb.agent_converse('guest_writes', %s))", "now()", "random()", "gen_random_uuid()", "clock_timestamp()", "pg_backend_pid()", "current_setting('app.token', true)", "version()",
		"length(%s)", "upper(%s)", "md5(%s)", "repeat('x', 3)", "to_jsonb(%s)", "jsonb_build_object('k', %s)", "array_agg(%s)", "count(*)", "max(%s)", "string_agg(%s::text, ',')", "row_number() OVER (ORDER BY %s)", "coalesce(%s, %s)", "nullif(%s, %s)", "concat(%s, %s)", "ROW(%s, %s)", "ARRAY[%s]",
	}
	utilities = []string{
		"RESET ROLE", "SET ROLE postgres", "SET ROLE NONE", "SET SESSION AUTHORIZATION DEFAULT", "RESET ALL", "DISCARD ALL", "SET work_mem = '1MB'", "SET LOCAL search_path = guest", "SET transaction_read_only = off", "RESET transaction_read_only", "SET TRANSACTION READ WRITE", "SET CONSTRAINTS ALL IMMEDIATE",
		"COMMIT", "ROLLBACK", "SAVEPOINT x", "ROLLBACK TO harness", "BEGIN", "PREPARE TRANSACTION 'x'", "LISTEN news", "UNLISTEN *", "NOTIFY news", "LOCK store.goods", "CLOSE ALL", "FETCH 1 FROM mine", "MOVE 1 IN mine", "DEALLOCATE ALL", "EXECUTE mine", "CHECKPOINT", "VACUUM", "ANALYZE", "REINDEX TABLE guest.pad", "LOAD 'aidb'",
		"CREATE TEMP TABLE t (a integer)", "CREATE TABLE guest.t (a integer)", "CREATE FUNCTION public.f() RETURNS integer LANGUAGE sql AS 'SELECT 1'", "DROP TABLE guest.pad", "ALTER TABLE guest.pad ADD COLUMN x integer", "CREATE VIEW guest.v AS SELECT 1", "GRANT guest TO PUBLIC", "ALTER ROLE guest SUPERUSER", "COPY guest.pad TO STDOUT", "COPY guest.pad FROM PROGRAM 'true'", "TRUNCATE guest.pad", "COMMENT ON TABLE guest.pad IS 'x'", "DO $x$ BEGIN COMMIT; END $x$", "CALL guest.proc('SELECT 1')", "SHOW ALL", "SHOW search_path", "EXPLAIN SELECT 1", "CREATE EXTENSION tablefunc", "DO LANGUAGE plperl 'x'", "REFRESH MATERIALIZED VIEW guest.v", "SECURITY LABEL ON TABLE guest.pad IS 'x'", "ALTER SYSTEM RESET ALL", "REASSIGN OWNED BY guest TO postgres",
	}
	operators = []string{"=", "<>", "<", ">=", "+", "-", "||", "LIKE", "~", "IS DISTINCT FROM", "OPERATOR(guest.~+)", "OPERATOR(guest.~-)", "@>", "->>", "AND", "OR"}
	types     = []string{"text", "integer", "numeric", "jsonb", "timestamptz", "guest.word", "guest.state", "store.state", "guest.mood", "regclass", "regrole", "text[]", "bytea", "xml", "int4range", "pg_temp.text"}
)

func (g *grammar) expr(depth int) string {
	if depth <= 0 || g.chance(30) {
		switch g.IntN(6) {
		case 0:
			return fmt.Sprint(g.IntN(100) - 10)
		case 1:
			return literal(g.one("x", "postgres", "a''b", "{}", "2024-01-01", "mine", "guest.pad", "RESET ROLE"))
		case 2:
			return literal(g.text(depth - 1))
		case 3:
			return g.one("NULL", "true", "current_user", "session_user", "DEFAULT", "current_timestamp", "'x'::guest.mood")
		default:
			return g.one(columns...)
		}
	}
	switch g.IntN(9) {
	case 0, 1, 2:
		c := g.one(calls...)
		for strings.Contains(c, "%s") {
			c = strings.Replace(c, "%s", strings.ReplaceAll(g.expr(depth-1), "%s", ""), 1)
		}
		return c
	case 3:
		return "(" + g.expr(depth-1) + " " + g.one(operators...) + " " + g.expr(depth-1) + ")"
	case 4:
		return "CAST(" + g.expr(depth-1) + " AS " + g.one(types...) + ")"
	case 5:
		return "CASE WHEN " + g.expr(depth-1) + " THEN " + g.expr(depth-1) + " ELSE " + g.expr(depth-1) + " END"
	case 6:
		return "(" + g.query(depth-1) + ")"
	case 7:
		return g.expr(depth-1) + " IN (" + g.query(depth-1) + ")"
	default:
		return "EXISTS (" + g.query(depth-1) + ")"
	}
}

func (g *grammar) source(depth int) string {
	switch n := g.IntN(10); {
	case n < 5:
		return g.one(tables...)
	case n < 6:
		return g.one(foreign...)
	case n < 7 && depth > 0:
		return "(" + g.query(depth-1) + ") AS s"
	case n < 8:
		return fmt.Sprintf("generate_series(1, %d) AS g (id)", g.IntN(50))
	case n < 9 && depth > 0:
		return g.one(tables...) + " x JOIN " + g.one(tables...) + " y ON " + g.expr(depth-1)
	default:
		return "(VALUES (1, 'x'), (2, 'y')) AS v (id, title)"
	}
}

func (g *grammar) query(depth int) string {
	q := "SELECT " + g.expr(depth) + " AS c"
	for g.chance(30) {
		q += fmt.Sprintf(", %s AS c%d", g.expr(depth), g.IntN(1000))
	}
	if g.chance(85) {
		q += " FROM " + g.source(depth)
	}
	if g.chance(50) {
		q += " WHERE " + g.expr(depth)
	}
	if g.chance(10) {
		q += " GROUP BY 1"
	}
	if g.chance(15) {
		q += " ORDER BY " + g.expr(depth)
	}
	if g.chance(20) {
		q += fmt.Sprintf(" LIMIT %d", g.IntN(5))
	}
	if g.chance(8) {
		q += g.one(" FOR UPDATE", " FOR SHARE SKIP LOCKED", " FOR NO KEY UPDATE NOWAIT")
	}
	if g.chance(6) {
		q += g.one(" UNION ALL ", " EXCEPT ", " INTERSECT ") + g.query(depth-1)
	}
	return q
}

func (g *grammar) change(depth int) string {
	table := g.one(append(tables, foreign...)...)
	returning := ""
	if g.chance(40) {
		returning = " RETURNING " + g.expr(depth) + " AS c"
	}
	switch g.IntN(6) {
	case 0:
		return "INSERT INTO " + table + " (" + g.one(columns...) + ") VALUES (" + g.expr(depth) + ")" + returning
	case 1:
		return "INSERT INTO " + table + " (" + g.one(columns...) + ") " + g.query(depth) + g.one("", " ON CONFLICT DO NOTHING") + returning
	case 2:
		return "UPDATE " + table + " SET " + g.one(columns...) + " = " + g.expr(depth) + " WHERE " + g.expr(depth) + returning
	case 3:
		return "DELETE FROM " + table + " WHERE " + g.expr(depth) + returning
	case 4:
		return "MERGE INTO " + table + " t USING " + g.source(depth) + " ON " + g.expr(depth) + " WHEN MATCHED THEN " + g.one("DELETE", "DO NOTHING", "UPDATE SET note = 'm'") + " WHEN NOT MATCHED THEN DO NOTHING"
	default:
		return "WITH w AS (" + g.change(0) + ") " + g.query(depth)
	}
}

func (g *grammar) block(depth int) string {
	var b strings.Builder
	b.WriteString("DECLARE x text; c refcursor := " + literal(g.one("mine", "theirs", "<unnamed portal 2>", "")) + "; r record; BEGIN ")
	for range 1 + g.IntN(3) {
		action := g.text(depth-1) + ";"
		switch g.IntN(7) {
		case 0:
			action = "EXECUTE " + literal(g.text(depth-1)) + ";"
		case 1:
			action = "PERFORM " + g.expr(depth) + ";"
		case 2:
			action = g.one("OPEN c FOR "+g.query(1)+";", "FETCH c INTO r;", "MOVE c;", "CLOSE c;")
		case 3:
			action = "x := " + g.expr(depth) + ";"
		case 4:
			action = "FOR r IN " + g.query(1) + " LOOP PERFORM " + g.expr(1) + "; EXIT; END LOOP;"
		case 5:
			action = "RAISE " + g.one("NOTICE", "LOG", "WARNING", "INFO", "EXCEPTION") + " 'said %', " + g.expr(1) + g.one("", " USING ERRCODE = '57014'", " USING ERRCODE = '40001'") + ";"
		}
		if g.chance(50) {
			action = "BEGIN " + action + " EXCEPTION WHEN OTHERS THEN " + g.one("NULL", "PERFORM guest.payload('caught')", "RAISE") + "; END;"
		}
		b.WriteString(action + " ")
	}
	return "DO " + g.one("$d$", "LANGUAGE plpgsql $d$") + " " + b.String() + "END $d$"
}

// plain is a query or a change of store.goods whose types fit, so that it comes as far as being executed, with devices of
// guest's in it.
func (g *grammar) plain(depth int) string {
	device := func() string {
		f := g.one("run", "run_stable", "run_caught", "run_caught", "run_set", "run_definer", "pure")
		return g.one("guest."+f+"("+literal(g.text(depth-1))+")", "guest.run_twice("+literal(g.text(0))+", "+literal(g.text(depth-1))+")",
			"guest.payload('plain')::text", "guest.fetch('mine')", "store.states()", "aidb.principal()", "current_user::text", "now()::text", "md5(title)", "title", "'RESET ROLE'::guest.word")
	}
	condition := func() string {
		return g.one(fmt.Sprintf("stock > %d", g.IntN(5)), fmt.Sprintf("id %% %d = 0", 1+g.IntN(9)), "title LIKE 'thing 1%'", "price BETWEEN 3 AND 20", "state = 'new'",
			"id IN (SELECT id FROM guest.pad)", "EXISTS (SELECT FROM store.orders o WHERE o.id = goods.id)", device()+" <> ''",
			fmt.Sprintf("stock OPERATOR(guest.~+) %d", g.IntN(99)), fmt.Sprintf("stock OPERATOR(guest.~-) %d", g.IntN(99)), "guest.payload('condition')")
	}
	where := " WHERE " + condition()
	for g.chance(40) {
		where += g.one(" AND ", " OR ", " AND NOT ") + condition()
	}
	switch g.IntN(8) {
	case 0:
		return "SELECT count(*) AS n, max(" + device() + ") AS m FROM store.goods" + where
	case 1:
		return "SELECT stock, string_agg(" + device() + ", ',') AS v FROM store.goods" + where + " GROUP BY stock ORDER BY stock"
	case 2:
		return "SELECT id, " + device() + " AS v, row_number() OVER (ORDER BY " + device() + ") AS r FROM store.goods" + where + fmt.Sprintf(" LIMIT %d", g.IntN(9))
	case 3:
		return "INSERT INTO guest.pad (note) SELECT " + device() + " FROM store.goods" + where + fmt.Sprintf(" LIMIT %d", g.IntN(4)) + g.one("", " RETURNING id")
	case 4:
		return "UPDATE store.goods SET title = left(" + device() + ", 40), stock = stock" + where + g.one("", " RETURNING id, title")
	case 5:
		return "WITH w AS (DELETE FROM guest.pad WHERE id > 2 RETURNING note) SELECT note, " + literal("x") + " AS x FROM w"
	case 6:
		return "SELECT g.id, h.v FROM store.goods g, LATERAL (SELECT " + device() + " AS v, g.title) h WHERE g.id < 5" + g.one("", " FOR UPDATE OF g")
	default:
		return "SELECT id, title, " + device() + " AS v FROM store.goods" + where
	}
}

// text is a statement of any kind.
func (g *grammar) text(depth int) string {
	if depth <= 0 {
		return g.one(g.one(utilities...), g.one(utilities...), "SELECT 1 AS one", "DELETE FROM guest.pad WHERE false")
	}
	switch n := g.IntN(100); {
	case n < 22:
		return g.plain(depth)
	case n < 34:
		return g.one(g.honest...)
	case n < 44:
		return g.query(depth)
	case n < 52:
		return g.change(depth)
	case n < 64:
		return g.block(depth)
	case n < 71:
		return g.one(utilities...)
	case n < 82:
		return g.one(g.seeds...)
	case n < 90:
		return g.mutate(g.text(depth - 1))
	case n < 93:
		return g.one("EXPLAIN ", "EXPLAIN ANALYZE ", "EXPLAIN (ANALYZE, VERBOSE, FORMAT json) ") + g.text(depth-1)
	case n < 97:
		return fmt.Sprintf("SELECT guest.%s(%s) AS v", g.one("run", "run_stable", "run_caught", "run_set", "run_definer", "pure"), literal(g.text(depth-1)))
	case n < 98:
		return g.one("PREPARE p AS ", "DECLARE d CURSOR WITH HOLD FOR ", "CREATE TABLE guest.t AS ", "CREATE TEMP TABLE t AS ", "COPY (") + g.text(depth-1)
	default:
		return g.text(depth-1) + ";" + g.text(depth-1)
	}
}

var words = regexp.MustCompile(`\s+|[A-Za-z_][A-Za-z0-9_.]*|[0-9]+|'(?:[^']|'')*'|.`)

// mutate breaks a statement a little: words are lost, doubled, exchanged, recased, commented, or taken from another.
func (g *grammar) mutate(s string) string {
	parts := words.FindAllString(s, -1)
	if len(parts) == 0 {
		return s
	}
	for range 1 + g.IntN(3) {
		i, j := g.IntN(len(parts)), g.IntN(len(parts))
		switch g.IntN(9) {
		case 0:
			parts[i] = ""
		case 1:
			parts[i] += " " + parts[i]
		case 2:
			parts[i], parts[j] = parts[j], parts[i]
		case 3:
			parts[i] = strings.ToUpper(parts[i])
		case 4:
			parts[i] += g.one("/* ; */", "--\n", "/**/", " \t", "\u00a0", "\ufeff", "$$", "'", "\"", ")", "(", ";", "\\")
		case 5:
			other := words.FindAllString(g.one(g.seeds...), -1)
			parts[i] = other[g.IntN(len(other))]
		case 6:
			parts[i] = g.expr(1)
		case 7:
			parts = parts[:max(1, i)]
		default:
			parts[i] = g.one("0", "-1", "9223372036854775808", "1e400", "NaN", "''", "NULL", "*", "$1", "U&'\\0027'")
		}
	}
	return strings.Join(parts, "")
}
