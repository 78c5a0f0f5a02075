/*
 * bridge.h
 *		The seam between the two libraries: aidb.so (C, runs on the backend's
 *		main thread) and aidb_go.so (Go, runs on its own threads).
 *
 * This header is the whole contract.  It includes standard C headers only, so
 * the Go library builds and is tested with no PostgreSQL at all.
 *
 * Rules of the seam
 *	- The main thread never executes Go code.  It calls only the plain C
 *	  functions below.  No Go thread ever touches PostgreSQL's memory.
 *	- Everything that crosses is an AidbMsg, malloc'ed by the sender and freed by
 *	  the receiver.  Both libraries use the same libc, so free() is the same.
 *	- There are three queues, one mutex and two eventfds.  Go reads `to_go`;
 *	  the main thread waits for `to_pg` in its WaitEventSet.
 *	- Every message belongs to a run (one call of an SQL function that is
 *	  implemented in Go).  Run ids are never reused in a process; messages of
 *	  a run that has ended are dropped by whoever meets them.
 *	- In a session all of a run is in the caller's transaction.  In a worker,
 *	  which has many runs at a time, a request outside BEGIN and COMMIT is a
 *	  transaction of its own; within them other runs wait.
 *	- A request carries a sequence number, which its reply repeats.  A QUERY
 *	  with number 0 has no reply: when it fails, the run fails.
 *
 * A message's body is a list of fields: int32 count, then for each field an
 * int32 length (-1 is NULL) and that many bytes, in the machine's byte order.
 * Numbers and booleans travel as text ("25", "t"/"f"): one encoding for all.
 */
#ifndef AIDB_BRIDGE_H
#define AIDB_BRIDGE_H

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Changes whenever a struct, a message or a field of one changes. */
#define AIDB_BRIDGE_VERSION 5

/* The one symbol that the shim looks up in the Go library. */
#define AIDB_BRIDGE_SYMBOL "aidb_bridge"

/* No single message may be larger than this. */
#define AIDB_MAX_MESSAGE (512 * 1024 * 1024)

typedef enum AidbMsgKind
{
	/* main thread -> Go: commands */
	AIDB_CMD_CONFIG = 1,		/* name, value, name, value, ... */
	AIDB_CMD_START,				/* function, context fields, prefetched rows, arguments */
	AIDB_CMD_CANCEL,			/* no fields: the run is dead, stop all work */

	/* main thread -> Go: replies */
	AIDB_REP_ROWS = 20,			/* answer to QUERY */
	AIDB_REP_TOOL,				/* answer to TOOL */
	AIDB_REP_OK,				/* answer to LOCK, SECRET, SCOPE, ADMIT, SPEND, KEEP: the fields asked for */
	AIDB_REP_ERROR,				/* sqlstate, message, detail, hint, reason */

	/* Go -> main thread */
	AIDB_REQ_READY = 40,		/* run 0; function, statement, ...: what to look up (with the
								 * function's first argument, as QUERY) before its START */
	AIDB_REQ_QUERY,				/* our own SQL, as the extension's owner */
	AIDB_REQ_TOOL,				/* a tool's SQL, in the sandbox; behind it a lookup (or NULL) and
								 * the row that it must give for the call to be made */
	AIDB_REQ_LOCK,				/* conversation id: serialise its calls */
	AIDB_REQ_SECRET,			/* kind (env, file), name */
	AIDB_REQ_NOTICE,			/* level, message, detail, hint; no reply */
	AIDB_REQ_RESULT,			/* columns, rows, values: the run succeeded; no reply */
	AIDB_REQ_FAIL,				/* sqlstate, message, detail, hint: raise; no reply */
	AIDB_REQ_BEGIN,				/* no fields; a step of a background task begins: what the run
								 * asks for from now on is one transaction; no reply */
	AIDB_REQ_COMMIT,			/* no fields; it ends: OK, or an error and nothing was done */
	AIDB_REQ_SCOPE,				/* begin, keep or undo: a subtransaction around the requests
								 * between; at most one at a time */
	AIDB_REQ_ADMIT = 60,		/* key, kind, name, concurrent, requests, tokens, tokens of this
								 * one: may a request be sent? OK: ms to wait (0: yes), why */
	AIDB_REQ_LEAVE,				/* key, tokens as admitted (-1: it was not), tokens used: it is
								 * over; no reply */
	AIDB_REQ_PAUSE,				/* key, ms: nobody is to be admitted so long; no reply */
	AIDB_REQ_AUDIT,				/* COPY command, rows: decisions that are kept whatever becomes of
								 * the transaction; no reply */
	AIDB_REQ_SPEND,				/* caller, principal, day, calls, tokens, cost: used, for quotas.
								 * OK: calls, tokens, cost and since when they are counted, of the
								 * caller and of the principal behind it */
	AIDB_REQ_KEEP				/* COPY command, rows: the same as AUDIT (NULL: nothing), and waits
								 * until all of this session's are committed. OK: false where
								 * nobody could do that */
} AidbMsgKind;

typedef struct AidbMsg
{
	struct AidbMsg *next;
	uint64_t	run;
	uint32_t	seq;
	uint32_t	kind;
	uint32_t	len;
	unsigned char data[];
} AidbMsg;

typedef struct AidbQueue
{
	AidbMsg    *head;
	AidbMsg    *tail;
} AidbQueue;

typedef struct AidbBridge
{
	uint32_t	version;		/* AIDB_BRIDGE_VERSION of the Go library */
	uint32_t	size;			/* sizeof(AidbBridge) as it saw it */
	int			to_go;			/* eventfd: commands or replies are queued */
	int			to_pg;			/* eventfd: requests are queued */
	pthread_mutex_t lock;		/* guards the queues; never held across a wait */
	AidbQueue	commands;
	AidbQueue	replies;
	AidbQueue	requests;
} AidbBridge;

typedef AidbBridge *(*AidbBridgeGetter) (void);

/* A new message, body uninitialised.  NULL when memory is out or len too large. */
static inline AidbMsg *
aidb_msg_new(uint32_t kind, uint64_t run, uint32_t seq, size_t len)
{
	AidbMsg    *m;

	if (len > AIDB_MAX_MESSAGE)
		return NULL;
	m = (AidbMsg *) malloc(sizeof(AidbMsg) + len);
	if (m == NULL)
		return NULL;
	m->next = NULL;
	m->run = run;
	m->seq = seq;
	m->kind = kind;
	m->len = (uint32_t) len;
	return m;
}

/* Queues a message and wakes the reader.  The message is the reader's now. */
static inline void
aidb_push(AidbBridge *b, AidbQueue *q, int fd, AidbMsg *m)
{
	uint64_t	one = 1;
	ssize_t		n;

	pthread_mutex_lock(&b->lock);
	if (q->tail)
		q->tail->next = m;
	else
		q->head = m;
	q->tail = m;
	pthread_mutex_unlock(&b->lock);
	do
		n = write(fd, &one, sizeof(one));
	while (n < 0 && errno == EINTR);
}

/* The oldest message of a queue, the caller's to free; NULL when it is empty. */
static inline AidbMsg *
aidb_pop(AidbBridge *b, AidbQueue *q)
{
	AidbMsg    *m;

	pthread_mutex_lock(&b->lock);
	m = q->head;
	if (m)
	{
		q->head = m->next;
		if (q->head == NULL)
			q->tail = NULL;
		m->next = NULL;
	}
	pthread_mutex_unlock(&b->lock);
	return m;
}

#endif							/* AIDB_BRIDGE_H */
