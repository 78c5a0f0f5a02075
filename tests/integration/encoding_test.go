package integration

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// Go and the models speak UTF-8; a database may not. Text is converted on its way, and what the encoding does not have is a
// question mark.
func TestEncodings_OtherThanUTF8(t *testing.T) {
	admin := server.Admin(t)
	for encoding, texts := range map[string]struct{ prompt, said string }{
		"LATIN1":    {"Grüße, Łukasz 😀!", "Grüße, ?ukasz ?!"},
		"EUC_JP":    {"日本語 😀", "日本語 ?"},
		"SQL_ASCII": {"Grüße 😀", "Grüße 😀"},
	} {
		t.Run(encoding, func(t *testing.T) {
			db := "encoded_" + encoding
			servertest.Exec(t, admin, fmt.Sprintf("CREATE DATABASE %q ENCODING '%s' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0", db, encoding))
			conn, err := server.Connect(t.Context(), "postgres", db)
			require.NoError(t, err)
			defer func() { _ = conn.Close(t.Context()) }()
			servertest.Exec(t, conn, "SET client_encoding = 'UTF8'")
			servertest.Exec(t, conn, "CREATE EXTENSION aidb")
			server.RegisterModel(t, conn, "echo", server.Model.URL())
			servertest.Exec(t, conn, "SELECT * FROM aidb.create_agent('echo', 'test', 'echo', tools => '{run_sql_query}')")
			server.Model.Script("echo", fakemodel.Query("SELECT '"+texts.said+"' AS said"), fakemodel.Say(texts.prompt))

			o := servertest.MustAsk(t, conn, "echo", texts.said, "debug => true")
			require.Equal(t, texts.said, o.Message)
			logged := servertest.Value(t, conn, `SELECT response_payload ->> 'contents' FROM aidb_internal.action_log
				WHERE action_type = 'tool_response'`)
			require.JSONEq(t, fmt.Sprintf(`[{"said": %q}]`, texts.said), logged)
			// The record holds the hash of what was sent, and the chain that of what was stored.
			require.Equal(t, "1", servertest.Value(t, conn, `SELECT count(*) FROM aidb.decisions
				WHERE query_hash = encode(sha256(convert_to(query_text, 'UTF8')), 'hex')`))
			require.Equal(t, "0", servertest.Value(t, conn, "SELECT count(*) FROM aidb.verify_decisions()"))
		})
	}
}
