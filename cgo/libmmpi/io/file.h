/* Files. */
#ifndef ZIPPER_FILE_H
#define ZIPPER_FILE_H
#include "core/comm.h"
#include "core/error.h"
#include "request/wait.h"

typedef struct zfile {
  MPI_Comm comm; /* private, of all processes that opened it */
  int spans;     /* several clusters; else there is nothing more in here */
  int amode;
  char *name;
  /* The shared file pointer (sharedpointer.c). */
  MPI_Win pointer;
  int element;      /* bytes in an elementary type of the view */
  MPI_Status split; /* of the ordered operation that has begun */
} zfile;

/* A native call into rc, as a call of ours. */
#define INSIDE(call) \
  do {               \
    z_enter();       \
    rc = real.call;  \
    z_leave();       \
  } while (0)

/* The spanning file behind a handle; NULL: inside one cluster, native. */
zfile *zfile_find(MPI_File file);

/* Forgets the files that the program has left open, at the end of MPI when the engine is gone. */
void zfile_stop(void);

/* Called before a collective native call on a file. When it returns all who share the file in this
 * cluster are there; each serves the others meanwhile. */
int zfile_meet(MPI_File file);

/* The shared file pointer; collective. */
int zshared_open(zfile *f, MPI_File file);
int zshared_set(zfile *f, int64_t to);                     /* all are at it when it returns */
int zshared_byte(zfile *f, MPI_File file, MPI_Offset *at); /* where it is in the file */
int zshared_close(zfile *f);
void zshared_drop(zfile *f); /* not collective, for the end of MPI */

/* Raises an error of a class through the file's handler (MPI_FILE_NULL: that of no file); the code
 * to return. */
int z_raise_file(MPI_File file, int class_, const char *function, const char *text);

/* Whether the user declares that all clusters share the file system of the path. *missing: its
 * directory is not here. */
int zfile_declared(const char *name, MPI_Info info, int32_t *missing);
extern const char zfile_shared_key[]; /* of the info */

void zfile_doubt(void); /* says on standard error what in the user's variable for files is not understood */
#endif
