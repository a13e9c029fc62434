/* Conversion between the program's buffers and contiguous bytes. A contiguous type needs no copy;
 * any other type is packed into memory that lives as long as the collective, and unpacked at its
 * end. Reductions keep the layout of their type, gaps included, because operators work on elements;
 * gaps of the program's own buffers are never written. */
#include "coll/coll.h"
#include "type/use.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct chunk {
  struct chunk *next;
  _Alignas(max_align_t) char bytes[];
} chunk;

zmap z_wide;

struct zlater {
  zlater *next;
  void *from;
  /* The size in bytes of the packed data at `from`, or -1 if `from` holds `count` elements that are
   * laid out as the type. */
  int64_t bytes;
  void *to;
  int64_t count;
  MPI_Datatype type;
};

void *zcoll_grab(zcoll *j, int64_t bytes) {
  chunk *c = bytes < 0 ? NULL : calloc(1, sizeof *c + (size_t)bytes + 1);
  if (!c) {
    if (!j->rc) j->rc = MPI_ERR_NO_MEM;
    return NULL;
  }
  c->next = j->memory;
  j->memory = c;
  return c->bytes;
}

int zcoll_fail(zcoll *j, int rc) {
  if (rc && !j->rc) j->rc = rc;
  return j->rc;
}

int zcoll_check_count(zcoll *j, int64_t count) { return count < 0 ? zcoll_fail(j, MPI_ERR_COUNT) : j->rc; }

int zcoll_check_root(zcoll *j, int root) {
  j->args.root = root;
  return root < 0 || root >= j->comm->size ? zcoll_fail(j, MPI_ERR_ROOT) : j->rc;
}

const char *zcoll_wrong(int rc) {
  switch (rc) {
  case MPI_ERR_ROOT: return "the root is not a rank of the communicator";
  case MPI_ERR_TYPE: return zexchange_blame("a datatype is invalid, or has not been committed");
  case MPI_ERR_UNSUPPORTED_OPERATION:
    return "MPI_Allreduce of elements that overlap, or of long doubles between groups in clusters whose formats of "
           "long double differ: use MPI_Reduce and MPI_Bcast";
  case MPI_ERR_BUFFER: return "a buffer is NULL, equal to the other buffer, or MPI_IN_PLACE where that is not allowed";
  }
  return "the arguments do not describe a valid collective operation";
}

static const ztype *type_of(zcoll *j, MPI_Datatype type) {
  const ztype *t = ztype_get(type);
  if (!t) zcoll_fail(j, MPI_ERR_TYPE);
  return t;
}

static void later(zcoll *j, void *from, int64_t bytes, void *to, int64_t count, MPI_Datatype type) {
  zlater *l = zcoll_grab(j, sizeof *l);
  if (!l) return;
  *l = (zlater){j->later, from, bytes, to, count, type};
  j->later = l;
  if (j->nonblocking) ztype_retain(type);
}

/* Sets j->rc to MPI_ERR_BUFFER, unless j->rc has an error already, if a buffer with `bytes` bytes
 * of data cannot be used (ztype_bad_buffer). MPI_IN_PLACE reaches this function only where it is
 * not allowed: it is an error too, except without data. */
static void check_buffer(zcoll *j, const ztype *t, const void *buf, int64_t bytes) {
  if (ztype_bad_buffer(t, buf, bytes) || (bytes && buf == MPI_IN_PLACE)) zcoll_fail(j, MPI_ERR_BUFFER);
}

const void *zcoll_send(zcoll *j, const void *buf, int64_t count, MPI_Datatype type, int64_t *bytes) {
  const ztype *t = type_of(j, type);
  if (j->rc) return NULL;
  *bytes = count * t->size;
  check_buffer(j, t, buf, *bytes);
  if (j->rc || ztype_in_place(t, buf, *bytes)) return buf;
  void *packed = zcoll_grab(j, *bytes);
  if (packed) zcoll_fail(j, zexchange.pack(buf, count, type, packed, j->comm->native));
  return packed;
}

void *zcoll_recv(zcoll *j, void *buf, int64_t count, MPI_Datatype type, int64_t *bytes) {
  const ztype *t = type_of(j, type);
  if (j->rc) return NULL;
  *bytes = count * t->size;
  check_buffer(j, t, buf, *bytes);
  if (j->rc || ztype_in_place(t, buf, *bytes)) return buf;
  void *packed = zcoll_grab(j, *bytes);
  if (packed) later(j, packed, *bytes, buf, count, type);
  return packed;
}

static int64_t place(const zblocks *b, int i, int64_t extent) {
  if (b->same) return 0;
  if (b->addresses) return b->addresses[i];
  if (b->displs) return zcoll_number(b->displs, i) * (b->types ? 1 : extent);
  return i * b->count * extent;
}

static int64_t elements(const zblocks *b, int i) {
  return b->counts ? zcoll_number(b->counts, i) : b->many ? b->many[i] : b->count;
}
static MPI_Datatype kind(const zblocks *b, int i) { return b->types ? b->types[i] : b->type; }

int64_t zcoll_offset(zcoll *j, const zblocks *b, int i) {
  const ztype *t = type_of(j, kind(b, i));
  return t ? place(b, i, t->extent) : 0;
}

/* Returns whether a buffer of n blocks of these sizes at these offsets, of which `lowest` is the
 * lowest, is in memory of a device. Blocks at addresses (MPI_BOTTOM) may be in different
 * memories. */
static int in_device(const zblocks *b, const int64_t *bytes, const int64_t *at, int n, int64_t lowest) {
  if (b->buf) return zdevice_of((char *)b->buf + lowest, 1) != NULL;
  for (int i = 0; i < n; i++)
    if (zdevice_of((char *)b->buf + at[i], bytes[i])) return 1;
  return 0;
}

void *zcoll_blocks(zcoll *j, int how, const zblocks *b, int n, int keep, const int64_t **counts,
                   const int64_t **displs) {
  int64_t *bytes = zcoll_grab(j, n * 8), *at = zcoll_grab(j, n * 8), total = 0, lowest = INT64_MAX;
  int contiguous = how != ZB_COPY && !b->together;
  for (int i = 0; i < n && !j->rc; i++) {
    /* Without elements the type and the displacement may have any value */
    if (zcoll_check_count(j, elements(b, i)) || elements(b, i) == 0) continue;
    const ztype *t = type_of(j, kind(b, i));
    if (!t || t->size == 0) continue;
    bytes[i] = elements(b, i) * t->size;
    at[i] = place(b, i, t->extent);
    if (at[i] < lowest) lowest = at[i];
    contiguous &= t->contiguous;
    total += bytes[i];
  }
  *counts = bytes, *displs = at;
  if (j->rc || total == 0) return b->buf;
  if (contiguous && !in_device(b, bytes, at, n, lowest)) {
    for (int i = 0; i < n; i++) at[i] = bytes[i] ? at[i] - lowest : 0;
    return (char *)b->buf + lowest;
  }
  char *packed = zcoll_grab(j, total);
  total = 0;
  for (int i = 0; i < n && !j->rc; i++) {
    if (bytes[i] == 0) continue;
    char *user = (char *)b->buf + at[i];
    int receives = how == ZB_RECV && i != keep;
    if (receives) later(j, packed + total, bytes[i], user, elements(b, i), kind(b, i));
    else zcoll_fail(j, zexchange.pack(user, elements(b, i), kind(b, i), packed + total, j->comm->native));
    at[i] = total;
    total += bytes[i];
  }
  return packed;
}

/* Copies count elements of a type, whose properties are *t, from one buffer to another, without
 * reading or writing the gaps. As in MPI, `from` and `to` are the addresses to which the type's
 * offsets are added. comm may be any native communicator. Returns an MPI error code. */
static int copy(const void *from, void *to, int64_t count, MPI_Datatype type, const ztype *t, MPI_Comm comm) {
  void *packed = malloc((size_t)(count * t->size) + 1);
  if (!packed) return MPI_ERR_NO_MEM;
  int rc = ztype_pack(from, count, type, packed, comm);
  if (!rc) rc = ztype_unpack(packed, count * t->size, to, count, type, comm);
  free(packed);
  return rc;
}

/* Allocates memory for count elements that are laid out as their type, whose properties are *t.
 * Returns the address of the first byte of the first element, or NULL after setting j->rc. */
static void *layout(zcoll *j, int64_t count, const ztype *t) {
  if (t->true_extent > t->extent) { /* overlapping elements cannot be laid out separately */
    zcoll_fail(j, MPI_ERR_UNSUPPORTED_OPERATION);
    return NULL;
  }
  return zcoll_grab(j, count * t->extent);
}

const void *zcoll_operand(zcoll *j, const void *buf, int64_t count, MPI_Datatype type) {
  const ztype *t = type_of(j, type);
  if (!j->rc) check_buffer(j, t, buf, count * t->size);
  if (j->rc || ztype_in_place(t, buf, count * t->size)) return buf;
  char *laid = layout(j, count, t);
  if (laid) zcoll_fail(j, copy(buf, laid - t->true_lb, count, type, t, j->comm->native));
  return laid;
}

void *zcoll_result(zcoll *j, void *buf, int64_t room, int64_t results, MPI_Datatype type, int in_place, int untouched) {
  const ztype *t = type_of(j, type);
  if (!j->rc && !untouched) check_buffer(j, t, buf, results * t->size);
  if (j->rc || ztype_in_place(t, buf, room * t->size)) return buf;
  char *laid = layout(j, room, t);
  if (laid && in_place) zcoll_fail(j, copy(buf, laid - t->true_lb, room, type, t, j->comm->native));
  if (laid && !untouched) later(j, laid - t->true_lb, -1, buf, results, type);
  return laid;
}

int zcoll_finish(zcoll *j) {
  int rc = j->rc;
  if (!rc && j->combine) rc = j->combine(j);
  for (zlater *l = j->later; l; l = l->next) {
    if (!rc && l->bytes < 0) rc = copy(l->from, l->to, l->count, l->type, ztype_get(l->type), j->comm->native);
    else if (!rc) rc = zexchange.unpack(l->from, l->bytes, l->to, l->count, l->type, j->comm->native);
    if (j->nonblocking) ztype_release(l->type);
  }
  if (j->reduces) {
    ztype_release((MPI_Datatype)(uintptr_t)j->args.type);
    zop_release((MPI_Op)(uintptr_t)j->args.mpi_op);
  }
  for (chunk *c = j->memory, *next; c; c = next) {
    next = c->next;
    free(c);
  }
  return rc;
}
