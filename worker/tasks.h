/*
 * tasks.h
 *		What the files of a worker process share: process.c is its loop, tasks.c
 *		serves the runs of its tasks, messages.c has the order of what they ask
 *		for, claim.c takes tasks and gives them back.
 */
#ifndef AIDB_TASKS_H
#define AIDB_TASKS_H

#include "worker.h"

#include "utils/hsearch.h"
#include "utils/uuid.h"

#include "aidb.h"
#include "compat.h"

typedef struct AidbTask
{
	uint64		run;			/* hash key */
	pg_uuid_t	id;
	MemoryContext context;		/* of all below */
	char	   *id_text;
	char	   *agent;
	char	   *caller;
	char	   *principal;
	char	   *search_path;
	bool		superuser;
	bool		set_role;		/* the caller is not the session user */
} AidbTask;

extern HTAB *aidb_tasks;		/* by run */
extern AidbSlot *aidb_self;
extern int64 aidb_number;		/* of this worker */
extern Oid	aidb_owner;			/* of the extension */

extern void aidb_make_task_table(void);
extern int	aidb_in_hand(void);
extern AidbTask *aidb_find_task(uint64 run);
extern void aidb_forget_task(AidbTask *t);
extern void aidb_stop_run(AidbBridge *b, AidbTask *t);

/* Requests that share a transaction. */
#define AIDB_GROUP 50
extern bool aidb_handle_message(AidbBridge *b, AidbMsg *m);

extern void aidb_begin(void);
extern void aidb_commit(Oid role);	/* as that role */
extern void aidb_show_activity(const AidbTask *t);
extern ErrorData *aidb_undo(MemoryContext outer);

extern void aidb_put_aside(AidbMsg *m, bool first);
extern bool aidb_some_aside(void);
extern AidbMsg *aidb_next_message(AidbBridge *b);
extern AidbMsg *aidb_next_message_of(AidbBridge *b, uint64 run);

extern bool aidb_extension_is_there(void);
extern int	aidb_claim(AidbBridge *b, int wanted);
extern void aidb_give_back(AidbTask *t, const char *why);
extern void aidb_hand_back_all(AidbBridge *b);
extern void aidb_stop_canceled(AidbBridge *b);

#endif							/* AIDB_TASKS_H */
