/*
 * turns.c
 *		Messages of Go about what all processes of the server count together: turns
 *		of limited models and servers (limits.c), and what callers use (spent.c).
 */
#include "aidb.h"

#include "utils/memutils.h"

/* These messages touch nothing but tables in shared memory: they need no transaction. */
bool
aidb_shared_message(AidbBridge *b, const AidbMsg *m)
{
	MemoryContext outer = CurrentMemoryContext;
	MemoryContext mine;
	AidbReader	r;

	if (m->kind != AIDB_REQ_ADMIT && m->kind != AIDB_REQ_LEAVE && m->kind != AIDB_REQ_PAUSE && m->kind != AIDB_REQ_SPEND)
		return false;
	mine = AllocSetContextCreate(outer, "aidb shared", ALLOCSET_SMALL_SIZES);
	MemoryContextSwitchTo(mine);
	aidb_read_begin(&r, m);
	if (m->kind == AIDB_REQ_ADMIT || m->kind == AIDB_REQ_SPEND)
	{
		StringInfoData reply;
		AidbMsg    *answer;

		initStringInfo(&reply);
		aidb_fields_begin(&reply);
		if (m->kind == AIDB_REQ_ADMIT)
			aidb_limits_admit(&r, &reply, m->run);
		else
			aidb_spend(&r, &reply);
		answer = aidb_msg_new(AIDB_REP_OK, m->run, m->seq, reply.len);
		if (answer == NULL)
			ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
		memcpy(answer->data, reply.data, reply.len);
		aidb_push(b, &b->replies, b->to_go, answer);
	}
	else if (m->kind == AIDB_REQ_LEAVE)
		aidb_limits_leave(&r, m->run);
	else
		aidb_limits_pause(&r);
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(mine);
	return true;
}
