/*
 * lookup.h
 *		What a lookup is, once its text is read: program.c reads it, lookup.c runs
 *		it and says what the steps do.
 */
#ifndef AIDB_LOOKUP_H
#define AIDB_LOOKUP_H

#define LOOKUP_STEPS 16
#define LOOKUP_COLUMNS 64

typedef enum LookupKind
{
	STEP_GET, STEP_ROW, STEP_NEWEST, STEP_ANY, STEP_ROLENAME, STEP_SETTING
} LookupKind;

typedef struct LookupStep
{
	LookupKind	kind;
	char	   *table;
	char	   *index;
	int			param;			/* the parameter that is the key, or -1 */
	int			from;			/* the earlier column that is the key */
	int			first;			/* its first column of the result */
	int			ncols;
} LookupStep;

typedef struct LookupProgram
{
	char	   *text;
	int			nsteps;
	LookupStep	steps[LOOKUP_STEPS];
	int			ncols;
	char	   *columns[LOOKUP_COLUMNS];	/* as the table calls them */
	char	   *names[LOOKUP_COLUMNS]; /* as the result does */
} LookupProgram;

/* Kept for good; a text is read once in a process. */
extern LookupProgram *aidb_lookup_program(const char *text);

#endif							/* AIDB_LOOKUP_H */
