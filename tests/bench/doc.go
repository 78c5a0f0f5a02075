// Package bench measures what one conversation with an agent costs, beside an ordinary Go program that does the same job:
// the same model, the same prompt, the same query, every message and step stored before the answer is given.
//
//	measure   the clock: wall time, CPU of the client, CPU of the server, WAL
//	mock      a model that answers at once
//	floor     the ordinary program: go-openai and pgx, one statement a message
//	aidb      the same conversation through SELECT aidb.agent_converse
//	cmd/compare   `make bench`: a scratch server, both programs in turn, a table
//
// floor and aidb are programs of their own and take the same flags and environment (PEERS_DSN, MOCK_URL, PG_PID), so that
// either can be run by another harness too. Nothing here is asserted in a test: a number is a measurement, not a promise
// that a machine with other work on it could break.
package bench
