/* Declarations that the files of the start share. */
#ifndef ZIPPER_START_H
#define ZIPPER_START_H

#define EXPORT __attribute__((visibility("default")))

#pragma GCC visibility push(hidden)

/* Fills z_eng with the engine's functions. Returns NULL, or why the engine cannot be used. */
const char *zengine_open(void);

void zload(void); /* fills `real` with the native functions; further calls do nothing */

/* Returns the absolute path of the folder of this library with a slash at its end, or an empty
 * string if it is unknown. */
const char *zload_folder(void);

/* Set the launcher's variables to the values that the native library needs during its start, and
 * back to those of MPI_COMM_WORLD (launcher.c). */
void zlauncher_native(void);
void zlauncher_world(void);

/* Returns why this process cannot take part in the job, namely that another launcher has started
 * it, or NULL if it can (launcher.c). */
const char *zlauncher_problem(void);

/* Calls native MPI_Init_thread and joins the job. Returns an MPI error code. */
int zworld_init(int *argc, char ***argv, int required, int *provided);

/* Do what MPI_Init and MPI_Finalize must do in a process with sessions (session.c). They return 1
 * if the native function must not be called. */
int zsession_init(int *provided);
int zsession_finalize(void);

/* Joins the job that the environment describes. Afterwards its communicators exist, and z_is_off
 * tells whether it has several clusters. Returns an MPI error code. */
int zjob_join(void);

/* Notes the variables, and the part of z_layout, that spawned processes need (spawn.c). */
void zspawn_note(void);
#define ZSPAWN_NAMESAKE "ZIPPER_NAMESAKE" /* the variable by which a spawned process gets z_world.namesake */

/* 1 while native MPI_Finalize runs, after all processes of this cluster have reached it. */
extern int zjob_finalizing;

#pragma GCC visibility pop
#endif
