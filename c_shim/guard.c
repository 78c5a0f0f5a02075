/*
 * guard.c
 *		Temporal policies: whether a tool call may follow what has happened.
 *
 * A *machine* is one session of one policy.  A call may have several (of the
 * agent, of its purpose, of the conversation that delegated to it): all of them
 * must permit it, and all of them advance or none does.
 *
 * The order is what makes it hold.  All sessions are locked, in one order that
 * is everybody's; only then is anything read of them; conditions are evaluated
 * while the locks are held; then the events are written.  A refusal is an error,
 * so the transaction or subtransaction that it ends takes everything back.
 *
 * The guard's own SQL has the owner's rights.  A condition is somebody else's
 * SQL: it is evaluated in the sandbox, read-only, as the policy's owner.
 */
#include "aidb.h"

#include "common/hashfn.h"
#include "executor/spi.h"
#include "mb/pg_wchar.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#define AIDB_LOCK_PRINCIPAL 0xA1DC	/* beside those of requests.c */

/* What is asked, for all machines of a call. */
typedef struct Passage
{
	const char *tool;
	const char *params;			/* JSON */
	MemoryContext home;			/* outlives SPI */
	Oid			owner;
	int			timeout_ms;
} Passage;

/* --- our own SQL ------------------------------------------------------------- */

static const char *const lock_sql =
	"SELECT s.state, s.principal, s.caller, s.policy FROM aidb_internal.policy_sessions s "
	"WHERE s.id = $1::uuid AND s.policy = $2 FOR UPDATE";
static const char *const lock_all_sql =
	"SELECT s.state, s.principal, s.caller, s.policy FROM aidb_internal.policy_sessions s "
	"WHERE s.id = $1::uuid ORDER BY s.policy COLLATE \"C\" FOR UPDATE";
static const char *const open_sql =
	"INSERT INTO aidb_internal.policy_sessions (id, policy, principal, state, caller, opened_for) "
	"SELECT $1::uuid, p.name, $3, p.initial_state, $4, $3 FROM aidb_internal.policies p "
	"WHERE p.name = $2 AND p.deleted_at IS NULL ON CONFLICT DO NOTHING";
/* the state is NULL for a machine in memory that has not begun */
static const char *const look_sql =
	"SELECT p.deleted_at IS NOT NULL, p.mode, p.owner::oid, coalesce($2, p.initial_state), t.policy IS NOT NULL, "
	"t.to_state, t.condition, t.condition_sql, t.counts_principal "
	"FROM aidb_internal.policies p LEFT JOIN aidb_internal.tool_transitions t "
	"ON t.policy = p.name AND t.from_state = coalesce($2, p.initial_state) AND t.tool_name = $3 WHERE p.name = $1";
static const char *const write_sql =
	"WITH e AS (INSERT INTO aidb_internal.session_events (session_id, policy, tool_name, params, from_state, to_state, "
	"principal, rank, would_deny) VALUES ($1::uuid, $2, $3, $4::jsonb, $5, $6, $7, $8::smallint, $9) RETURNING id) "
	"UPDATE aidb_internal.policy_sessions s SET state = $6, updated_at = clock_timestamp() "
	"WHERE s.id = $1::uuid AND s.policy = $2 RETURNING (SELECT e.id FROM e)";
static const char *const exits_sql =
	"SELECT string_agg(t.tool_name, ', ' ORDER BY t.tool_name) FROM (SELECT x.tool_name FROM aidb_internal.tool_transitions x "
	"WHERE x.policy = $1 AND x.from_state = $2 ORDER BY x.tool_name LIMIT 20) t";

/* A value of the statement just run, kept in `home`; NULL for NULL. */
static char *
value(Passage *p, uint64 row, int column)
{
	char	   *v = SPI_getvalue(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, column);

	return v ? MemoryContextStrdup(p->home, v) : NULL;
}

static bool
flag(uint64 row, int column)
{
	bool		isnull;
	Datum		d = SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, column, &isnull);

	return !isnull && DatumGetBool(d);
}

/*
 * Owner's rights, but the caller's patience: whoever waits for a session waits
 * as long as for any other row, and a tool call at most as long as it may run.
 */
static void
enter(AidbOwnerScope *scope, Passage *p)
{
	int			patience = LockTimeout;

	if (p->timeout_ms > 0 && (patience == 0 || p->timeout_ms < patience))
		patience = p->timeout_ms;
	aidb_enter_owner(scope, p->owner);
	if (patience > 0)
	{
		char		ms[16];

		snprintf(ms, sizeof(ms), "%d", patience);
		(void) set_config_option("lock_timeout", ms, PGC_SUSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	}
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
}

static void
leave(AidbOwnerScope *scope)
{
	SPI_finish();
	aidb_leave_owner(scope);
}

/* --- refusals ----------------------------------------------------------------- */

static void
refuse_policy(const AidbGuard *g, bool retired)
{
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 aidb_refused("policy_denied"),
			 retired ? errmsg("policy '%s' has been retired", g->policy) : errmsg("policy '%s' is not registered", g->policy),
			 errhint("What names it is refused rather than run unguarded. Create the policy again, or name another one."),
			 err_generic_string(PG_DIAG_TABLE_NAME, psprintf("policy %s", g->policy))));
}

static void
refuse_caller(const char *session)
{
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 aidb_refused("policy_denied"),
			 errmsg("policy session '%s' belongs to another caller", session)));
}

/* What is wrong with the call, as a text of the machine's own memory; NULL: nothing. */
static char *
denial(Passage *p, const AidbGuard *g)
{
	const char *condition = g->condition;
	int			len;
	MemoryContext old;
	char	   *text;

	if (g->permitted && g->unmet == NULL)
		return NULL;
	old = MemoryContextSwitchTo(p->home);
	if (!g->permitted)
		text = psprintf("DENY: %s not permitted from state %s", p->tool, g->from);
	else
	{
		len = pg_mbcliplen(condition, (int) strlen(condition), 200);
		text = psprintf("DENY: %s not permitted from state %s: condition (%.*s%s) %s", p->tool, g->from,
						len, condition, condition[len] ? "…" : "", g->unmet);
	}
	MemoryContextSwitchTo(old);
	return text;
}

/* In the owner's scope, for the hint needs a look at the transitions. */
static void
deny(Passage *p, const AidbGuard *g)
{
	const char *args[] = {g->policy, g->from};
	char	   *exits;

	aidb_execute(exits_sql, 2, args);
	exits = value(p, 0, 1);
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 aidb_refused("policy_denied"),
			 errmsg_internal("%s", denial(p, g)),
			 g->permitted ? 0 : exits ? errhint("From this state policy \"%s\" permits: %s.", g->policy, exits)
			 : errhint("From this state policy \"%s\" permits nothing.", g->policy),
			 err_generic_string(PG_DIAG_TABLE_NAME, psprintf("policy %s, state %s", g->policy, g->from))));
}

/* --- one machine --------------------------------------------------------------- */

static void
take_session(Passage *p, AidbGuard *g, uint64 row)
{
	g->from = value(p, row, 1);
	g->principal = value(p, row, 2);
	g->caller = value(p, row, 3);
}

/* Locks the session of a conversation; the first call of a conversation makes it. */
static void
lock_session(Passage *p, AidbGuard *g)
{
	const char *args[] = {g->session, g->policy, aidb_run_principal(), aidb_run_caller()};

	if (aidb_execute(lock_sql, 2, args) == 0)
	{
		aidb_execute(open_sql, 4, args);
		if (aidb_execute(lock_sql, 2, args) == 0)
			return;				/* no such policy, or a retired one: look() says so */
	}
	take_session(p, g, 0);
	if (strcmp(g->caller, args[3]) != 0)
		refuse_caller(g->session);
}

/* One call of a principal at a time, where a condition counts over all of them. */
static void
lock_principal(const char *principal)
{
	uint64		hash = hash_bytes_extended((const unsigned char *) principal, (int) strlen(principal), 0);
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) (hash >> 32), (uint32) hash, AIDB_LOCK_PRINCIPAL);
	(void) LockAcquire(&tag, ExclusiveLock, false, false);
}

/* Reads the policy and the transition as they are now. */
static void
look(Passage *p, AidbGuard *g)
{
	const char *args[] = {g->policy, g->from, p->tool};

	if (aidb_execute(look_sql, 3, args) == 0)
		refuse_policy(g, false);
	if (flag(0, 1))
		refuse_policy(g, true);
	g->log_only = strcmp(value(p, 0, 2), "log_only") == 0;
	g->condition_owner = (Oid) strtoul(value(p, 0, 3), NULL, 10);
	g->from = value(p, 0, 4);
	g->permitted = flag(0, 5);
	if (!g->permitted)
		return;
	g->to = value(p, 0, 6);
	g->condition = value(p, 0, 7);
	g->condition_sql = value(p, 0, 8);
	g->counts_principal = flag(0, 9);
	if (g->counts_principal && g->principal)
		lock_principal(g->principal);
}

static void
write_event(Passage *p, AidbGuard *g, const char *rank)
{
	const char *args[] = {g->session, g->policy, p->tool, p->params, g->from, g->to, g->principal, rank, g->would_deny};

	if (g->session == NULL)
		return;					/* in memory: whoever asked keeps the state */
	aidb_lock_events(g->session, g->principal);
	if (aidb_execute(write_sql, 9, args) != 1)
		elog(ERROR, "policy session %s is gone", g->session);
	g->event = value(p, 0, 1);
}

/* --- all machines ------------------------------------------------------------------ */

static const char *
ask(Passage *p, const AidbGuard *g)
{
	return aidb_evaluate(g->condition_owner, g->condition_sql, p->params, g->session, g->principal, p->timeout_ms);
}

/* The conditions, each as its owner; what they counted is kept for the next time. */
static void
evaluate(Passage *p, AidbGuard *guards, int n, AidbOwnerScope *scope)
{
	for (int i = 0; i < n; i++)
		aidb_events_settle(&guards[i]);
	leave(scope);
	PG_TRY();
	{
		for (int i = 0; i < n; i++)
		{
			AidbGuard  *g = &guards[i];

			if (g->condition == NULL)
				continue;
			aidb_events_asking(g, p->home);
			g->unmet = ask(p, g);
			if (g->unmet != NULL || !g->counted_principal || g->counts_principal)
				continue;
			/* a function that it calls counts over the principal, which nobody could know before */
			enter(scope, p);
			lock_principal(g->principal);
			leave(scope);
			g->counts_principal = true;
			g->unmet = ask(p, g);
		}
	}
	PG_FINALLY();
	{
		aidb_events_asking(NULL, NULL);
	}
	PG_END_TRY();
	enter(scope, p);
	for (int i = 0; i < n; i++)
		aidb_events_keep(&guards[i]);
}

/* After the sessions are locked: decides, and writes. */
static void
pass(Passage *p, AidbGuard *guards, int n, AidbOwnerScope *scope)
{
	bool		conditions = false;

	for (int i = 0; i < n; i++)
	{
		look(p, &guards[i]);
		conditions |= guards[i].condition != NULL;
	}
	if (conditions)
		evaluate(p, guards, n, scope);
	for (int i = 0; i < n; i++)
	{
		AidbGuard  *g = &guards[i];
		char	   *why = denial(p, g);

		if (why && !g->log_only)
			deny(p, g);
		g->would_deny = why;
		if (why || g->to == NULL)
			g->to = g->from;
	}
	for (int i = 0; i < n; i++)
		write_event(p, &guards[i], i == 0 ? "0" :
					guards[i].session && guards[i - 1].session && strcmp(guards[i].session, guards[i - 1].session) == 0 ? "2" : "1");
}

/*
 * The guards of a tool call of an agent, in the order (session, policy).  Raises
 * when one of them refuses; the caller's subtransaction then takes back what
 * the others wrote.
 */
void
aidb_guard(AidbGuard *guards, int n, const char *tool, const char *params, int timeout_ms, Oid owner)
{
	Passage		p = {.tool = tool,.params = params,.home = CurrentMemoryContext,.owner = owner,.timeout_ms = timeout_ms};
	AidbOwnerScope scope;

	enter(&scope, &p);
	for (int i = 0; i < n; i++)
		if (guards[i].session)
			lock_session(&p, &guards[i]);
		else
			guards[i].principal = (char *) aidb_run_principal();
	pass(&p, guards, n, &scope);
	leave(&scope);
	MemoryContextSwitchTo(p.home);
}

/* Locks all sessions of an id; raises when there is none, or they are somebody else's. */
static AidbGuard *
lock_sessions(Passage *p, const char *session, Oid user, int *n)
{
	AidbGuard  *guards;

	*n = (int) aidb_execute(lock_all_sql, 1, &session);
	if (*n == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("unknown session %s", session),
				 errhint("aidb.start_policy_session begins one.")));
	guards = MemoryContextAllocZero(p->home, sizeof(AidbGuard) * *n);
	for (int i = 0; i < *n; i++)
	{
		Oid			caller;

		guards[i].session = (char *) session;
		guards[i].policy = value(p, i, 4);
		take_session(p, &guards[i], i);
		caller = get_role_oid(guards[i].caller, true);
		if (!superuser_arg(user) && (!OidIsValid(caller) || !is_member_of_role(user, caller)))
			refuse_caller(session);
	}
	return guards;
}

/* All sessions of an id, for a call of `user`; see aidb_guard(). */
AidbGuard *
aidb_guard_session(const char *session, Oid user, const char *tool, const char *params, Oid owner, int *n)
{
	Passage		p = {.tool = tool,.params = params,.home = CurrentMemoryContext,.owner = owner};
	AidbOwnerScope scope;
	AidbGuard  *guards;

	enter(&scope, &p);
	guards = lock_sessions(&p, session, user, n);
	pass(&p, guards, *n, &scope);
	leave(&scope);
	MemoryContextSwitchTo(p.home);
	return guards;
}
