/*
 * go_wait.c
 *		Sleeping until the Go library has said something.
 */
#include "aidb.h"

#include "miscadmin.h"
#include "utils/memutils.h"

static WaitEventSet *wait_set = NULL;
static uint32 wait_event = 0;

static void
make_wait_set(AidbBridge *b)
{
	if (wait_set)
		return;
	wait_event = AIDB_WAIT_EVENT_NEW();
	wait_set = AIDB_CREATE_WAIT_SET(3);
	AddWaitEventToSet(wait_set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(wait_set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	AddWaitEventToSet(wait_set, WL_SOCKET_READABLE, b->to_pg, NULL, NULL);
}

/* Sleeps until Go has said something, the latch is set, or so many milliseconds are over (-1: for ever). */
void
aidb_wait_for_go(AidbBridge *b, long timeout)
{
	WaitEvent	event;
	uint64_t	count;

	make_wait_set(b);
	if (WaitEventSetWait(wait_set, timeout, &event, 1, wait_event) > 0 &&
		event.events & WL_LATCH_SET)
		ResetLatch(MyLatch);
	/* drained after the wait: what was queued since is found by the next pop */
	while (read(b->to_pg, &count, sizeof(count)) < 0 && errno == EINTR)
		;
}
