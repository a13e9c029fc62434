/* MPI-IO on a communicator that spans clusters. The user declares that a path is on a file system
 * that all clusters share. Then each cluster opens the file natively for its own part, and reads
 * and writes are done by its native MPI-IO.
 *
 * This file has the operations on which all clusters have to agree: opening (one cluster creates a
 * new file, then the others open it), closing and deleting, resizing, syncing. The shared file
 * pointer is the shim's own (sharedpointer.c). Atomic mode is not supported, because it needs locks
 * that clusters do not share. */
#include "io/file.h"
#include "comm/comm.h"
#include "io/hints.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The map from a file's native handle to its zfile. Files that one process has opened alone are not
 * in it. */
static zmap files;

static zfile *get(MPI_File file) { return zmap_count(&files) ? zmap_get(&files, z_key(file)) : NULL; }

zfile *zfile_find(MPI_File file) {
  zfile *f = get(file);
  return f && f->spans ? f : NULL;
}

/* Frees a zfile, or does nothing if it is NULL. */
static void drop(zfile *f) {
  if (f) free(f->name), free(f->path);
  free(f);
}

int zfile_raise(MPI_File file, int rc) {
  return rc ? z_raise_file(file, z_native_class(rc), "a call on a file",
                           "not all processes that have opened it have taken part")
            : rc;
}

/* Waits for all processes that have opened a file f that spans clusters, in a job that goes on when
 * a cluster is lost. Returns MPI_SUCCESS if all processes of this cluster go on, or the code of an
 * error that was raised. */
static int meet_everywhere(MPI_File file, const zfile *f) {
  return zfile_raise(file, zcomm_vote(zcomm_find(f->comm), z_Barrier(f->comm), "a collective call on a file"));
}

int zfile_meet(MPI_File file) {
  zfile *f = get(file);
  if (f && f->spans && z_layout.on_loss) return meet_everywhere(file, f);
  return !f ? MPI_SUCCESS : z_native_barrier(f->spans ? zcomm_find(f->comm)->native : f->comm);
}

/* ---- error classes in a form that all MPI libraries share ---- */

static const int classes[] = {MPI_SUCCESS,         MPI_ERR_IO,     MPI_ERR_NO_SUCH_FILE, MPI_ERR_FILE_EXISTS,
                              MPI_ERR_ACCESS,      MPI_ERR_AMODE,  MPI_ERR_BAD_FILE,     MPI_ERR_NO_SPACE,
                              MPI_ERR_READ_ONLY,   MPI_ERR_QUOTA,  MPI_ERR_FILE_IN_USE,  MPI_ERR_NO_MEM,
                              Z_CLASS_PROC_FAILED, Z_CLASS_REVOKED};
enum { CLASSES = sizeof classes / sizeof *classes };

static int place_of(int class_) {
  int i = 0;
  while (i < CLASSES && classes[i] != class_) i++;
  return i < CLASSES ? i : 1;
}

static int portable(int rc) { return place_of(z_native_class(rc)); }

/* ---- open ---- */

/* Opens the file `name` in this cluster with the native library, and stores the native handle in
 * *out, unless a process of this cluster passes an error code `came` (zcomm_vote). *raised is set
 * to 1 if the native library has failed, and so has called the handler of MPI_FILE_NULL. A handler
 * of the program's may have turned the error into MPI_SUCCESS. Returns an MPI error code. */
static int open_native(zcomm *c, int came, const char *name, int amode, MPI_Info info, MPI_File *out, int *raised) {
  MPI_Info hints;
  int failed = zhints_spanning(info, &hints), rc = zcomm_vote(c, came ? came : failed, "MPI_File_open");
  if (!rc) rc = zcomm_meet(c->native);
  if (rc && !failed) real.Info_free(&hints);
  if (rc) return rc;
  z_enter();
  rc = real.File_open(c->native, name, amode, hints, out);
  z_leave();
  real.Info_free(&hints);
  *raised = rc || *out == MPI_FILE_NULL;
  return rc || !*raised ? rc : MPI_ERR_IO;
}

/* Returns the greatest of the results `mine` of the ranks of c, which are indices in `classes`, or
 * -1 if the ranks could not exchange their results. */
static int worst(zcomm *c, int mine, const char *function) {
  int *all = malloc((size_t)c->size * sizeof *all), found = -1;
  if (all && !zcomm_allgather(c, &mine, sizeof mine, all, function)) {
    found = 0;
    for (int i = 0; i < c->size; i++)
      if (all[i] > found) found = all[i];
  }
  free(all);
  return found;
}

/* Waits for all processes of c in this cluster: in a job that goes on when a cluster is lost by
 * messages, because a collective of c that has failed may have left native stages behind. */
static int meet_here(zcomm *c) {
  return z_layout.on_loss ? zcomm_meet_members(c->world, c->size, 0) : z_native_barrier(c->native);
}

static int open_everywhere(zcomm *c, const char *name, int amode, MPI_Info info, MPI_File *out, int *raised) {
  static const char function[] = "MPI_File_open";
  /* Sequential mode is not passed to the native library, because all access in it uses the shared
   * pointer, which is the shim's, and so explicit offsets */
  int first = zcluster_has(c->world[0]), found = 0, opened = 0,
      native = amode & ~(MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_SEQUENTIAL);
  int came = z_layout.on_loss ? z_Barrier(c->native) : MPI_SUCCESS;
  if (first) found = portable(open_native(c, came, name, native, info, out, raised)), opened = !found;
  int32_t first_result = found;
  int lost = zcomm_bcast(c, &first_result, sizeof first_result, 0, function);
  if (lost && !z_layout.on_loss) return MPI_ERR_OTHER;
  if (!first && !(found = first_result))
    found = portable(open_native(c, lost, name, native & ~MPI_MODE_EXCL, info, out, raised)), opened = !found;
  found = worst(c, found, function);
  if (zcomm_vote(c, found < 0 ? MPI_ERR_OTHER : MPI_SUCCESS, function)) found = -1;
  if (found == 0) return MPI_SUCCESS;
  if (opened && !meet_here(c)) {
    z_enter();
    z_ignore(real.File_close(out)); /* the open has failed already */
    z_leave();
  }
  *out = MPI_FILE_NULL;
  if (found < 0) return zcomm_is_hurt(c) ? Z_CLASS_PROC_FAILED : MPI_ERR_OTHER;
  return classes[found];
}

/* Converts the access modes of MPI_File_open to bits whose numbers do not depend on the MPI
 * library. */
static int portable_amode(int amode) {
  static const int bits[] = {MPI_MODE_RDONLY,      MPI_MODE_WRONLY,     MPI_MODE_RDWR,
                             MPI_MODE_CREATE,      MPI_MODE_EXCL,       MPI_MODE_DELETE_ON_CLOSE,
                             MPI_MODE_UNIQUE_OPEN, MPI_MODE_SEQUENTIAL, MPI_MODE_APPEND};
  int set = 0;
  for (unsigned i = 0; i < sizeof bits / sizeof *bits; i++)
    if (amode & bits[i]) set |= 1 << i;
  return set;
}

/* Checks the arguments of MPI_File_open, with the same result at all ranks: an error class, or 0 if
 * the file may be opened. After an error *why is set to a text for the user. */
static int verdict(zcomm *c, const char *name, int amode, MPI_Info info, const char **why) {
  /* With the function's name the text is shorter than MPI_MAX_ERROR_STRING, which is 256 in Open
   * MPI */
  static _Thread_local char text[200];
  struct wish {
    int32_t shared, amode, missing;
  } mine = {.amode = portable_amode(amode)}, *all = malloc((size_t)c->size * sizeof *all);
  mine.shared = zfile_declared(name, info, &mine.missing);
  int rc = all ? zcomm_allgather(c, &mine, sizeof mine, all, "MPI_File_open") : MPI_ERR_NO_MEM;
  for (int i = 0; i < c->size && !rc; i++) {
    if (!all[i].shared) {
      rc = MPI_ERR_UNSUPPORTED_OPERATION;
      snprintf(text, sizeof text,
               "virtual rank %d was not told that all clusters share the path's file system: if they do, set the info "
               "key zipper_shared=true "
               "or ZIPPER_SHARED_FS=/directory:/another",
               c->world[i]);
      *why = text;
    } else if (all[i].missing) { /* found before the first cluster creates the file */
      rc = MPI_ERR_NO_SUCH_FILE;
      snprintf(text, sizeof text, "virtual rank %d does not find the path's directory", c->world[i]);
      *why = text;
    } else if (all[i].amode != all[0].amode) {
      rc = MPI_ERR_NOT_SAME, *why = "the access modes are not the same at all ranks";
    }
  }
  free(all);
  if (!rc && amode & MPI_MODE_SEQUENTIAL && amode & MPI_MODE_RDWR)
    rc = MPI_ERR_AMODE, *why = "MPI_MODE_SEQUENTIAL goes with reading or with writing, not with both";
  return rc;
}

static int open_inside(MPI_Comm comm, const char *name, int amode, MPI_Info info, MPI_File *out) {
  MPI_Info hints = info;
  int size, rank, rc = real.Comm_size(comm, &size);
  zfile *f = rc || size == 1 ? NULL : calloc(1, sizeof *f);
  *out = MPI_FILE_NULL;
  if (!rc) rc = real.Comm_rank(comm, &rank);
  if (!rc) rc = zhints_inside(info, &hints);
  if (!rc && f && !(rc = z_Comm_split(comm, 0, rank, &f->comm)) && f->comm == MPI_COMM_NULL) rc = MPI_ERR_OTHER;
  if (!rc) {
    z_enter();
    rc = real.File_open(comm, name, amode, hints, out);
    z_leave();
    /* *out is MPI_FILE_NULL too if a handler has turned the error into MPI_SUCCESS */
    if (rc) *out = MPI_FILE_NULL;
    if (f && *out == MPI_FILE_NULL) real.Comm_free(&f->comm);
  }
  if (hints != info) real.Info_free(&hints);
  if (*out == MPI_FILE_NULL) free(f);
  else if (f) zmap_put(&files, z_key(*out), f);
  return rc;
}

int z_File_open(MPI_Comm comm, const char *name, int amode, MPI_Info info, MPI_File *out) {
  static const char function[] = "MPI_File_open";
  zcomm *c = zcomm_find(comm);
  if (!c) return open_inside(comm, name, amode, info, out);
  *out = MPI_FILE_NULL;
  if (c->inter) return z_raise_file(MPI_FILE_NULL, MPI_ERR_COMM, function, "not supported on an intercommunicator");
  const char *why = "no memory";
  int rc = verdict(c, name, amode, info, &why), raised = 0;
  if (rc) return z_raise_file(MPI_FILE_NULL, rc, function, why);
  zfile *f = calloc(1, sizeof *f);
  if (f) *f = (zfile){.spans = 1, .amode = amode, .name = strdup(name), .pointer = MPI_WIN_NULL};
  if (!f || !f->name) rc = MPI_ERR_NO_MEM;
  /* The file has a communicator of its own, because the program's may be in use and may be
   * freed. */
  if (!rc) rc = zcomm_split(c, 0, c->rank, function, &f->comm);
  if (!rc && z_layout.on_loss)
    rc = real.Comm_set_errhandler(f->comm, MPI_ERRORS_RETURN); /* the file's handler gets errors */
  if (!rc && (rc = open_everywhere(zcomm_find(f->comm), name, amode, info, out, &raised))) z_Comm_free(&f->comm);
  if (rc) {
    drop(f);
    return raised ? rc : z_raise_file(MPI_FILE_NULL, rc, function, "the file cannot be opened in all clusters");
  }
  if (!zcomm_find(f->comm)->rank) f->path = realpath(zfile_path(name), NULL);
  zmap_put(&files, z_key(*out), f);
  rc = zshared_open(f, *out);
  if (!z_layout.on_loss || !(rc = zcomm_vote(zcomm_find(f->comm), rc, function))) return rc;
  z_ignore(z_File_close(out)); /* the open has failed already */
  return z_raise_file(MPI_FILE_NULL, z_native_class(rc), function, "the file cannot be opened in all clusters");
}

void zfile_stop(void) {
  for (zfile *f; (f = zmap_take(&files));) {
    if (f->spans) zshared_drop(f);
    drop(f);
  }
}

/* ---- collective over all clusters ---- */

/* Returns the lowest rank of c that is not in a lost cluster. */
static int first_alive(const zcomm *c) {
  int32_t n = 0, first = 0, *lost = zcomm_is_hurt(c) ? malloc((size_t)c->size * sizeof *lost) : NULL;
  if (lost) Z_ENGINE(ze_failed(c->id, lost, c->size, &n));
  for (int i = 0; i < n; i++) /* the lost clusters come in the order of their losses */
    if (lost[i] == first) first++, i = -1;
  free(lost);
  return first;
}

int z_File_close(MPI_File *file) {
  zfile *f = get(*file);
  int rc = f && f->spans ? zshared_close(f) : zfile_meet(*file);
  if (f && f->spans && zcomm_is_hurt(zcomm_find(f->comm))) rc = MPI_SUCCESS; /* closed without the lost processes */
  zmap_remove(&files, z_key(*file));
  if (!rc) INSIDE(File_close(file));
  if (!f) return rc;
  if (!f->spans) {
    real.Comm_free(&f->comm);
    drop(f);
    return rc;
  }
  zcomm *c = zcomm_find(f->comm);
  int rc2 = z_Barrier(f->comm);
  if (f->amode & MPI_MODE_DELETE_ON_CLOSE && (!rc2 || zcomm_is_hurt(c))) {
    /* native MPI closes a file in the same way */
    for (int first = -1; first != first_alive(c); rc2 = z_Barrier(f->comm))
      if ((first = first_alive(c)) == c->rank) z_ignore(real.File_delete(f->name, MPI_INFO_NULL));
  }
  if (zcomm_is_hurt(c)) rc2 = MPI_SUCCESS;
  z_Comm_free(&f->comm);
  drop(f);
  return rc ? rc : rc2;
}

/* Defines z_NAME, a collective call on a file. If the file is open in several clusters, all
 * processes of all clusters begin it together, and none of them leaves it before it has completed
 * in all clusters. */
#define TOGETHER(NAME, PARAMS, ...)                                          \
  int z_##NAME PARAMS {                                                      \
    zfile *f = zfile_find(file);                                             \
    int rc = f && !z_layout.on_loss ? z_Barrier(f->comm) : zfile_meet(file); \
    if (rc) return rc;                                                       \
    INSIDE(NAME(__VA_ARGS__));                                               \
    int rc2 = f ? zfile_raise(file, z_Barrier(f->comm)) : MPI_SUCCESS;       \
    return rc ? rc : rc2;                                                    \
  }
TOGETHER(File_set_size, (MPI_File file, MPI_Offset size), file, size)
TOGETHER(File_sync, (MPI_File file), file)

/* ---- preallocation ---- */

/* Allocates the first `size` bytes of the file with a path. Returns an MPI error class. */
static int allocate(const char *path, MPI_Offset size) {
  if (!size) return MPI_SUCCESS;
  int fd = path ? open(path, O_WRONLY | O_CLOEXEC) : -1, error = fd < 0 ? errno : EINTR;
  while (fd >= 0 && error == EINTR) error = posix_fallocate(fd, 0, size);
  if (fd >= 0) close(fd);
  switch (path ? error : ENOENT) {
  case 0: return MPI_SUCCESS;
  case ENOENT: return MPI_ERR_NO_SUCH_FILE;
  case ENOSPC: return MPI_ERR_NO_SPACE;
  case EDQUOT: return MPI_ERR_QUOTA;
  case EROFS: return MPI_ERR_READ_ONLY;
  case EACCES:
  case EPERM: return MPI_ERR_ACCESS;
  default: return MPI_ERR_IO;
  }
}

/* Rank 0 allocates the space of a file that spans clusters by a call of the operating system's, and
 * broadcasts the result. Open MPI's native function (4.1.4) makes a file that has the size already
 * twice as long, and returns an undefined code at ranks other than 0. */
int z_File_preallocate(MPI_File file, MPI_Offset size) {
  static const char function[] = "MPI_File_preallocate";
  zfile *f = zfile_find(file);
  int rc;
  if (!f) {
    if (!(rc = zfile_meet(file))) INSIDE(File_preallocate(file, size));
    return rc;
  }
  if (size < 0) return z_raise_file(file, MPI_ERR_ARG, function, "the size is negative");
  if (f->amode & MPI_MODE_RDONLY) return z_raise_file(file, MPI_ERR_READ_ONLY, function, "the file may only be read");
  zcomm *c = zcomm_find(f->comm);
  if ((rc = z_layout.on_loss ? zfile_meet(file) : z_Barrier(f->comm))) return rc;
  int32_t found = c->rank ? 0 : place_of(allocate(f->path, size));
  rc = zcomm_bcast(c, &found, sizeof found, 0, function);
  int rc2 = z_Barrier(f->comm);
  if (rc || rc2 || !found) return zfile_raise(file, rc ? rc : rc2);
  return z_raise_file(file, classes[found], function,
                      "the file system refuses rank 0 the space that it allocates for all");
}

/* ---- other functions ---- */

int z_File_set_view(MPI_File file, MPI_Offset at, MPI_Datatype element, MPI_Datatype type, const char *form,
                    MPI_Info info) {
  MPI_Info hints = info;
  zfile *f = zfile_find(file);
  if (f && z_layout.mixed && f->amode & (MPI_MODE_WRONLY | MPI_MODE_RDWR) && !strcmp(form, "native")) {
    const ztype *t = ztype_get(element);
    if (t && t->longs)
      return z_raise_file(file, MPI_ERR_UNSUPPORTED_DATAREP, "MPI_File_set_view",
                          "\"native\" with long double in a file that clusters with different formats of long double "
                          "write: use \"external32\" or convert to double");
  }
  int rc = (f ? zhints_spanning : zhints_inside)(info, &hints);
  if (!rc && f && at == MPI_DISPLACEMENT_CURRENT && f->amode & MPI_MODE_SEQUENTIAL)
    rc = zfile_raise(file, zshared_byte(f, file, &at));
  if (!rc) rc = zfile_meet(file);
  if (!rc) INSIDE(File_set_view(file, at, element, type, form, hints));
  if (hints != info) real.Info_free(&hints);
  if (!f) return rc;
  int size = 0, rc2 = rc ? rc : real.Type_size(element, &size);
  if (size > 0) f->element = size;
  int rc3 = zshared_set(f, 0);
  return rc2 ? rc2 : zfile_raise(file, rc3);
}

int z_File_set_info(MPI_File file, MPI_Info info) {
  MPI_Info hints = info;
  int rc = (zfile_find(file) ? zhints_spanning : zhints_inside)(info, &hints);
  if (!rc) rc = zfile_meet(file);
  if (!rc) INSIDE(File_set_info(file, hints));
  if (hints != info) real.Info_free(&hints);
  return rc;
}

int z_File_get_amode(MPI_File file, int *amode) {
  zfile *f = zfile_find(file);
  if (!f) return real.File_get_amode(file, amode);
  *amode = f->amode;
  return MPI_SUCCESS;
}

int z_File_get_group(MPI_File file, MPI_Group *out) {
  zfile *f = zfile_find(file);
  if (f) return z_Comm_group(f->comm, out);
  MPI_Group native = MPI_GROUP_NULL;
  int rc = real.File_get_group(file, &native);
  if (!rc && (rc = zgroup_wrap(&native, out)))
    rc = z_raise_file(file, rc, "MPI_File_get_group", "the group cannot be created");
  return rc;
}

/* Raises an error if a program requests atomic mode for a file that spans clusters, which has
 * nonatomic mode only. */
int z_File_set_atomicity(MPI_File file, int on) {
  if (on && zfile_find(file))
    return z_raise_file(file, MPI_ERR_UNSUPPORTED_OPERATION, "MPI_File_set_atomicity",
                        "the file is open in several clusters, which share no locks: use MPI_File_sync and barriers");
  int rc = zfile_meet(file);
  if (!rc) INSIDE(File_set_atomicity(file, on));
  return rc;
}
