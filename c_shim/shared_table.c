/*
 * shared_table.c
 *		Small tables in shared memory that all processes share: what limits.c and
 *		spent.c count in.
 */
#include "aidb.h"

#include "storage/shmem.h"

#include "shared_table.h"

void *
aidb_shared_table(const char *name, Size size)
{
	AidbTableHead *table;
	bool		found;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	table = ShmemInitStruct(name, size, &found);
	if (!found)
	{
		memset(table, 0, size);
		table->tranche = LWLockNewTrancheId();
		LWLockInitialize(&table->lock, table->tranche);
	}
	LWLockRelease(AddinShmemInitLock);
	LWLockRegisterTranche(table->tranche, name);
	return table;
}
