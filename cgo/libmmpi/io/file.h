/* Files. */
#ifndef ZIPPER_FILE_H
#define ZIPPER_FILE_H
#include "core/comm.h"
#include "core/error.h"
#include "request/wait.h"

/* A file that the program has opened. */
typedef struct zfile {
  MPI_Comm comm; /* a private communicator of all processes that have opened the file */
  /* 1 if the file is open in several clusters; otherwise only comm is used. */
  int spans;
  int amode;  /* the access mode that the program passed to MPI_File_open; set if spans is 1 */
  char *name; /* the file's name; set if spans is 1 */
  /* The shared file pointer (sharedpointer.c). */
  MPI_Win pointer;
  int element;      /* the size in bytes of an elementary type of the view */
  MPI_Status split; /* the status of the ordered operation in progress */
} zfile;

/* Makes a native call whose result is stored in rc, and which may call back through the shim's
 * symbols. */
#define INSIDE(call) \
  do {               \
    z_enter();       \
    rc = real.call;  \
    z_leave();       \
  } while (0)

/* Returns the zfile of a handle, or NULL if the file is open in one cluster only. */
zfile *zfile_find(MPI_File file);

/* Frees the files that the program has left open, at the end of MPI, when the engine has ended. */
void zfile_stop(void);

/* Called before a collective native call on a file. It returns when all processes of this cluster
 * that share the file have called it; each serves the others meanwhile. */
int zfile_meet(MPI_File file);

/* The shared file pointer. The functions are collective. */

/* Makes the window that holds the shared file pointer, and sets the pointer to its initial value.
 * Returns an MPI error code. */
int zshared_open(zfile *f, MPI_File file);
/* Sets the pointer; returns when all processes have done so. */
int zshared_set(zfile *f, int64_t to);
/* Sets *at to the pointer's byte offset in the file. */
int zshared_byte(zfile *f, MPI_File file, MPI_Offset *at);
/* Frees the window that holds the shared file pointer. */
int zshared_close(zfile *f);
/* Frees the window of the shared file pointer in this process alone, at the end of MPI. */
void zshared_drop(zfile *f);

/* Raises an error of a class through the file's error handler, and returns the code for the
 * program. For MPI_FILE_NULL the function uses the handler of calls without a file. */
int z_raise_file(MPI_File file, int class_, const char *function, const char *text);

/* Whether the user declares that all clusters share the file system of the path. *missing is set if
 * its directory does not exist on this host. */
int zfile_declared(const char *name, MPI_Info info, int32_t *missing);
extern const char zfile_shared_key[]; /* the info key */

/* Reports a value of the user's variable for files that is not understood, on standard error. */
void zfile_check_variable(void);
#endif
