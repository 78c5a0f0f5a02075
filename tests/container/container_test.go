// Package container proves that the image which the Dockerfile builds is what it says: a PostgreSQL with the extension
// installed, on which an agent answers by running SQL. It needs a Docker engine and is skipped, and reported as skipped,
// where there is none.
//
// Two variables fit it to an engine:
//
//	AIDB_TEST_NETWORK=host   build and run on the host's network, for an engine without a bridge of its own
//	AIDB_TEST_IMAGE=aidb     test that image, built already, instead of building one from the tree
//
// What else an engine wants, testcontainers-go reads itself: DOCKER_HOST; TESTCONTAINERS_RYUK_DISABLED=true where its helper
// image cannot be had; TESTCONTAINERS_HOST_OVERRIDE=127.0.0.1 where it takes the machine for a container and looks for the
// engine's host at the gateway.
package container

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	dockercontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"aidb/tests/shop"
)

func TestImage_AnswersThroughAnAgent(t *testing.T) {
	testcontainers.SkipIfProviderIsNotHealthy(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	request, port := imageRequest(t)
	image, err := provider(t).RunContainer(ctx, request)
	testcontainers.CleanupContainer(t, image)
	require.NoError(t, err)

	endpoint, err := image.PortEndpoint(ctx, port, "")
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

// network is what AIDB_TEST_NETWORK says: host, or nothing for the engine's own.
func network(t *testing.T) string {
	name := os.Getenv("AIDB_TEST_NETWORK")
	require.Contains(t, []string{"", "host"}, name, "AIDB_TEST_NETWORK is host, or left out for the engine's own network")
	return name
}

// provider is the engine. Where it has no network that the library takes for the default one, the library would make a
// bridge on the host and connect every container to it.
func provider(t *testing.T) *testcontainers.DockerProvider {
	var options []testcontainers.DockerProviderOption
	if network(t) == "host" {
		options = append(options, testcontainers.WithDefaultBridgeNetwork("host"))
	}
	engine, err := testcontainers.NewDockerProvider(options...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = engine.Close() })
	return engine
}

// imageRequest asks for a container of the image, and says on which port its server listens.
func imageRequest(t *testing.T) (testcontainers.ContainerRequest, string) {
	request := testcontainers.ContainerRequest{Env: map[string]string{"POSTGRES_PASSWORD": "secret", "POSTGRES_DB": "shop"}}
	if request.Image = os.Getenv("AIDB_TEST_IMAGE"); request.Image == "" {
		request.FromDockerfile = testcontainers.FromDockerfile{Context: "../..", Dockerfile: "Dockerfile", BuildLogWriter: t.Output()}
	}
	port := "5432/tcp"
	if network(t) == "host" {
		// The host may have a server on 5432. PGPORT moves this one, and with it the image's health check.
		number := freePort(t)
		port = number + "/tcp"
		request.Env["PGPORT"] = number
		request.HostConfigModifier = func(config *dockercontainer.HostConfig) { config.NetworkMode = "host" }
		request.FromDockerfile.BuildOptionsModifier = func(options *client.ImageBuildOptions) { options.NetworkMode = "host" }
	}
	request.ExposedPorts = []string{port}
	// A server that listens may still be starting up, which the image's health check tells apart.
	request.WaitingFor = wait.ForAll(wait.ForHealthCheck(), wait.ForListeningPort(port)).WithDeadline(2 * time.Minute)
	return request, port
}

// freePort is a port that nobody listens on now.
func freePort(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}
