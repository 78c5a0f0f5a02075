/*
 * guc.c
 *		The settings of the extension, in alphabetical order.
 *
 * Whatever decides how far an agent can reach is for superusers (and those to
 * whom they grant SET on it); inside a tool call nobody can set anything.
 */
#include "aidb.h"

#include <limits.h>

#include "commands/dbcommands.h"

#include "worker.h"

#define MINUTES_A_DAY 1440
#define MOST_DAYS 36500			/* for which a log is kept, unless for ever */

int			aidb_max_tool_rows = 100;
int			aidb_max_tool_bytes = 256 * 1024;
int			aidb_tool_temp_file_limit = 1024 * 1024;
int			aidb_tool_timeout = 10000;
bool		aidb_allow_superuser_tools = false;
bool		aidb_test_hooks = false;
char	   *aidb_tool_search_path = NULL;
char	   *aidb_tool_allowed_functions = NULL;
char	   *aidb_hidden_settings = NULL;
char	   *aidb_env_var_allowed_prefix = NULL;
char	   *aidb_k8s_secret_allowed_path_prefix = NULL;

static bool actions = true;
static bool allow_insecure_egress = false;
static bool allow_insecure_tls = false;
static int	audit = 0;
static char *ca_file = NULL;
static int	confirmation_ttl = 600;
static char *default_purpose = NULL;
static int	delegation_role = 0;
static char *egress_allowlist = NULL;
static char *https_proxy = NULL;
static int	max_mcp_bytes = 8 * 1024 * 1024;
static int	max_model_bytes = 8 * 1024 * 1024;
static int	mcp_stale_after = 3600;
static int	memory_limit_mb = 96;
static int	model_max_concurrent_requests = 0;
static int	model_requests_per_minute = 0;
static int	model_retries = 3;
static int	model_retry_delay = 500;
static int	model_timeout = 0;
static int	model_tokens_per_minute = 0;
static char *no_proxy = NULL;
static int	otel_client = 0;
static char *principal = NULL;
static bool redaction = true;
static int	retention_action_log = 0;
static int	retention_decision_log = 0;
static int	retention_otel = 0;
static int	unclassified_tools = 0;

/* The values are their places in the tables. */
static const struct config_enum_entry delegation_roles[] = {
	{"parent", 0, false},
	{"narrowest", 1, false},
	{NULL, 0, false}
};

static const struct config_enum_entry audits[] = {
	{"transaction", 0, false},
	{"durable", 1, false},
	{NULL, 0, false}
};

static const struct config_enum_entry otel_clients[] = {
	{"noop", 0, false},
	{"database", 1, false},
	{"log", 2, false},
	{NULL, 0, false}
};

static const struct config_enum_entry unclassified_choices[] = {
	{"allow", 0, false},
	{"confirm", 1, false},
	{"deny", 2, false},
	{NULL, 0, false}
};

static void
define_bool(const char *name, const char *text, bool *value, GucContext context)
{
	DefineCustomBoolVariable(name, text, NULL, value, *value, context, 0, NULL, NULL, NULL);
}

static void
define_int(const char *name, const char *text, int *value, int min, int max, int flags)
{
	DefineCustomIntVariable(name, text, NULL, value, *value, min, max, PGC_SUSET, flags, NULL, NULL, NULL);
}

static void
define_string(const char *name, const char *text, char **value, const char *boot, GucContext context)
{
	DefineCustomStringVariable(name, text, NULL, value, boot, context, 0, NULL, NULL, NULL);
}

/* A function that has SET aidb.principal would show a tool the history of other people. */
static bool
check_principal(char **newval, void **extra, GucSource source)
{
	if (aidb_tool_scope == NULL)
		return true;
	GUC_check_errcode(ERRCODE_INSUFFICIENT_PRIVILEGE);
	GUC_check_errmsg("parameter \"aidb.principal\" cannot be changed in a tool call");
	return false;
}

/*
 * Everybody may read a setting, and where it was set (pg_db_role_setting): no
 * place for a password.
 */
static bool
check_proxy(char **newval, void **extra, GucSource source)
{
	const char *host = strstr(*newval, "://");
	const char *at = strchr(*newval, '@');
	const char *colon = strchr(host ? host + 3 : *newval, ':');

	if (at == NULL || colon == NULL || colon > at)
		return true;
	GUC_check_errmsg("parameter \"aidb.https_proxy\" must not hold a password");
	GUC_check_errhint("Everybody may read settings. Put the proxy into HTTPS_PROXY of the server's environment.");
	return false;
}

/* A number alone is one of minutes, and was hardly meant. */
static bool
check_retention(int *newval, void **extra, GucSource source)
{
	if (*newval == 0 || *newval >= MINUTES_A_DAY)
		return true;
	GUC_check_errmsg("a log cannot be kept for less than a day");
	GUC_check_errhint("Give the unit, as in '90d', or 0 to keep it for ever.");
	return false;
}

static void
define_retention(const char *name, const char *text, int *value)
{
	DefineCustomIntVariable(name, text, "0: for ever.", value, *value, 0, MOST_DAYS * MINUTES_A_DAY, PGC_SUSET, GUC_UNIT_MIN,
							check_retention, NULL, NULL);
}

void
aidb_define_settings(void)
{
	define_bool("aidb.actions",
				"Off: no tool runs that does more than read, from the next call on, in running calls too.", &actions, PGC_SUSET);
	define_bool("aidb.allow_insecure_egress",
				"Allows plain HTTP to hosts other than loopback.", &allow_insecure_egress, PGC_SUSET);
	define_bool("aidb.allow_insecure_tls",
				"Allows a model's tls_config to skip the verification of certificates.", &allow_insecure_tls, PGC_SUSET);
	define_bool("aidb.allow_superuser_tools",
				"Lets tools that write run as a superuser caller of an agent without a purpose.",
				&aidb_allow_superuser_tools, PGC_SUSET);
	DefineCustomEnumVariable("aidb.audit",
							 "When decision records are kept: with the caller's transaction, or as they are made, whatever becomes of that.",
							 NULL, &audit, 0, audits, PGC_SUSET, 0, NULL, NULL, NULL);
	define_string("aidb.ca_file",
				  "File with the certificate authorities that model servers are verified with; empty: the system's.",
				  &ca_file, "", PGC_SUSET);
	DefineCustomIntVariable("aidb.confirmation_ttl",
							"How long an action waits for a person's yes.", NULL, &confirmation_ttl,
							confirmation_ttl, 1, 86400, PGC_SUSET, GUC_UNIT_S, NULL, NULL, NULL);
	define_string("aidb.default_purpose",
				  "Purpose that aidb.run_tool and the functions behind tools run under; set it for a login role with ALTER ROLE. Empty: they run as the caller.",
				  &default_purpose, "", PGC_SUSET);
	DefineCustomEnumVariable("aidb.delegation_role",
							 "What the tools of a delegate run as: what the delegating agent's run as, or the role of the delegate's own purpose where that has no more rights.",
							 NULL, &delegation_role, 0, delegation_roles, PGC_SUSET, 0, NULL, NULL, NULL);
	define_string("aidb.egress_allowlist",
				  "Hosts that may be connected to: exact names, .suffixes, addresses, CIDR ranges, separated by commas; empty: every host over TLS.",
				  &egress_allowlist, "", PGC_SUSET);
	define_string("aidb.env_var_allowed_prefix",
				  "Environment variables of the server that credentials may be read from begin with this; empty: none may.",
				  &aidb_env_var_allowed_prefix, "AIDB_", PGC_SUSET);
	define_string("aidb.hidden_settings",
				  "Custom settings whose names contain one of these words (or equal '=name') are blank inside a tool call.",
				  &aidb_hidden_settings, "token,secret,password,passwd,jwt,api_key,apikey,credential", PGC_SUSET);
	DefineCustomStringVariable("aidb.https_proxy",
							   "Proxy for requests to model servers; empty: HTTPS_PROXY or HTTP_PROXY of the server's environment.",
							   NULL, &https_proxy, "", PGC_SUSET, 0, check_proxy, NULL, NULL);
	define_string("aidb.k8s_secret_allowed_path_prefix",
				  "Secret files that credentials may be read from begin with this path; empty: none may.",
				  &aidb_k8s_secret_allowed_path_prefix, "/var/run/secrets/", PGC_SUSET);
	define_int("aidb.max_mcp_bytes",
			   "The longest message of an MCP server that is read.", &max_mcp_bytes, 4096, 256 * 1024 * 1024, GUC_UNIT_BYTE);
	define_int("aidb.max_model_bytes",
			   "The longest reply of a model server that is read.", &max_model_bytes, 4096, 256 * 1024 * 1024, GUC_UNIT_BYTE);
	define_int("aidb.max_tool_bytes",
			   "Bytes of a tool's result that the model is given; what is beyond is cut and marked.",
			   &aidb_max_tool_bytes, 256, 64 * 1024 * 1024, GUC_UNIT_BYTE);
	define_int("aidb.max_tool_rows",
			   "Rows of a tool's result that the model is given; what is beyond is left out and marked.",
			   &aidb_max_tool_rows, 1, 100000, 0);
	define_int("aidb.mcp_stale_after",
			   "Age at which the list of an MCP server's tools is fetched again before one of them is called.",
			   &mcp_stale_after, 1, INT_MAX / 1000, GUC_UNIT_S);
	define_int("aidb.memory_limit",
			   "Memory that the Go runtime of a session tries to stay below.", &memory_limit_mb, 16, 65536, GUC_UNIT_MB);
	define_int("aidb.model_max_concurrent_requests",
			   "Requests at a time of a model whose config does not say, all sessions together; 0: no limit.",
			   &model_max_concurrent_requests, 0, 1000000, 0);
	define_int("aidb.model_requests_per_minute",
			   "Requests a minute of a model whose config does not say, all sessions together; 0: no limit.",
			   &model_requests_per_minute, 0, 1000000, 0);
	define_int("aidb.model_retries",
			   "Further tries of a model request that failed for a passing reason.", &model_retries, 0, 20, 0);
	define_int("aidb.model_retry_delay",
			   "Wait before the second try of a model request; it doubles with each one, unless the server says how long.",
			   &model_retry_delay, 1, 60000, GUC_UNIT_MS);
	define_int("aidb.model_timeout",
			   "Time limit of each try of a model request; 0: only the agent's own.", &model_timeout, 0, INT_MAX, GUC_UNIT_MS);
	define_int("aidb.model_tokens_per_minute",
			   "Tokens, input and output, a minute of a model whose config does not say, all sessions together; 0: no limit.",
			   &model_tokens_per_minute, 0, 1000000000, 0);
	define_string("aidb.no_proxy",
				  "Hosts that are connected to without the proxy; empty: NO_PROXY of the server's environment.",
				  &no_proxy, "", PGC_SUSET);
	DefineCustomEnumVariable("aidb.otel_client",
							 "Where OpenTelemetry spans go: nowhere, to aidb_otel.traces, or to the server's log.",
							 NULL, &otel_client, 0, otel_clients, PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("aidb.principal",
							   "The end user on whose behalf the application calls; empty: the caller's role. Keeps people behind one role apart.",
							   NULL, &principal, "", PGC_USERSET, 0, check_principal, NULL, NULL);
	define_bool("aidb.redaction",
				"Takes secrets out of the log, debug lines, errors, decisions and traces.", &redaction, PGC_SUSET);
	define_retention("aidb.retention_action_log", "How long tasks and their steps are kept.", &retention_action_log);
	define_retention("aidb.retention_decision_log", "How long decision records are kept.", &retention_decision_log);
	define_retention("aidb.retention_otel", "How long traces in aidb_otel are kept.", &retention_otel);
	define_bool("aidb.test_hooks",
				"Makes the extension's own fault tests callable by superusers.", &aidb_test_hooks, PGC_SUSET);
	define_string("aidb.tool_allowed_functions",
				  "Functions (schema.name) that tools may call although they are refused by default.",
				  &aidb_tool_allowed_functions, "", PGC_SUSET);
	define_string("aidb.tool_search_path",
				  "search_path inside a tool call; empty: the caller's, with pg_temp last.",
				  &aidb_tool_search_path, "", PGC_SUSET);
	define_int("aidb.tool_temp_file_limit",
			   "Temporary files that the session may have while a tool call runs; -1: what temp_file_limit says.",
			   &aidb_tool_temp_file_limit, -1, INT_MAX, GUC_UNIT_KB);
	define_int("aidb.tool_timeout",
			   "Time limit of one tool call; 0: only the agent's own.", &aidb_tool_timeout, 0, INT_MAX, GUC_UNIT_MS);
	DefineCustomEnumVariable("aidb.unclassified_tools",
							 "What becomes of a tool that writes and has no risk class: it runs, waits for a person, or is refused.",
							 NULL, &unclassified_tools, 0, unclassified_choices, PGC_SUSET, 0, NULL, NULL, NULL);
	AIDB_RESERVE_GUC_PREFIX();
}

static void
put(StringInfo buf, const char *name, const char *value)
{
	aidb_fields_text(buf, name);
	aidb_fields_text(buf, value);
}

static const char *
environment(const char *setting, const char *name, const char *other)
{
	const char *value = setting[0] ? setting : getenv(name);

	if (value == NULL && other)
		value = getenv(other);
	return value ? value : "";
}

/* Go has no environment and reads no files of ours: all it knows comes from here. */
void
aidb_config_fields(StringInfo buf)
{
	const char *other_list = GetConfigOption("edb.egress_allowlist", true, false);
	bool		own_list = egress_allowlist[0] != '\0' || other_list == NULL || other_list[0] == '\0';

	aidb_fields_begin(buf);
	put(buf, "allow_insecure_egress", allow_insecure_egress ? "t" : "f");
	put(buf, "allow_insecure_tls", allow_insecure_tls ? "t" : "f");
	put(buf, "audit", audits[audit].name);
	put(buf, "ca_file", ca_file);
	put(buf, "confirmation_ttl", psprintf("%d", confirmation_ttl));
	put(buf, "default_purpose", default_purpose);
	put(buf, "delegation_role", delegation_roles[delegation_role].name);
	put(buf, "egress_allowlist", own_list ? egress_allowlist : other_list);
	put(buf, "egress_parameter", own_list ? "aidb.egress_allowlist" : "edb.egress_allowlist");
	put(buf, "https_proxy", environment(https_proxy, "HTTPS_PROXY", "HTTP_PROXY"));
	put(buf, "no_proxy", environment(no_proxy, "NO_PROXY", NULL));
	put(buf, "max_mcp_bytes", psprintf("%d", max_mcp_bytes));
	put(buf, "max_model_bytes", psprintf("%d", max_model_bytes));
	put(buf, "max_tool_bytes", psprintf("%d", aidb_max_tool_bytes));
	put(buf, "max_tool_rows", psprintf("%d", aidb_max_tool_rows));
	put(buf, "mcp_stale_after_s", psprintf("%d", mcp_stale_after));
	put(buf, "memory_limit_mb", psprintf("%d", aidb_own_transactions ? aidb_worker_memory_limit : memory_limit_mb));
	put(buf, "model_max_concurrent_requests", psprintf("%d", model_max_concurrent_requests));
	put(buf, "model_requests_per_minute", psprintf("%d", model_requests_per_minute));
	put(buf, "model_tokens_per_minute", psprintf("%d", model_tokens_per_minute));
	put(buf, "model_retries", psprintf("%d", model_retries));
	put(buf, "model_retry_delay_ms", psprintf("%d", model_retry_delay));
	put(buf, "model_timeout_ms", psprintf("%d", model_timeout));
	put(buf, "redaction", redaction ? "t" : "f");
	put(buf, "otel_client", otel_clients[otel_client].name);
	put(buf, "database_name", get_database_name(MyDatabaseId));
	put(buf, "database_oid", psprintf("%u", MyDatabaseId));
	put(buf, "session_id", psprintf("%lx.%x", (long) MyStartTime, MyProcPid));
	put(buf, "tool_timeout_ms", psprintf("%d", aidb_tool_timeout));
}
