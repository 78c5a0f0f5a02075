package integration

import (
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
	"aidb/tests/shop"
)

var explorer = []string{"catalog_list_schemas", "catalog_list_objects", "catalog_get_object_details", "catalog_list_relations", "run_sql_query"}

// The demo's path: a model that knows nothing but what it is sent finds the shop, and its answer has the true numbers.
func TestUnknownDatabase_IsDiscoveredAndQueried(t *testing.T) {
	ann := server.Conn(t, "ann")
	require.NoError(t, shop.Load(t.Context(), server.Admin(t), "ann"))
	server.Agent(t, ann, "explorer", explorer)
	server.Model.Answer("explorer", fakemodel.Explorer)

	o := servertest.MustAsk(t, ann, "explorer", shop.Question)
	best := servertest.Rows(t, ann, `SELECT p.category, round(sum(i.quantity * i.unit_price), 2)::text AS total
		FROM shop.order_items i JOIN shop.products p ON p.id = i.product_id JOIN shop.orders o ON o.id = i.order_id
		WHERE o.status <> 'returned' GROUP BY 1 ORDER BY sum(i.quantity * i.unit_price) DESC`)
	require.Contains(t, o.Message, best[0]["category"])
	require.Contains(t, o.Message, best[0]["total"])
	require.NotContains(t, o.Message, "failed")
	customer := servertest.Value(t, ann, `SELECT c.name FROM shop.order_items i JOIN shop.orders o ON o.id = i.order_id JOIN shop.customers c ON c.id = o.customer_id
		WHERE o.status <> 'returned' GROUP BY c.id, c.name ORDER BY sum(i.quantity * i.unit_price) DESC LIMIT 1`)
	require.Contains(t, o.Message, customer)

	used := servertest.Rows(t, ann, `SELECT DISTINCT request_payload->>'tool_name' AS tool FROM aidb_internal.action_log
		WHERE conversation_id = $1::uuid AND action_type = 'tool_call'`, o.Conversation)
	require.Len(t, used, 4, "schemas, tables, details, query")
}

// The catalog tools on a database of 5,000 tables: bounded, marked, and narrowed by a pattern.
func TestCatalogTools_OnFiveThousandTables(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, "CREATE SCHEMA vast; GRANT USAGE ON SCHEMA vast TO ann")
	for from := 0; from < 5000; from += 1000 { // a transaction for each thousand: locks are limited
		servertest.Exec(t, admin, `DO $$ BEGIN FOR i IN `+servertest.Value(t, admin, "SELECT $1::int", from)+` .. `+servertest.Value(t, admin, "SELECT $1::int", from+999)+` LOOP
			EXECUTE format('CREATE TABLE vast.t_%s (id int)', lpad(i::text, 4, '0')); EXECUTE format('GRANT SELECT ON vast.t_%s TO ann', lpad(i::text, 4, '0'));
			END LOOP; END $$`)
	}
	list := func(args string) []map[string]any {
		return servertest.Rows(t, ann, "SELECT o->>'object_name' AS name, o->>'truncated' AS truncated FROM jsonb_array_elements(aidb.run_tool('catalog_list_objects', $1::jsonb)) o", args)
	}
	all := list(`{"schema": "vast", "object_type": "table"}`)
	require.NotEmpty(t, all)
	require.LessOrEqual(t, len(all), 200)
	require.Equal(t, "true", all[0]["truncated"])
	some := list(`{"schema": "vast", "name_pattern": "t_499%"}`)
	require.Len(t, some, 10)
	require.Equal(t, "false", some[0]["truncated"])
}
