/* Declarations that the files about the start and the end of MPI share. */
#ifndef ZIPPER_START_H
#define ZIPPER_START_H
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

#pragma GCC visibility push(hidden)

/* Opens the engine and fills z_eng with its functions. Returns NULL, or a text for the user about
 * why the engine cannot be used. */
const char *zengine_open(void);

/* looks up the native MPI functions and fills `real` with them; further calls do nothing */
void zload(void);

/* Returns the absolute path of the folder of this library with a slash at its end, or an empty
 * string if it is unknown. */
const char *zload_folder(void);

/* Set the environment variables with the rank and the number of ranks: zlauncher_native to the
 * values that the native library needs during its start, zlauncher_world back to those of
 * MPI_COMM_WORLD (launcher.c). */
void zlauncher_native(void);
void zlauncher_world(void);

/* Returns a text for the user about why this process cannot take part in the job, namely that
 * another launcher has started it, or NULL if it can (launcher.c). */
const char *zlauncher_problem(void);

/* Initializes native MPI by MPI_Init_thread, with the parameters of that function, and joins the
 * job. Returns an MPI error code. */
int zworld_init(int *argc, char ***argv, int required, int *provided);

/* Do what MPI_Init and MPI_Finalize must do in a process that uses sessions (session.c). They
 * return 1 if the native function must not be called, otherwise 0. If zsession_init returns 1 it
 * has set *provided to the thread level. */
int zsession_init(int *provided);
int zsession_finalize(void);

/* Joins the job that the environment describes, and makes its communicators. Afterwards z_is_off
 * tells whether this process takes part in a job. Returns an MPI error code. */
int zjob_join(void);

/* Stores the values of the environment variables, and of the part of z_layout, that spawned
 * processes need (spawn.c). */
void zspawn_note(void);
#define ZSPAWN_NAMESAKE "ZIPPER_NAMESAKE" /* the variable by which a spawned process gets z_world.namesake */

/* 1 once this process has left the job, which it does inside native MPI_Finalize, otherwise 0. */
extern int zjob_finalizing;

/* Returns the facts about the format of data in memory (facts.c, facts.Word). */
uint32_t zfacts(void);

#pragma GCC visibility pop
#endif
