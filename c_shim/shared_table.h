/*
 * shared_table.h
 *		A small table in the server's shared memory, which its first user makes.
 */
#ifndef AIDB_SHARED_TABLE_H
#define AIDB_SHARED_TABLE_H

#include "storage/lwlock.h"

/* What such a table begins with. */
typedef struct AidbTableHead
{
	LWLock		lock;
	int			tranche;
} AidbTableHead;

/* The table of that name, all zero when nobody has used it yet; once in a process. */
extern void *aidb_shared_table(const char *name, Size size);

#endif							/* AIDB_SHARED_TABLE_H */
