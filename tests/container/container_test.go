// Package container proves that the image which the Dockerfile builds is what it says: a PostgreSQL with the extension
// installed, on which an agent answers by running SQL. It needs a Docker engine and is skipped, and reported as skipped,
// where there is none.
package container

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"aidb/tests/shop"
)

func TestImage_AnswersThroughAnAgent(t *testing.T) {
	testcontainers.SkipIfProviderIsNotHealthy(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	image, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{
		ContainerRequest: testcontainers.ContainerRequest{
			FromDockerfile: testcontainers.FromDockerfile{Context: "../..", Dockerfile: "Dockerfile"},
			Env:            map[string]string{"POSTGRES_PASSWORD": "secret", "POSTGRES_DB": "shop"},
			ExposedPorts:   []string{"5432/tcp"},
			WaitingFor:     wait.ForListeningPort("5432/tcp").WithStartupTimeout(2 * time.Minute),
		},
		Started: true,
	})
	testcontainers.CleanupContainer(t, image)
	require.NoError(t, err)

	endpoint, err := image.PortEndpoint(ctx, "5432/tcp", "")
	require.NoError(t, err)
	connect := func(user, password string) *pgx.Conn {
		conn, err := pgx.Connect(ctx, fmt.Sprintf("postgres://%s:%s@%s/shop", user, password, endpoint))
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(ctx)) })
		return conn
	}
	admin := connect("postgres", "secret")
	_, err = admin.Exec(ctx, "CREATE ROLE ann LOGIN PASSWORD 'ann' IN ROLE aidb_users")
	require.NoError(t, err)
	require.NoError(t, shop.Load(ctx, admin, "ann"))

	// The scripted model needs no network, which a container has not to the host's loopback.
	ann := connect("ann", "ann")
	_, err = ann.Exec(ctx, `SELECT aidb.create_model('scripted', 'dummy', '{"responses": [
		{"tool_calls": [{"name": "run_sql_query", "arguments": {"query": "SELECT count(*) AS orders FROM shop.orders"}}]},
		{"response": "There are 900 orders."}]}', validate => false)`)
	require.NoError(t, err)
	_, err = ann.Exec(ctx, `SELECT * FROM aidb.create_agent('counter', 'You count.', 'scripted', tools => '{run_sql_query}')`)
	require.NoError(t, err)
	var message, problem, result *string
	require.NoError(t, ann.QueryRow(ctx, `SELECT message, error FROM aidb.agent_converse('counter', 'How many orders?')`).Scan(&message, &problem))
	require.Nil(t, problem)
	require.Equal(t, "There are 900 orders.", *message)
	require.NoError(t, ann.QueryRow(ctx, `SELECT response_payload->>'contents' FROM aidb_internal.action_log WHERE action_type = 'tool_response'`).Scan(&result))
	require.JSONEq(t, `[{"orders": 900}]`, *result)

	var task string
	require.NoError(t, ann.QueryRow(ctx, `SELECT task_id FROM aidb.agent_submit('counter', 'How many orders?')`).Scan(&task))
	require.NoError(t, ann.QueryRow(ctx, `SELECT message, error FROM aidb.wait_task($1, '1 min')`, task).Scan(&message, &problem))
	require.Nil(t, problem)
	require.Equal(t, "There are 900 orders.", *message, "in the background, too: the image preloads the library")
}
