/*
 * worker.h
 *		The background worker's life.  Nothing here knows what a job means.
 */
#ifndef AIDB_WORKER_H
#define AIDB_WORKER_H

#include "postgres.h"

/* Settings of the worker, and the worker itself when the library is preloaded. */
extern void aidb_register_worker(void);

#endif							/* AIDB_WORKER_H */
