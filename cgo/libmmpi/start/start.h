/* What the files of the start share. */
#ifndef ZIPPER_START_H
#define ZIPPER_START_H

#define EXPORT __attribute__((visibility("default")))

#pragma GCC visibility push(hidden)

/* Fills z_eng. NULL, or why not. */
const char *zengine_open(void);

void zload(void); /* fills `real`; again: nothing */

/* The absolute path of the folder in which this library lies, with a slash at its end. Empty if it
 * is unknown. */
const char *zload_folder(void);

/* Give the launcher's variables the values that the native library needs during its start, and
 * those of MPI_COMM_WORLD again (launcher.c). */
void zlauncher_native(void);
void zlauncher_world(void);

/* Why this process cannot be in the job: another launcher than the job's has started it. NULL: it
 * has not (launcher.c). */
const char *zlauncher_problem(void);

/* MPI_Init_thread, and joining. MPI error code */
int zworld_init(int *argc, char ***argv, int required, int *provided);

/* For MPI_Init and MPI_Finalize of a program with sessions (session.c). 1: there is nothing else to
 * do. */
int zsession_init(int *provided);
int zsession_finalize(void);

/* Joins the job that the environment describes. Its communicators are there afterwards, and
 * z_is_off says whether it has several clusters. Returns an MPI error code. */
int zjob_join(void);

/* Notes what of the environment, and of z_layout, the processes need that the program spawns
 * (spawn.c). */
void zspawn_note(void);
#define ZSPAWN_NAMESAKE "ZIPPER_NAMESAKE" /* there, z_world.namesake */

extern int zjob_finalizing; /* native MPI_Finalize is running and all of this cluster are there */

#pragma GCC visibility pop
#endif
