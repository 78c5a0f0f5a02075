/*
 * aidb.h
 *		What the files of aidb.so share.  One section per file.
 *
 * Vocabulary: a *run* is one call of an SQL function that is implemented in Go;
 * a *tool call* is one execution of a tool's SQL inside the sandbox; the
 * *caller* is current_user where the run was entered; the *owner* is the role
 * that owns the extension's functions, under which its own tables are written.
 */
#ifndef AIDB_H
#define AIDB_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "nodes/parsenodes.h"
#include "tcop/dest.h"
#include "utils/elog.h"

#include "bridge.h"
#include "compat.h"

/* --- guc.c: settings ------------------------------------------------------ */
extern int	aidb_max_tool_rows;
extern int	aidb_max_tool_bytes;	/* bytes */
extern int	aidb_tool_temp_file_limit;	/* kB */
extern int	aidb_tool_timeout;		/* ms */
extern bool aidb_allow_superuser_tools;
extern bool aidb_test_hooks;
extern char *aidb_tool_search_path;
extern char *aidb_tool_allowed_functions;
extern char *aidb_hidden_settings;
extern char *aidb_env_var_allowed_prefix;
extern char *aidb_k8s_secret_allowed_path_prefix;

extern void aidb_define_settings(void);
/* "name, value" fields that Go is to know; changes whenever a setting does. */
extern void aidb_config_fields(StringInfo buf);

/* --- fields.c: the body of a message -------------------------------------- */
typedef struct AidbReader
{
	const unsigned char *at;
	const unsigned char *end;
	int			left;			/* fields not read yet */
} AidbReader;

extern void aidb_fields_begin(StringInfo buf);
extern void aidb_fields_put(StringInfo buf, const char *text, int len); /* NULL text = NULL field */
extern void aidb_fields_raw(StringInfo buf, const char *bytes, int len); /* no text: never converted */
extern void aidb_fields_text(StringInfo buf, const char *text);
extern void aidb_fields_int(StringInfo buf, int64 value);
extern void aidb_fields_bool(StringInfo buf, bool value);
extern void aidb_read_begin(AidbReader *r, const AidbMsg *m);
extern char *aidb_read_text(AidbReader *r); /* palloc'ed, NULL for a NULL field */
extern int64 aidb_read_int(AidbReader *r);
extern bool aidb_read_bool(AidbReader *r);

/* --- error.c: refusals, and errors as records ----------------------------- */
extern void aidb_error_reset(void);
/*
 * Called inside ereport(): marks an error as raised by us and says what kind
 * of refusal it is (a decision record's denial_reason).
 */
#define aidb_refused(reason) aidb_refused_in((reason), __func__)
extern int	aidb_refused_in(const char *reason, const char *function);
extern void aidb_error_in_text(void *sql);
extern const char *aidb_error_reason(const ErrorData *e);
extern void aidb_error_fields(StringInfo buf, const ErrorData *e);
extern void aidb_raise_from_go(AidbReader *r) __attribute__((noreturn));

/* --- go_load.c: the Go library -------------------------------------------- */
extern AidbBridge *aidb_go_bridge(void);	/* loads it at first use; raises */
extern const char *aidb_prefetch_statement(const char *function);	/* NULL: none */

/* --- warm.c: a cheap first call ---------------------------------------------- */
extern void aidb_warm_heap(void);
extern void aidb_warm_library(void *handle);
extern void aidb_warm_catalog(void);

/* --- serve.c: one run, from START to RESULT ------------------------------- */
typedef struct AidbResult
{
	int			ncols;
	int			nrows;
	char	  **values;			/* row by row; NULL entries are NULL */
} AidbResult;

extern void aidb_serve(const char *function, int nargs, char **args, Oid owner, AidbResult *result);
/* for the worker, which has many runs at a time (worker/tasks.c) */
extern void aidb_set_run(uint64 id, Oid owner, char *caller, char *principal);
extern void aidb_send_command(AidbBridge *b, uint32 kind, uint64 run_id, StringInfo body);
extern void aidb_send_config(AidbBridge *b);
extern AidbMsg *aidb_serve_request(AidbMsg *m);	/* the reply */
extern void aidb_serve_write(AidbMsg *m);
extern const char *aidb_run_caller(void);	/* of the run in hand, or NULL */
extern const char *aidb_run_principal(void);
extern const char *aidb_run_search_path(void);	/* of whoever entered the run, or NULL */
extern bool aidb_run_active(void);
extern int	aidb_run_level(void);	/* of transactions, where the run was entered */

/* --- go_wait.c --------------------------------------------------------------- */
extern void aidb_wait_for_go(AidbBridge *b, long timeout);

/* --- scope.c: a subtransaction around requests ------------------------------- */
extern void aidb_run_scope(const char *what);	/* begin, keep, undo */
extern void aidb_leave_open_scope(MemoryContext outer) __attribute__((noreturn));
extern ErrorData *aidb_try(void (*work) (void *), void *arg, bool undo);

/* --- worker/audit.c: decisions that outlive a rollback ------------------------- */
extern void aidb_audit(AidbReader *r);
extern void aidb_await_audit(void);
extern bool aidb_keep(AidbReader *r);

/* --- requests.c: what Go may ask for ---------------------------------------- */
extern uint32 aidb_handle_request(uint32 kind, AidbReader *r, StringInfo reply, Oid owner);
extern void aidb_show_notice(AidbReader *r);
struct pg_uuid_t;
extern bool aidb_lock_conversation(const struct pg_uuid_t *id, bool dont_wait);

/* --- turns.c: what all processes count together ------------------------------ */
extern bool aidb_shared_message(AidbBridge *b, const AidbMsg *m);	/* of a living run; false: no such message */

/* --- limits.c: limits of a model or a server, shared by all processes -------- */
extern void aidb_limits_preload(void);
extern void aidb_limits_admit(AidbReader *r, StringInfo reply, uint64 run);
extern void aidb_limits_leave(AidbReader *r, uint64 run);
extern void aidb_limits_pause(AidbReader *r);
extern void aidb_limits_end(uint64 run);	/* of a run that is over; 0: of all */

/* --- spent.c: what callers have used today, as quotas count it --------------- */
extern void aidb_spent_preload(void);
extern void aidb_spend(AidbReader *r, StringInfo reply);

/* --- sandbox.c: the only code that changes the user id --------------------- */
typedef struct AidbOwnerScope
{
	Oid			user;
	int			sec;
	int			guc_level;
} AidbOwnerScope;

extern void aidb_enter_owner(AidbOwnerScope *s, Oid owner);
extern void aidb_leave_owner(AidbOwnerScope *s);

/* One machine of a temporal policy that a tool call has to pass; see guard.c. */
typedef struct AidbGuard
{
	char	   *session;		/* uuid; NULL: in memory, of a run that stores nothing */
	char	   *policy;
	char	   *from;			/* its state; NULL in memory: not begun */
	/* what the guard found */
	char	   *principal;
	char	   *caller;
	bool		log_only;
	bool		permitted;		/* there is a transition */
	char	   *to;				/* the new state */
	char	   *condition;
	char	   *condition_sql;
	Oid			condition_owner;
	const char *unmet;			/* what the condition is instead of true, or NULL */
	char	   *would_deny;		/* the refusal that log_only lets through */
	char	   *event;			/* id of the row written */
	/* what its condition counts; see events.c */
	bool		counts_principal;
	bool		counted_principal;	/* its evaluation did */
	int64		session_seen;
	int64		principal_seen;
	List	   *totals;
} AidbGuard;

typedef struct AidbToolCall
{
	/* what is asked for */
	char	   *role_name;		/* NULL: the caller */
	Oid			role_id;		/* what that role must be, or InvalidOid */
	Oid			as_role;		/* a condition's owner, whom the caller need not be a member of */
	const char *search_path;	/* of a condition; NULL: the caller's */
	char	   *statement;
	char	   *function;		/* regprocedure whose EXECUTE the role needs, or NULL */
	bool		read_only;
	bool		trusted;		/* our own text: analysed before the switch */
	bool		elevated;		/* the purpose allows superuser and the like */
	bool		fingerprint;	/* its rows fingerprinted */
	bool		check_only;		/* privileges of the statement; it is not run */
	bool		own_statement;	/* the statement is the tool's, not an argument */
	int			max_rows;
	int64		max_bytes;
	int			timeout_ms;
	int			nparams;
	char	  **param_types;
	char	  **param_values;
	char	  **param_names;	/* NULL: not an argument by that name */
	char	   *conversation_id;	/* what aidb.conversation_id() and aidb.agent_name() */
	char	   *agent_name;			/* tell row-level security inside the call */
	struct _SPI_plan *plan;			/* of trusted text */
	char	   *tool_name;		/* what the guards are asked about */
	char	   *tool_params;	/* JSON */
	bool		probe;			/* neither its effect nor the guards' events are kept */
	int			nguards;
	AidbGuard  *guards;
	/* what came of it */
	StringInfo	rows;			/* fields: one JSON object a row; in the caller's memory */
	int			nrows;
	uint64		affected;
	const char *tag;			/* SELECT, INSERT, ... */
	bool		returns_rows;
	bool		truncated;
	uint64		row_print;		/* of all rows, whatever their order */
} AidbToolCall;

typedef struct AidbToolScope AidbToolScope;

extern AidbToolScope *aidb_tool_scope;	/* NULL outside a tool call */
/* This process makes each transaction for one tool call alone, and nobody else's work is in it. */
extern bool aidb_own_transactions;
extern void aidb_commit_as(Oid role);	/* InvalidOid: as whoever we are */
extern Oid	aidb_last_tool_role;
extern void aidb_run_tool(AidbToolCall *call);	/* enter, execute, leave; raises */
extern bool aidb_tool_deadline_passed(void);

struct AidbToolScope
{
	AidbToolCall *call;
	Oid			role;
	bool		read_only;
	volatile sig_atomic_t deadline_hit;
	char		cancelled[256]; /* what the user's cancel said, if there was one */
	MemoryContext memory;		/* of the caller */
	int64		logged;			/* bytes that it made procedures log */
	int64		told;			/* bytes of RAISE INFO, which go to the client */
};

/* --- portals.c: cursors of the caller and of a tool call --------------------- */
typedef struct AidbFrozenPortal
{
	struct PortalData *portal;
	int			status;
	bool		pinned;
} AidbFrozenPortal;

typedef struct AidbPortals
{
	int			nnames;			/* of all portals before the call */
	char	  **names;
	int			nfrozen;
	AidbFrozenPortal *frozen;
} AidbPortals;

extern void aidb_freeze_portals(AidbPortals *p);
extern void aidb_thaw_portals(AidbPortals *p);
extern void aidb_drop_new_portals(AidbPortals *p);

/* --- identity.c, callsettings.c: two steps of entering --------------------- */
extern Oid	aidb_tool_role(AidbToolCall *call);
extern void aidb_set_call_settings(const char *search_path, bool read_only);

/* --- guard.c, guarded.c, condition.c: temporal policies --------------------- */
extern void aidb_guard(AidbGuard *guards, int n, const char *tool, const char *params, int timeout_ms, Oid owner);
extern AidbGuard *aidb_guard_session(const char *session, Oid user, const char *tool, const char *params, Oid owner, int *n);
extern void aidb_run_guarded(AidbToolCall *call, Oid owner);	/* guards and effect, or neither; raises */
extern const char *aidb_evaluate(Oid as, const char *sql, const char *params, const char *session, const char *principal, int timeout_ms);

/* --- events.c: what conditions ask about what has happened ------------------- */
extern int64 aidb_replayed_event;	/* of aidb.simulate_policy; else the greatest number */
extern TimestampTz aidb_replayed_at;
extern void aidb_lock_events(const char *session, const char *principal);
extern void aidb_events_settle(AidbGuard *g);
extern void aidb_events_asking(AidbGuard *g, MemoryContext memory);
extern void aidb_events_keep(AidbGuard *g);

/* --- tool.c: the statement of a tool call ---------------------------------- */
extern void aidb_tool_prepare(AidbToolCall *call);	/* trusted text, before the switch */
extern void aidb_tool_execute(AidbToolCall *call);	/* inside the sandbox */

/* --- render.c: rows as JSON, within limits --------------------------------- */
extern DestReceiver *aidb_json_receiver(AidbToolCall *call);
extern void aidb_check_column_names(List *names);

/* --- filter.c, functions.c: what runs while a tool call is on -------------- */
extern void aidb_install_filters(void);
extern void aidb_check_statement(RawStmt *raw, bool read_only);
extern bool aidb_is_escape_statement(Node *stmt);	/* of identity, or of the caller's settings */
extern void aidb_check_function(Oid fn, bool read_only);
extern bool aidb_looking;		/* a statement is being analysed with the owner's rights */
extern void aidb_check_looking(Oid fn);
extern bool aidb_function_is_denied(HeapTuple proc);
extern bool aidb_function_is_harmless(HeapTuple proc);
extern bool aidb_function_numbers(HeapTuple proc);
extern bool aidb_function_runs_text(HeapTuple proc);

/* --- rights.c: code of the role under the rights of another ------------------ */
extern void aidb_install_rights(void);
extern void aidb_check_rights(Oid fn);

/* --- ourtables.c: the extension's tables are out of a tool's reach ---------- */
extern void aidb_check_our_tables(struct PlannedStmt *plan);
extern void aidb_check_truncate(TruncateStmt *stmt);

/* --- plpgsql.c: PL/pgSQL while a tool call is on ----------------------------- */
extern bool aidb_plpgsql_ran;	/* since the plan cache was last reset */
extern void aidb_install_plpgsql_plugin(void);
extern void aidb_install_log_filter(void);
extern void aidb_plpgsql_forget(void);	/* what the call compiled */

/* --- prove.c: read-only statements ------------------------------------------- */
extern void aidb_prove_read_only(Query *query);

/* --- sqlbody.c: the body of an SQL function ------------------------------------ */
extern List *aidb_sql_function_queries(HeapTuple tuple, struct FormData_pg_proc *proc, Node *call);

/* --- columns.c: what a statement returns ---------------------------------------- */
extern bool aidb_written_columns(RawStmt *raw, List **names);

/* --- entry.c ------------------------------------------------------------------ */
struct FunctionCallInfoBaseData;
extern struct Tuplestorestate *aidb_result_store(struct FunctionCallInfoBaseData *fcinfo, struct TupleDescData **desc);
extern void aidb_refuse_inside_tool_call(const char *function);
extern Oid	aidb_function_owner(Oid fn);
extern const char *aidb_owner_call_search_path(void);	/* of who called the API function, or NULL */

/* --- query.c: our own SQL --------------------------------------------------- */
extern struct _SPI_plan *aidb_plan(const char *sql, int nargs); /* all parameters are texts */
extern void aidb_push_newest_snapshot(void);
extern uint64 aidb_execute(const char *sql, int nargs, const char **args);
extern void aidb_run_queries(AidbReader *r, StringInfo reply, Oid owner);
extern void aidb_note_caller(Oid owner);	/* callers.c */
extern void aidb_run_query(const char *sql, const char *argument, StringInfo reply, Oid owner);

/* --- copy.c: rows of our own tables ------------------------------------------ */
extern bool aidb_is_copy(const char *sql);
extern void aidb_copy_rows(const char *sql, const char *rows);

/* --- lookup.c: rows of our own tables by their keys ----------------------------- */
extern bool aidb_is_lookup(const char *sql);
extern Oid	aidb_own_relation(const char *name);	/* a table or an index in aidb_internal */
extern void aidb_lookup(const char *text, int nargs, char **args, StringInfo reply);
extern bool aidb_lookup_gives(const char *text, int nargs, char **args, int nvalues, char **expected);

/* --- newest.c: the newest decision ------------------------------------------------ */
extern bytea *aidb_newest_decision(void);
/* Of a log that is partitioned by time. */
extern Oid	aidb_partition_for_now(struct RelationData *log);

#endif							/* AIDB_H */
