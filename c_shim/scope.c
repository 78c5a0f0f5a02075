/*
 * scope.c
 *		Subtransactions: one that holds several requests of a run (a plan that is
 *		tried as a whole and taken back, a step that is kept only if it did what
 *		was shown), and one around a piece of work here.
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

/*
 * Does the work in a subtransaction; with undo it is rolled back also when it
 * went well.  The error that ended it, in the memory of the caller, who has to
 * throw it on or to know better; NULL: none did.
 */
ErrorData *
aidb_try(void (*work) (void *), void *arg, bool undo)
{
	MemoryContext outer = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(outer);
	PG_TRY();
	{
		work(arg);
		if (undo)
			RollbackAndReleaseCurrentSubTransaction();
		else
			ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(outer);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(outer);
	CurrentResourceOwner = owner;
	return error;
}
