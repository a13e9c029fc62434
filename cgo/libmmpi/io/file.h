/* Files that programs open by MPI-IO, and the shared file pointers of those that span clusters. */
#ifndef ZIPPER_FILE_H
#define ZIPPER_FILE_H
#include "core/comm.h"
#include "core/error.h"
#include "request/wait.h"

/* A file that the program has opened in several processes. */
typedef struct zfile {
  MPI_Comm comm; /* a private communicator of all processes that have opened the file */
  /* 1 if the file is open in several clusters; 0 if it is open in this cluster only, in which case
   * comm is the only other field that is used. */
  int spans;
  int amode;  /* the access mode that the program passed to MPI_File_open; set if spans is 1 */
  char *name; /* the file's name; set if spans is 1 */
  char *path; /* at rank 0 the file's path from the root, without links; NULL if spans is 0 */
  /* The window of one number that holds the shared file pointer (sharedpointer.c); set if spans is
   * 1. */
  MPI_Win pointer;
  /* the size in bytes of the elementary type of the file's view */
  int element;
  /* the status of the split collective at the shared pointer that is in progress */
  MPI_Status split;
} zfile;

/* Makes the native call `call` and stores its result in rc. The native function may call back
 * through the shim's symbols, which pass such calls through. */
#define INSIDE(call) \
  do {               \
    z_enter();       \
    rc = real.call;  \
    z_leave();       \
  } while (0)

/* Returns the zfile of a handle, or NULL if the file is open in one cluster only. */
zfile *zfile_find(MPI_File file);

/* Frees the memory of the files that the program has left open. It is called at the end of MPI,
 * when the engine has ended. */
void zfile_stop(void);

/* Waits until all processes of this cluster that have opened the file have called this function,
 * which must precede a collective native call on the file; each serves the others meanwhile.
 * Returns an MPI error code. */
int zfile_meet(MPI_File file);

/* Functions for the shared file pointer of a file f that spans clusters. All but zshared_drop are
 * collective. */

/* Makes the window that holds the shared file pointer of f, and sets the pointer to 0 or, in append
 * mode, to the native file pointer of `file`, which then is at the end of the file. Returns an MPI
 * error code. */
int zshared_open(zfile *f, MPI_File file);
/* Sets the shared file pointer to `to`, in elementary types of the view, and returns once it is set
 * for all processes. Returns an MPI error code. */
int zshared_set(zfile *f, int64_t to);
/* Sets *at to the offset in bytes from the start of the file that the shared file pointer stands
 * for. Returns an MPI error code. */
int zshared_byte(zfile *f, MPI_File file, MPI_Offset *at);
/* Frees the window that holds the shared file pointer. Returns an MPI error code. */
int zshared_close(zfile *f);
/* Frees the window of the shared file pointer in this process alone. It is called at the end of
 * MPI, when the engine has ended. */
void zshared_drop(zfile *f);

/* Raises an error of a class, with `text`, through the file's error handler, and returns the code
 * that the MPI function must return. For MPI_FILE_NULL the function uses the handler of calls
 * without a file. */
int z_raise_file(MPI_File file, int class_, const char *function, const char *text);

/* Returns the path in the name of a file, which may begin with the driver of a file system, as in
 * "ufs:/path". */
const char *zfile_path(const char *name);

/* Raises on a file the error code rc of a call on its communicator or window, and returns the code
 * that the MPI function must return. It does nothing if rc is MPI_SUCCESS. */
int zfile_raise(MPI_File file, int rc);

/* Returns whether the user declares, by the info or ZIPPER_SHARED_FS, that all clusters share the
 * file system of the path `name`. *missing is set to 1 if its directory does not exist on this
 * host. */
int zfile_declared(const char *name, MPI_Info info, int32_t *missing);
/* the info key by which a program declares that all clusters share a file's path */
extern const char zfile_shared_key[];

/* Reports on standard error a value of ZIPPER_SHARED_FS, the user's variable for files, that is not
 * understood. */
void zfile_check_variable(void);
#endif
