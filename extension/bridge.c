/*
 * bridge.c
 *		The Go library's half of the seam in plain C: the bridge itself and the
 *		few calls that the Go side makes on it (see c_shim/bridge.h).
 *
 * aidb_bridge() is the only function that the backend's main thread calls in
 * this library.  It is C from end to end: nothing here enters Go.
 */
#include <sys/eventfd.h>

#include "bridge.h"

static AidbBridge bridge = {
	.version = AIDB_BRIDGE_VERSION,
	.size = sizeof(AidbBridge),
	.to_go = -1,
	.to_pg = -1,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

static pthread_once_t opened = PTHREAD_ONCE_INIT;

static void
open_bridge(void)
{
	bridge.to_go = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	bridge.to_pg = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

/* Either side may come first: Go's start-up runs beside the thread that loads it. */
__attribute__((visibility("default"))) AidbBridge *
aidb_bridge(void)
{
	pthread_once(&opened, open_bridge);
	return &bridge;
}

int
aidb_go_fd(void)
{
	return aidb_bridge()->to_go;
}

/* Copies body into a new request; 0 on success, -1 when it cannot be made. */
int
aidb_go_request(uint32_t kind, uint64_t run, uint32_t seq, const void *body, size_t len)
{
	AidbMsg    *m = aidb_msg_new(kind, run, seq, len);

	if (m == NULL)
		return -1;
	if (len > 0)
		memcpy(m->data, body, len);
	aidb_push(&bridge, &bridge.requests, bridge.to_pg, m);
	return 0;
}

/*
 * The next message for Go.  Commands come first: a CANCEL must not wait behind
 * the replies of the run that it ends.
 */
AidbMsg *
aidb_go_next(void)
{
	AidbMsg    *m = aidb_pop(&bridge, &bridge.commands);

	return m ? m : aidb_pop(&bridge, &bridge.replies);
}
