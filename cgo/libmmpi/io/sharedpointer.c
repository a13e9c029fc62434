/* The shared file pointer of a file that spans clusters: a number in a window of rank 0. Each
 * access advances it by the number of elements, and then reads or writes natively at an explicit
 * offset. An ordered access advances it once for all ranks. */
#include "comm/comm.h"
#include "io/file.h"
#include "rma/win.h"

/* ---- the pointer, in elementary types of the view ---- */

static int move(zfile *f, int64_t by, MPI_Op op, int64_t *was) {
  int rc = z_Fetch_and_op(&by, was, MPI_INT64_T, 0, 0, op, f->pointer);
  return rc ? rc : z_Win_flush(0, f->pointer);
}

int zshared_open(zfile *f, MPI_File file) {
  int rank, rc = z_Comm_rank(f->comm, &rank);
  void *cell;
  MPI_Offset end = 0;
  f->element = 1;
  if (!rc) rc = z_Win_allocate(rank ? 0 : sizeof(int64_t), sizeof(int64_t), MPI_INFO_NULL, f->comm, &cell, &f->pointer);
  if (!rc && z_layout.on_loss) rc = real.Win_set_errhandler(f->pointer, MPI_ERRORS_RETURN);
  if (!rc) rc = z_Win_lock_all(0, f->pointer);
  if (!rc && f->amode & MPI_MODE_APPEND) rc = real.File_get_position(file, &end);
  return rc ? rc : zshared_set(f, end);
}

int zshared_set(zfile *f, int64_t to) {
  int64_t was;
  int rc = zcomm_find(f->comm)->rank ? MPI_SUCCESS : move(f, to, MPI_REPLACE, &was), rc2 = z_Barrier(f->comm);
  return rc ? rc : rc2;
}

int zshared_byte(zfile *f, MPI_File file, MPI_Offset *at) {
  int64_t now = 0;
  int rc = move(f, 0, MPI_NO_OP, &now), rc2 = z_Barrier(f->comm); /* all processes have read it */
  if (!rc) INSIDE(File_get_byte_offset(file, now, at));
  return rc ? rc : rc2;
}

int zshared_close(zfile *f) {
  if (f->pointer == MPI_WIN_NULL) return MPI_SUCCESS;
  int rc = zcomm_is_hurt(zcomm_find(f->comm)) ? MPI_SUCCESS : z_Win_unlock_all(f->pointer);
  return rc ? rc : z_Win_free(&f->pointer);
}

/* Frees the window of the shared file pointer in this process alone, because MPICH aborts a process
 * that still has a window at the end of MPI. */
void zshared_drop(zfile *f) { zwin_drop(f->pointer); }

/* Returns the number of elementary types of the view by which an access to count elements of a type
 * advances the shared pointer. */
static int64_t width(const zfile *f, int64_t count, MPI_Datatype type) {
  int size;
  if (count < 0 || real.Type_size(type, &size)) return 0; /* the native function reports the error */
  return (count * size + f->element - 1) / f->element;
}

/* Advances the shared pointer by the sum of the numbers `mine` of elementary types that the ranks
 * access, and sets *at to the place where this rank's part begins; the parts follow each other in
 * the order of rank. Collective. Returns an MPI error code. */
static int in_order(zfile *f, int64_t mine, const char *function, MPI_Offset *at) {
  zcomm *c = zcomm_find(f->comm);
  int64_t *all = malloc((size_t)c->size * sizeof *all), total = 0, before = 0, base = 0;
  int rc = all ? zcomm_allgather(c, &mine, sizeof mine, all, function) : MPI_ERR_NO_MEM;
  for (int i = 0; i < c->size && !rc; i++) {
    if (i == c->rank) before = total;
    total += all[i];
  }
  free(all);
  if (!rc && c->rank == 0) rc = move(f, total, MPI_SUM, &base);
  if (!rc) rc = zcomm_bcast(c, &base, sizeof base, 0, function);
  *at = base + before;
  return rc;
}

/* ---- access ---- */

#define ONE(NAME, AT, BUFFER, LAST, last)                                                       \
  int z_##NAME(MPI_File file, BUFFER buf, int count, MPI_Datatype type, LAST last) {            \
    zfile *f = zfile_find(file);                                                                \
    int64_t at = 0;                                                                             \
    int rc = f ? zfile_raise(file, move(f, width(f, count, type), MPI_SUM, &at)) : MPI_SUCCESS; \
    if (f && !rc) INSIDE(AT(file, at, buf, count, type, last));                                 \
    else if (!f) INSIDE(NAME(file, buf, count, type, last));                                    \
    return rc;                                                                                  \
  }
ONE(File_write_shared, File_write_at, const void *, MPI_Status *, status)
ONE(File_read_shared, File_read_at, void *, MPI_Status *, status)
ONE(File_iwrite_shared, File_iwrite_at, const void *, MPI_Request *, request)
ONE(File_iread_shared, File_iread_at, void *, MPI_Request *, request)

/* Defines the ordered access NAME and its split form, by the native function AT for an explicit
 * offset. The split form does all the work in its first half. */
#define ORDERED(NAME, AT, BUFFER)                                                                                \
  static int all_##NAME(zfile *f, MPI_File file, BUFFER buf, int count, MPI_Datatype type, MPI_Status *status) { \
    MPI_Offset at;                                                                                               \
    int rc = zfile_raise(file, in_order(f, width(f, count, type), "MPI_" #NAME, &at));                           \
    if (!rc) INSIDE(AT(file, at, buf, count, type, status));                                                     \
    return rc;                                                                                                   \
  }                                                                                                              \
  int z_##NAME(MPI_File file, BUFFER buf, int count, MPI_Datatype type, MPI_Status *status) {                    \
    zfile *f = zfile_find(file);                                                                                 \
    int rc = f ? all_##NAME(f, file, buf, count, type, status) : zfile_meet(file);                               \
    if (!f && !rc) INSIDE(NAME(file, buf, count, type, status));                                                 \
    return rc;                                                                                                   \
  }                                                                                                              \
  int z_##NAME##_begin(MPI_File file, BUFFER buf, int count, MPI_Datatype type) {                                \
    zfile *f = zfile_find(file);                                                                                 \
    int rc = f ? all_##NAME(f, file, buf, count, type, &f->split) : zfile_meet(file);                            \
    if (!f && !rc) INSIDE(NAME##_begin(file, buf, count, type));                                                 \
    return rc;                                                                                                   \
  }                                                                                                              \
  int z_##NAME##_end(MPI_File file, BUFFER buf, MPI_Status *status) {                                            \
    zfile *f = zfile_find(file);                                                                                 \
    int rc = f ? MPI_SUCCESS : zfile_meet(file);                                                                 \
    if (!f && !rc) INSIDE(NAME##_end(file, buf, status));                                                        \
    if (f && status != MPI_STATUS_IGNORE) *status = f->split;                                                    \
    return rc;                                                                                                   \
  }
ORDERED(File_write_ordered, File_write_at, const void *)
ORDERED(File_read_ordered, File_read_at, void *)

/* ---- position ---- */

/* Sets *end to the position of the end of the file, in elementary types of the view, by moving the
 * individual file pointer there and back. Returns an MPI error code. */
static int end_of(MPI_File file, MPI_Offset *end) {
  MPI_Offset mine;
  int rc = real.File_get_position(file, &mine);
  if (!rc) rc = real.File_seek(file, 0, MPI_SEEK_END);
  if (!rc) rc = real.File_get_position(file, end);
  return rc ? rc : real.File_seek(file, mine, MPI_SEEK_SET);
}

int z_File_seek_shared(MPI_File file, MPI_Offset offset, int whence) {
  static const char function[] = "MPI_File_seek_shared";
  zfile *f = zfile_find(file);
  int rc = f ? zfile_raise(file, z_Barrier(f->comm)) : zfile_meet(file);
  if (!f && !rc) INSIDE(File_seek_shared(file, offset, whence));
  if (!f || rc) return rc;
  MPI_Offset from = 0;
  int64_t now = 0;
  if (whence == MPI_SEEK_CUR) rc = move(f, 0, MPI_NO_OP, &now);
  else if (whence == MPI_SEEK_END) rc = end_of(file, &from);
  int known = whence == MPI_SEEK_SET || whence == MPI_SEEK_CUR || whence == MPI_SEEK_END;
  int rc2 = z_Barrier(f->comm); /* all processes have read it */
  if (rc || rc2) return zfile_raise(file, rc ? rc : rc2);
  if (!known || from + now + offset < 0) return z_raise_file(file, MPI_ERR_ARG, function, "the file has no such place");
  return zfile_raise(file, zshared_set(f, from + now + offset));
}

int z_File_get_position_shared(MPI_File file, MPI_Offset *offset) {
  zfile *f = zfile_find(file);
  int64_t now = 0;
  int rc = MPI_SUCCESS;
  if (!f) {
    INSIDE(File_get_position_shared(file, offset));
    return rc;
  }
  if (!(rc = move(f, 0, MPI_NO_OP, &now))) *offset = now;
  return zfile_raise(file, rc);
}
