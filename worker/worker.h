/*
 * worker.h
 *		The background processes: their lives, and what they share.
 *
 * Vocabulary
 *	launcher	one a cluster, connected to no database; starts keepers.
 *	keeper		one for each database where there is something to do; connected
 *				as the superuser that the cluster was made with, runs fixed
 *				statements of ours only; starts workers, takes back what dead
 *				workers had in hand.
 *	worker		logged in as one role, the session user of the tasks that it
 *				runs; runs tools.
 *	expirer		a process that the keeper starts when actions have expired: it
 *				writes that down and ends.  Only it and workers load Go.
 *	slot		a process's place in shared memory; the launcher has none.
 *	number		what a slot's process is known by in the tables; drawn at random,
 *				so that it never comes again, not even after a crash.
 *
 * Nothing here knows what a task means.
 */
#ifndef AIDB_WORKER_H
#define AIDB_WORKER_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "postmaster/bgworker.h"
#include "storage/condition_variable.h"
#include "storage/latch.h"
#include "storage/lwlock.h"

#define AIDB_SLOTS 256			/* keepers, workers and expirers of the cluster */
#define AIDB_DATABASES 256		/* that may ask for a keeper at a time */
#define AIDB_TASK_BELLS 64		/* those who wait for a task share one of these */
#define AIDB_AUDIT_ENTRIES 256	/* decisions that were handed over and are not written yet */
#define AIDB_AUDIT_BYTES 16384	/* of one of them: its statement is cut at 5 kB */
/* While something waits that cannot be done now. */
#define AIDB_LOOK_AGAIN_MS 1000
/* The clock may be set: what is due in a day is looked at more often than that. */
#define AIDB_LONGEST_MS INT64CONST(3600000)

/* A held slot is a keeper's: see way.c. */
typedef enum AidbKind
{
	AIDB_KEEPER,
	AIDB_WORKER,
	AIDB_EXPIRER
} AidbKind;

typedef struct AidbSlot
{
	bool		used;
	bool		attached;		/* its process is up */
	bool		wake;			/* there is something to do */
	bool		write;			/* the keeper's: there are decisions to write */
	bool		stop;			/* it is to end */
	bool		yield;			/* it is to hand its tasks back and end */
	bool		held;			/* by a session, so that there is no keeper; see way.c */
	Oid			database;
	AidbKind	kind;
	Oid			role;			/* a worker's, else InvalidOid */
	int			pid;
	Latch	   *latch;
	int64		number;
	int			running;		/* tasks in hand */
	bool		stepping;		/* a worker's: it is in the middle of a step of this task */
	unsigned char step[16];
	TimestampTz since;			/* reserved, then attached */
} AidbSlot;

/* Decisions on their way from a session to its database's keeper. */
typedef struct AidbAuditEntry
{
	Oid			database;		/* InvalidOid: the entry is free */
	int			pid;			/* who handed it over */
	uint64		order;
	int			len;			/* of the command with its zero byte, and the rows with theirs */
	char		data[AIDB_AUDIT_BYTES];
} AidbAuditEntry;

typedef struct AidbShared
{
	LWLock	   *lock;			/* guards all below but the bells */
	Latch	   *launcher;
	int			nrequests;
	Oid			requests[AIDB_DATABASES];	/* databases that want a keeper */
	bool		overflow;		/* there were more: look at all */
	AidbSlot	slots[AIDB_SLOTS];
	ConditionVariable bells[AIDB_TASK_BELLS];
	ConditionVariable audited;	/* entries became free */
	ConditionVariable left;		/* a process has ended */
	uint64		audit_order;
	AidbAuditEntry audit[AIDB_AUDIT_ENTRIES];
} AidbShared;

extern AidbShared *aidb_shared; /* NULL: not preloaded */

/* --- settings (worker.c) ---------------------------------------------------- */
extern int	aidb_max_workers;
extern int	aidb_max_queued_tasks;
extern int	aidb_worker_tasks;
extern int	aidb_worker_idle_timeout;	/* s */
extern int	aidb_worker_memory_limit;	/* MB */
extern int	aidb_maintenance_naptime;	/* s */

/* Settings, shared memory and the processes, when the library is preloaded. */
extern void aidb_register_worker(void);

/* --- shared.c ---------------------------------------------------------------- */
extern void aidb_request_shared_memory(void);
extern int	aidb_reserve_slot(AidbKind kind, Oid database, Oid role, int64 *number);	/* -1: no slot is free */
extern bool aidb_take_back_slot(int slot, int64 number);	/* true: its process never came up */
extern void aidb_free_slot(int slot);
extern AidbSlot *aidb_attach_slot(int slot);	/* freed when the process ends */
extern bool aidb_leave_if_idle(AidbSlot *slot);	/* true: the process is to end */
extern bool aidb_take_wake(AidbSlot *slot);
extern void aidb_ask_for_keeper(Oid database);
extern void aidb_wake_database(Oid database, Oid role);
extern void aidb_wake_to_write(Oid database);
extern void aidb_take_write(AidbSlot *slot);
extern int	aidb_hold_slot(Oid database);	/* the keeper's, for this session; -1: no slot is free */
extern bool aidb_stop_database(Oid database, bool at_once);	/* true: none of its processes is left */
extern void aidb_publish_step(AidbSlot *slot, const unsigned char *task);	/* NULL: it is over */
extern void aidb_interrupt_step(const unsigned char *task);
extern int	aidb_bell_of(const unsigned char *uuid);
extern void aidb_ring(int bell);

/* --- way.c ---------------------------------------------------------------------- */
extern void aidb_watch_utility(void);

/* --- audit.c ------------------------------------------------------------------ */
extern bool aidb_write_audit(void);	/* the keeper's, in no transaction; false: there was nothing */
extern void aidb_forget_audit(Oid database);

/* --- retention.c --------------------------------------------------------------- */
extern long aidb_maintain_logs(Oid owner);	/* the keeper's, in no transaction; ms until the next time */

/* --- expiry.c ------------------------------------------------------------------ */
extern long aidb_look_after_actions(Oid owner);	/* the keeper's, in no transaction; ms until the next time, -1: none waits */

/* --- staff.c, the keeper's ------------------------------------------------------- */
typedef struct AidbWaiting
{
	Oid			role;
	int64		waiting;		/* tasks */
	int64		oldest_ms;
} AidbWaiting;

extern bool aidb_forget_ended(void);	/* true: a process has ended since the last time */
extern void aidb_staff(const AidbWaiting *waiting, int nwaiting);
extern bool aidb_has_workers(void);
extern long aidb_send_expirer(bool overdue);	/* ms until it may be sent again */

/* --- a process's main function, and what all of them begin and end with ------- */
extern void aidb_start_process(BackgroundWorker *worker, const char *function, const char *name, int slot);
extern void aidb_connect(Oid database);	/* keeper and expirer */
extern void aidb_process_settings(void);	/* reload them if told to */
extern Oid	aidb_extension_owner(void);	/* InvalidOid: it is not there */

extern PGDLLEXPORT void aidb_launcher_main(Datum arg) __attribute__((noreturn));
extern PGDLLEXPORT void aidb_keeper_main(Datum arg) __attribute__((noreturn));
extern PGDLLEXPORT void aidb_expirer_main(Datum arg) __attribute__((noreturn));
extern PGDLLEXPORT void aidb_worker_main(Datum arg) __attribute__((noreturn));

#endif							/* AIDB_WORKER_H */
