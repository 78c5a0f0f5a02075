/*
 * aidb.c
 *		The library's start: what happens when PostgreSQL loads aidb.so.
 *
 * Loaded by CREATE EXTENSION and by the first call in a session, or in the
 * postmaster through shared_preload_libraries.  Both are fine: nothing here
 * starts Go (see go_load.c).
 */
#include "aidb.h"

#include "worker.h"


PG_MODULE_MAGIC;

void		_PG_init(void);

void
_PG_init(void)
{
	aidb_register_worker();
	aidb_define_settings();
	aidb_limits_preload();
	aidb_spent_preload();
	aidb_install_filters();
}
