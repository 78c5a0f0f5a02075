/*
 * program.c
 *		The texts of lookups (lookup.c), read.
 */
#include "aidb.h"

#include "utils/memutils.h"

#include "lookup.h"

#define PREFIX "LOOKUP\n"
#define MAX_PROGRAMS 8

static const char *const kind_names[] = {"get", "row", "newest", "any", "rolename", "setting"};

static LookupProgram *programs[MAX_PROGRAMS];
static int	nprograms = 0;

bool
aidb_is_lookup(const char *sql)
{
	return strncmp(sql, PREFIX, strlen(PREFIX)) == 0;
}

static int
column_named(const LookupProgram *p, const char *name)
{
	for (int i = 0; i < p->ncols; i++)
		if (strcmp(p->names[i], name) == 0)
			return i;
	elog(ERROR, "lookup has no column \"%s\" yet", name);
}

static char *
word(char **line)
{
	char	   *w = strsep(line, " ");

	if (w == NULL || *w == '\0')
		elog(ERROR, "lookup step is too short");
	return w;
}

static void
add_column(LookupProgram *p, LookupStep *step, char *name)
{
	if (p->ncols == LOOKUP_COLUMNS)
		elog(ERROR, "lookup has too many columns");
	p->columns[p->ncols] = strsep(&name, "=");
	p->names[p->ncols] = name ? name : p->columns[p->ncols];
	p->ncols++;
	step->ncols++;
}

static void
add_step(LookupProgram *p, char *line)
{
	LookupStep *step = &p->steps[p->nsteps];
	char	   *kind = word(&line);
	char	   *key;

	if (p->nsteps == LOOKUP_STEPS)
		elog(ERROR, "lookup has too many steps");
	*step = (LookupStep) {.kind = -1, .param = -1, .first = p->ncols};
	for (int i = 0; i < (int) lengthof(kind_names); i++)
		if (strcmp(kind, kind_names[i]) == 0)
			step->kind = i;
	switch (step->kind)
	{
		case STEP_GET:
		case STEP_ROW:
			step->table = word(&line);
			step->index = word(&line);
			key = word(&line);
			if (key[0] == '$')
				step->param = atoi(key + 1) - 1;
			else
				step->from = column_named(p, key);
			while (line)
				add_column(p, step, word(&line));
			break;
		case STEP_ANY:
			step->table = word(&line);
			add_column(p, step, step->table);
			break;
		case STEP_ROLENAME:
			step->from = column_named(p, word(&line));
			add_column(p, step, p->names[step->from]);
			break;
		case STEP_NEWEST:
		case STEP_SETTING:
			add_column(p, step, word(&line));
			break;
		default:
			elog(ERROR, "lookup has no step \"%s\"", kind);
	}
	p->nsteps++;
}

LookupProgram *
aidb_lookup_program(const char *text)
{
	MemoryContext mine;
	MemoryContext old;
	LookupProgram *p;
	char	   *rest;

	for (int i = 0; i < nprograms; i++)
		if (strcmp(programs[i]->text, text) == 0)
			return programs[i];
	if (nprograms == MAX_PROGRAMS)
		elog(ERROR, "too many lookups");
	/* a text with a fault leaves nothing behind */
	mine = AllocSetContextCreate(CurrentMemoryContext, "aidb lookup", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(mine);
	p = palloc0(sizeof(LookupProgram));
	p->text = pstrdup(text);
	rest = pstrdup(text + strlen(PREFIX));
	while (rest)
		add_step(p, strsep(&rest, "\n"));
	MemoryContextSwitchTo(old);
	MemoryContextSetParent(mine, TopMemoryContext);
	programs[nprograms++] = p;
	return p;
}
