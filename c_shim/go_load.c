/*
 * go_load.c
 *		Loads the Go library into this backend, at its first use.
 *
 * The order matters; each step is there because leaving it out lost signals or
 * crashed the cluster (docs/design/seam.md):
 *	- only after the fork: a Go runtime started in the postmaster has no
 *	  threads in its children;
 *	- by an absolute path made from pkglib_path: a path that a user could set
 *	  would run any code;
 *	- with all signals blocked around dlopen(): Go's threads inherit the mask,
 *	  so that signals sent to the process always reach the main thread;
 *	- then every signal handler that the Go runtime installed is replaced by
 *	  what PostgreSQL had, but SIGSEGV and SIGBUS, which turn a nil pointer in
 *	  Go into a panic that we recover from;
 *	- at last the mask of every Go thread is looked at: if one of them leaves
 *	  SIGURG open, latch wake-ups would be lost, and the library is not used.
 */
#include "aidb.h"

#include <dirent.h>
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>

#include "storage/fd.h"
#include "storage/ipc.h"

#define LAST_SIGNAL 64
#define READY_TIMEOUT_MS 10000
#define GO_TIMER_SLACK_NS 4000000UL

static AidbBridge *bridge = NULL;
static pid_t bridge_pid = 0;
static char *load_failure = NULL;

/* What to look up before a function starts, as Go said when it became ready. */
typedef struct Prefetch
{
	char	   *function;
	char	   *statement;
} Prefetch;

#define MAX_PREFETCH 8
static Prefetch prefetch[MAX_PREFETCH];
static int	nprefetch = 0;

static void *
open_library(const char *path)
{
	struct sigaction before[LAST_SIGNAL + 1];
	sigset_t	all,
				old;
	void	   *handle;
	int			slack;

	for (int s = 1; s <= LAST_SIGNAL; s++)
		if (sigaction(s, NULL, &before[s]) != 0)
			before[s].sa_flags = -1;	/* not a signal we may look at */

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	/*
	 * The runtime's monitor thread polls every 20 us while anything runs.
	 * Threads inherit the slack of their timers from their creator: with some
	 * milliseconds of it the monitor looks rarely, and a conversation costs a
	 * tenth less CPU.  Events wake threads as fast as ever; only time-outs of
	 * Go are that much less exact.
	 */
	slack = prctl(PR_GET_TIMERSLACK);
	prctl(PR_SET_TIMERSLACK, GO_TIMER_SLACK_NS);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	prctl(PR_SET_TIMERSLACK, slack > 0 ? (unsigned long) slack : 0UL);
	for (int s = 1; s <= LAST_SIGNAL; s++)
	{
		if (before[s].sa_flags == -1 || s == SIGSEGV || s == SIGBUS)
			continue;
		sigaction(s, &before[s], NULL);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return handle;
}

/* Does every thread but the main one block SIGURG? */
static bool
signal_masks_are_safe(int *threads)
{
	DIR		   *dir = opendir("/proc/self/task");
	struct dirent *entry;
	bool		safe = true;

	*threads = 0;
	if (dir == NULL)
		return false;
	while ((entry = readdir(dir)) != NULL)
	{
		char		path[64],
					line[256];
		FILE	   *f;
		unsigned long long mask = 0;
		bool		found = false;

		if (entry->d_name[0] == '.' || atoi(entry->d_name) == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%.16s/status", entry->d_name);
		f = fopen(path, "r");
		if (f == NULL)
			continue;			/* the thread has ended meanwhile */
		while (fgets(line, sizeof(line), f))
			if (sscanf(line, "SigBlk: %llx", &mask) == 1)
			{
				found = true;
				break;
			}
		fclose(f);
		(*threads)++;
		if (found && (mask & (1ULL << (SIGURG - 1))) == 0)
			safe = false;
	}
	closedir(dir);
	return safe;
}

static void
keep_prefetch(const AidbMsg *m)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	AidbReader	r;

	aidb_read_begin(&r, m);
	while (r.left >= 2 && nprefetch < MAX_PREFETCH)
	{
		prefetch[nprefetch].function = aidb_read_text(&r);
		prefetch[nprefetch].statement = aidb_read_text(&r);
		nprefetch++;
	}
	MemoryContextSwitchTo(old);
}

const char *
aidb_prefetch_statement(const char *function)
{
	for (int i = 0; i < nprefetch; i++)
		if (strcmp(prefetch[i].function, function) == 0)
			return prefetch[i].statement;
	return NULL;
}

/* Waits until the Go runtime says that it is up. */
static bool
wait_until_ready(AidbBridge *b)
{
	for (int waited = 0; waited < READY_TIMEOUT_MS;)
	{
		struct pollfd p = {.fd = b->to_pg,.events = POLLIN};
		AidbMsg    *m = aidb_pop(b, &b->requests);

		if (m)
		{
			bool		ready = m->kind == AIDB_REQ_READY;

			if (ready)
				keep_prefetch(m);
			free(m);
			if (ready)
				return true;
			continue;
		}
		CHECK_FOR_INTERRUPTS();
		if (poll(&p, 1, 100) == 0)
			waited += 100;
	}
	return false;
}

static char *
load(void)
{
	char		path[MAXPGPATH];
	void	   *handle;
	AidbBridgeGetter getter;
	AidbBridge *b;
	int			threads;

	snprintf(path, sizeof(path), "%s/aidb_go.so", pkglib_path);
	aidb_warm_heap();
	handle = open_library(path);
	if (handle == NULL)
		return psprintf("could not load \"%s\": %s", path, dlerror());
	aidb_warm_library(handle);
	getter = (AidbBridgeGetter) dlsym(handle, AIDB_BRIDGE_SYMBOL);
	if (getter == NULL)
		return psprintf("\"%s\" is not a library of this extension", path);
	b = getter();
	if (b->version != AIDB_BRIDGE_VERSION || b->size != sizeof(AidbBridge))
		return psprintf("\"%s\" is of another version than aidb.so: install both again", path);
	if (b->to_go < 0 || b->to_pg < 0)
		return pstrdup("could not create an eventfd: too many open files");
	/* the runtime initialises itself on a thread of its own meanwhile */
	aidb_warm_catalog();
	if (!wait_until_ready(b))
		return psprintf("the Go runtime did not start within %d ms", READY_TIMEOUT_MS);
	if (!signal_masks_are_safe(&threads))
		return pstrdup("a Go thread can receive PostgreSQL's signals: "
					   "the library was not built with asynchronous preemption off");
	/* The two descriptors are ours for good: fd.c has to count with them. */
	ReserveExternalFD();
	ReserveExternalFD();
	bridge_pid = MyProcPid;
	bridge = b;
	return NULL;
}

/*
 * The bridge of this process, loading the library if need be.  A load that
 * failed is never tried again: a runtime that is half up cannot be unloaded.
 */
AidbBridge *
aidb_go_bridge(void)
{
	if (bridge && bridge_pid == MyProcPid)
		return bridge;
	if (!IsUnderPostmaster || bridge)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("agents cannot run in this process"),
				 errdetail("The Go runtime works only in a server process that loaded it itself.")));
	if (load_failure == NULL)
	{
		char	   *failure = load();

		if (failure)
			load_failure = MemoryContextStrdup(TopMemoryContext, failure);
	}
	if (load_failure)
		ereport(ERROR,
				(errcode(ERRCODE_SYSTEM_ERROR),
				 errmsg("the aidb runtime cannot be used in this session"),
				 errdetail("%s.", load_failure),
				 errhint("Reinstall the extension's libraries and connect again.")));
	return bridge;
}
