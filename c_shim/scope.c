/*
 * scope.c
 *		A subtransaction that holds several requests of a run: a plan that is
 *		tried as a whole and taken back, a step that is kept only if it did what
 *		was shown.
 */
#include "aidb.h"

#include "utils/resowner.h"

/*
 * A subtransaction around several requests: what they do together stays or
 * does not.  Each has its own within it.
 */
void
aidb_run_scope(const char *what)
{
	MemoryContext memory = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	bool		open = GetCurrentTransactionNestLevel() > aidb_run_level();

	if (open == (strcmp(what, "begin") == 0))
		elog(ERROR, "a scope of requests cannot %s", what);
	if (!open)
		BeginInternalSubTransaction(NULL);
	else if (strcmp(what, "keep") == 0)
		ReleaseCurrentSubTransaction();
	else
		RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(memory);
	CurrentResourceOwner = owner;
}

/*
 * Throws the error in hand on.  Whoever catches it ends the subtransaction that
 * they began themselves, and not a scope of ours.
 */
void
aidb_leave_open_scope(MemoryContext outer)
{
	ErrorData  *e;

	if (GetCurrentTransactionNestLevel() <= aidb_run_level())
		PG_RE_THROW();
	MemoryContextSwitchTo(outer);
	e = CopyErrorData();
	FlushErrorState();
	while (GetCurrentTransactionNestLevel() > aidb_run_level())
		RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(outer);
	ReThrowError(e);
}
