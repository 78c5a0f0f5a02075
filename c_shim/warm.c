/*
 * warm.c
 *		What the first call of a session would otherwise find out bit by bit.
 *
 * All of it is done while the Go library is loaded (go_load.c), all of it may
 * fail without consequence, and none of it is needed.
 */
#define _GNU_SOURCE 1			/* dlinfo() */
#include "aidb.h"

#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <sys/mman.h>

#include "access/genam.h"
#include "access/relation.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#define CALL_HEAP (1536 * 1024)

/* --- page faults ---------------------------------------------------------------- */

/*
 * Each page that is touched for the first time is a fault, which costs about a
 * microsecond, and a dozen on a virtual machine; a first call had two
 * thousand.  The system maps pages that it is asked for in one go for a
 * twentieth of that.  These are only hints: a kernel before 5.14 does not know
 * them, and what cannot be mapped is left to be found out by whoever uses it.
 */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

static void
populate(uintptr_t from, uintptr_t to, int how)
{
	uintptr_t	page = (uintptr_t) sysconf(_SC_PAGESIZE);

	from &= ~(page - 1);
	if (from < to)
		(void) madvise((void *) from, to - from, how);
}

/*
 * The heap that a call takes.  glibc maps large blocks one by one and gives the
 * top of the heap back as soon as 128 kB of it are free, so that each call
 * faults the same pages in again: up to half of a short call on a virtual
 * machine.  A session that is idle gives it all back (see giveMemoryBack).
 */
void
aidb_warm_heap(void)
{
	char	   *block;

	mallopt(M_MMAP_THRESHOLD, CALL_HEAP);
	mallopt(M_TRIM_THRESHOLD, 4 * CALL_HEAP);
	block = malloc(CALL_HEAP - 64);
	if (block)
		populate((uintptr_t) block, (uintptr_t) block + CALL_HEAP - 64, MADV_POPULATE_WRITE);
	free(block);
}

/* Maps the library's code and constants, which all processes share. */
static int
populate_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	if (info->dlpi_addr != *(const ElfW(Addr) *) arg)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++)
	{
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t	from = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && (p->p_flags & PF_W) == 0)
			populate(from, from + p->p_filesz, MADV_POPULATE_READ);
	}
	return 1;
}

void
aidb_warm_library(void *handle)
{
	struct link_map *map;

	if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0)
		return;
	dl_iterate_phdr(populate_object, &map->l_addr);
}

/* --- the server's caches ---------------------------------------------------------- */

/* What nearly every call opens. */
static const char *const usual[] = {
	"agents", "purpose_registry", "models", "model_credentials", "policies", "sql_tools", "tool_classes", "redactions", "quotas",
	"native_tool_list", "agent_task_queue", "logged_steps", "decision_log"
};

/* Its description and those of its indexes; of a log those of its partition that is for now, too. */
static void
read_description(Oid id)
{
	Relation	table;
	ListCell   *cell;
	Oid			partition = InvalidOid;

	if (!OidIsValid(id) || !ConditionalLockRelationOid(id, AccessShareLock))
		return;
	table = try_relation_open(id, NoLock);
	if (table == NULL)
	{
		UnlockRelationOid(id, AccessShareLock);
		return;
	}
	if (table->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		partition = aidb_partition_for_now(table);
	else
		foreach(cell, RelationGetIndexList(table))
			if (ConditionalLockRelationOid(lfirst_oid(cell), AccessShareLock))
				index_close(index_open(lfirst_oid(cell), NoLock), AccessShareLock);
	/* the locks are not kept: nothing was read that must stay as it is */
	relation_close(table, AccessShareLock);
	read_description(partition);
}

/*
 * Has the server read the descriptions of our tables and indexes: to be done
 * while the session would wait for something else.  Nothing is needed of it,
 * so what is not there or locked is left to the call.
 */
void
aidb_warm_catalog(void)
{
	Oid			schema;

	if (!IsTransactionState())
		return;					/* a worker, which has no call yet */
	schema = get_namespace_oid("aidb_internal", true);
	for (int i = 0; OidIsValid(schema) && i < (int) lengthof(usual); i++)
		read_description(get_relname_relid(usual[i], schema));
}
