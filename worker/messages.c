/*
 * messages.c
 *		What the runs of a worker ask for, in the order in which it is served.
 *
 * While one run is between BEGIN and COMMIT only its messages are taken; those of
 * the others are put aside until then.
 */
#include "worker.h"

#include "miscadmin.h"

#include "tasks.h"

/* Messages that wait until the step in hand is over. */
static AidbQueue held;

void
aidb_put_aside(AidbMsg *m, bool first)
{
	if (first)
	{
		m->next = held.head;
		held.head = m;
		if (held.tail == NULL)
			held.tail = m;
		return;
	}
	m->next = NULL;
	if (held.tail)
		held.tail->next = m;
	else
		held.head = m;
	held.tail = m;
}

/* Is there one to be served before any wait? */
bool
aidb_some_aside(void)
{
	return held.head != NULL;
}

/* The next message in order, the caller's to free. */
AidbMsg *
aidb_next_message(AidbBridge *b)
{
	AidbMsg    *m = held.head;

	if (m == NULL)
		return aidb_pop(b, &b->requests);
	held.head = m->next;
	if (held.head == NULL)
		held.tail = NULL;
	m->next = NULL;
	return m;
}

/* The next message of one run; those of others are put aside. */
AidbMsg *
aidb_next_message_of(AidbBridge *b, uint64 run)
{
	AidbMsg    *before = NULL;

	for (AidbMsg *m = held.head; m; before = m, m = m->next)
	{
		if (m->run != run)
			continue;
		if (before)
			before->next = m->next;
		else
			held.head = m->next;
		if (held.tail == m)
			held.tail = before;
		m->next = NULL;
		return m;
	}
	for (;;)
	{
		AidbMsg    *m;

		while ((m = aidb_pop(b, &b->requests)) != NULL)
		{
			if (m->run == run)
				return m;
			aidb_put_aside(m, false);
		}
		CHECK_FOR_INTERRUPTS();
		aidb_wait_for_go(b, -1);
	}
}
