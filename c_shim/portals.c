/*
 * portals.c
 *		The caller's cursors during a tool call, and those that the call opens.
 *
 * FETCH, MOVE, CLOSE and a PL/pgSQL refcursor reach every portal of the session
 * by name, and no hook sees the last.  A portal that is marked as running is
 * refused by the engine itself: it can be neither run nor dropped.
 */
#include "aidb.h"

#include "executor/spi.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/portal.h"
#include "utils/tuplestore.h"

/* Names of all portals that pg_cursors would show, read without SQL. */
static int
portal_names(char ***names)
{
	LOCAL_FCINFO(fcinfo, 0);
	FmgrInfo	flinfo;
	ReturnSetInfo rsinfo = {0};
	ExprContext *econtext = CreateStandaloneExprContext();
	TupleTableSlot *slot;
	int			n = 0,
				room = 8;

	*names = palloc(sizeof(char *) * room);
	fmgr_info(F_PG_CURSOR, &flinfo);
	rsinfo.type = T_ReturnSetInfo;
	rsinfo.econtext = econtext;
	rsinfo.allowedModes = SFRM_Materialize;
	rsinfo.returnMode = SFRM_Materialize;
	InitFunctionCallInfoData(*fcinfo, &flinfo, 0, InvalidOid, NULL, (Node *) &rsinfo);
	(void) FunctionCallInvoke(fcinfo);
	slot = MakeSingleTupleTableSlot(rsinfo.setDesc, &TTSOpsMinimalTuple);
	while (tuplestore_gettupleslot(rsinfo.setResult, true, false, slot))
	{
		bool		isnull;
		Datum		name = slot_getattr(slot, 1, &isnull);

		if (n == room)
			*names = repalloc(*names, sizeof(char *) * (room *= 2));
		if (!isnull)
			(*names)[n++] = TextDatumGetCString(name);
	}
	ExecDropSingleTupleTableSlot(slot);
	tuplestore_end(rsinfo.setResult);
	FreeExprContext(econtext, true);
	return n;
}

/*
 * Before the tool's subtransaction starts, so that its abort does not take the
 * portals for its own.  Portals that cannot be run any more are frozen too: one
 * that failed could be closed, and another opened under the name that the
 * caller still uses.
 */
void
aidb_freeze_portals(AidbPortals *f)
{
	f->nnames = portal_names(&f->names);
	f->frozen = palloc(sizeof(AidbFrozenPortal) * (f->nnames + 1));
	f->nfrozen = 0;
	for (int i = 0; i < f->nnames; i++)
	{
		Portal		p = GetPortalByName(f->names[i]);

		if (PortalIsValid(p))
		{
			f->frozen[f->nfrozen].portal = p;
			f->frozen[f->nfrozen].pinned = p->portalPinned;
			f->frozen[f->nfrozen++].status = p->status;
			p->status = PORTAL_ACTIVE;
		}
	}
}

void
aidb_thaw_portals(AidbPortals *f)
{
	for (int i = 0; i < f->nfrozen; i++)
	{
		f->frozen[i].portal->status = f->frozen[i].status;
		/* Perl's spi_cursor_close() unpins any portal before it fails to close it */
		f->frozen[i].portal->portalPinned = f->frozen[i].pinned;
	}
	f->nfrozen = 0;
}

/*
 * Cursors opened inside must not outlive the call.  A pinned one belongs to a
 * query of another PL that was not read to its end; left alone, it would make
 * the caller's COMMIT fail.
 */
void
aidb_drop_new_portals(AidbPortals *f)
{
	char	  **now;
	int			n = portal_names(&now);

	for (int i = 0; i < n; i++)
	{
		bool		old = false;
		Portal		p;

		for (int j = 0; j < f->nnames && !old; j++)
			old = strcmp(now[i], f->names[j]) == 0;
		if (old)
			continue;
		p = GetPortalByName(now[i]);
		if (!PortalIsValid(p) || p->status == PORTAL_ACTIVE)
			continue;
		if (p->portalPinned)
			UnpinPortal(p);
		PortalDrop(p, false);
	}
}
