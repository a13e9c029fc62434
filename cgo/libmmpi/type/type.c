/* Datatypes. A type is contiguous if it is a predefined type without gaps, or is made from a
 * contiguous one by dup, contiguous or a resizing that leaves no gap. Buffers of such types are
 * sent as they are. All others are packed by the native library's MPI_Pack, whose bytes are the
 * same in all MPI libraries on one kind of processor; exchange.c converts them for other kinds. No
 * layout is interpreted here. */
#include "type/type.h"
#include "core/job.h"
#include "core/limits.h"
#include "core/privcomm.h"
#include "type/exchange.h"
#include "type/pieces.h"
#include "type/wintype.h"
#include <limits.h>
#include <stdlib.h>

zmap z_types;

/* The keyval of the attribute whose delete callback removes a freed type from the cache z_types. */
static int keyval = MPI_KEYVAL_INVALID;
static pthread_mutex_t self_lock = PTHREAD_MUTEX_INITIALIZER;

static int forget(MPI_Datatype type, int key, void *value, void *extra) {
  (void)key, (void)extra;
  ztype *t = zmap_remove(&z_types, z_key(type));
  for (int i = 0; t && i < ZTYPE_FORMS; i++) free(t->flat[i]);
  free(value);
  return MPI_SUCCESS;
}

int ztype_start(void) { return real.Type_create_keyval(MPI_TYPE_NULL_COPY_FN, forget, &keyval, NULL); }

void ztype_stop(void) { real.Type_free_keyval(&keyval); }

/* Sets *m to the constructor of a type. Returns an MPI error code. It uses the big-count form of
 * MPI_Type_get_envelope where that exists, because the short form raises an error for types that a
 * big-count function has made. */
int ztype_made(MPI_Datatype type, zmade *m) {
#ifdef Z_HAVE_Type_get_envelope_c
  return real.Type_get_envelope_c(type, &m->ints, &m->addresses, &m->counts, &m->types, &m->combiner);
#else
  int ints, addresses, types, rc = real.Type_get_envelope(type, &ints, &addresses, &types, &m->combiner);
  m->ints = ints, m->addresses = addresses, m->counts = 0, m->types = types;
  return rc;
#endif
}

int ztype_contents(MPI_Datatype type, const zmade *m, int *ints, MPI_Aint *addresses, MPI_Count *counts,
                   MPI_Datatype *types) {
#ifdef Z_HAVE_Type_get_contents_c
  return real.Type_get_contents_c(type, m->ints, m->addresses, m->counts, m->types, ints, addresses, counts, types);
#else
  (void)counts;
  return real.Type_get_contents(type, (int)m->ints, (int)m->addresses, (int)m->types, ints, addresses, types);
#endif
}

int zmade_predefined(const zmade *m) {
  return m->combiner == MPI_COMBINER_NAMED || m->combiner == MPI_COMBINER_F90_REAL ||
         m->combiner == MPI_COMBINER_F90_COMPLEX || m->combiner == MPI_COMBINER_F90_INTEGER;
}

static int contiguous(MPI_Datatype type, int *yes, int *predefined);

/* Sets *yes to 1 if the type from which a dup, contiguous or resized type was made is contiguous,
 * otherwise to 0. *m is the constructor of `type`. Returns an MPI error code. */
static int inner(MPI_Datatype type, const zmade *m, int *yes) {
  int ints[1], predefined;
  MPI_Aint addresses[2];
  MPI_Count counts[2];
  MPI_Datatype of;
  int rc = ztype_contents(type, m, ints, addresses, counts, &of);
  if (rc) return rc;
  rc = contiguous(of, yes, &predefined);
  if (!predefined) real.Type_free(&of);
  return rc;
}

static int contiguous(MPI_Datatype type, int *yes, int *predefined) {
  zmade m;
  MPI_Count size;
  MPI_Aint lb, extent;
  int rc = ztype_made(type, &m), combiner = m.combiner;
  if (!rc) rc = real.Type_size_x(type, &size);
  if (!rc) rc = real.Type_get_extent(type, &lb, &extent);
  if (rc) return rc;
  int tight = lb == 0 && extent == size;
  *predefined = zmade_predefined(&m);
  *yes = *predefined && tight;
  if (tight &&
      (combiner == MPI_COMBINER_DUP || combiner == MPI_COMBINER_CONTIGUOUS || combiner == MPI_COMBINER_RESIZED))
    return inner(type, &m, yes);
  return MPI_SUCCESS;
}

/* Tests whether a type has been committed. No function reports it, but a send to MPI_PROC_NULL,
 * which reads nothing, fails if the type has not been committed. Returns an MPI error code, which
 * is MPI_SUCCESS if it has been. */
static int committed(MPI_Datatype type) { return real.Send(&type, 1, type, MPI_PROC_NULL, 0, z_self); }

static int learn(MPI_Datatype type, ztype *t) {
  MPI_Count size;
  MPI_Aint lb, extent, true_lb, true_extent;
  int rc = real.Type_size_x(type, &size);
  if (!rc) rc = real.Type_get_extent(type, &lb, &extent);
  if (!rc) rc = real.Type_get_true_extent(type, &true_lb, &true_extent);
  if (!rc) rc = contiguous(type, &t->contiguous, &t->predefined);
  if (!rc && z_layout.mixed) rc = zexchange_learn(type, t);
  if (rc) return rc;
  t->size = size, t->extent = extent, t->true_lb = true_lb, t->true_extent = true_extent;
  if (t->predefined) return MPI_SUCCESS; /* a predefined type cannot be freed, so no callback is needed */
  rc = committed(type);
  return rc ? rc : real.Type_set_attr(type, keyval, t);
}

const ztype *ztype_learn(MPI_Datatype type) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  if (type == MPI_DATATYPE_NULL) return NULL;
  z_lock(&lock);
  ztype *t = zmap_get(&z_types, z_key(type)); /* another thread may have been faster */
  if (!t && (t = calloc(1, sizeof *t))) {
    if (learn(type, t)) free(t), t = NULL;
    else zmap_put(&z_types, z_key(type), t);
  }
  z_unlock(&lock);
  return t;
}

/* Returns the number of elements of a type that one call of native MPI can pack, since it counts
 * the bytes in an int. */
static int64_t at_once(const ztype *t) {
  return t->size > Z_PACK_BYTES ? 1 : t->size > 0 ? Z_PACK_BYTES / t->size : INT_MAX;
}

/* Packs n elements at `from` into `bytes` bytes at `packed`, by a message of this process to
 * itself, so that the native library moves the data. Unlike MPICH's MPI_Pack a message accepts
 * MPI_BOTTOM, and elements of more bytes than an int counts. Returns an MPI error code. */
static int pack_by_message(const void *from, int n, MPI_Datatype type, void *packed, int64_t bytes) {
  zmany as;
  int rc = zmany_begin(&as, bytes, MPI_PACKED);
  if (rc) return rc;
  z_lock(&self_lock);
  rc = real.Sendrecv(from, n, type, 0, 0, packed, as.count, as.type, 0, 0, z_self, MPI_STATUS_IGNORE);
  z_unlock(&self_lock);
  zmany_end(&as);
  return rc;
}

/* Unpacks `bytes` bytes at `packed` into n elements at `to`, by a message of this process to
 * itself. Returns an MPI error code. */
static int unpack_by_message(const void *packed, int64_t bytes, void *to, int n, MPI_Datatype type) {
  zmany as;
  int rc = zmany_begin(&as, bytes, MPI_PACKED);
  if (rc) return rc;
  z_lock(&self_lock);
  rc = real.Sendrecv(packed, as.count, as.type, 0, 0, to, n, type, 0, 0, z_self, MPI_STATUS_IGNORE);
  z_unlock(&self_lock);
  zmany_end(&as);
  return rc;
}

int ztype_device(const ztype *t, MPI_Datatype type, const void *buf, int64_t bytes) {
  const void *there;
  return zpiece_device(t, type, buf, bytes, &there) != NULL;
}

/* ---- memory of devices: the type's spans of bytes are copied one by one, and regular series of
 * them in two dimensions (zdevice_add), because MPI_Pack may not accept such memory ---- */

/* Sets *v to the first `bytes` bytes of data of a type at buf. *whole is the only span of a
 * contiguous type, to which *v refers. Returns an MPI error code. */
static int view_of(z_view *v, z_span *whole, const ztype *t, MPI_Datatype type, const void *buf, int64_t bytes) {
  int rc = MPI_SUCCESS;
  *whole = (z_span){0, bytes};
  *v = (z_view){.base = (void *)(uintptr_t)buf, .count = 1, .spans = whole, .n = 1};
  if (t->contiguous) return rc;
  const zflat *f = zflat_get(type, 0, &rc);
  if (f) v->spans = f->spans, v->n = f->n, v->count = (bytes + t->size - 1) / t->size, v->extent = t->extent;
  return rc;
}

const zdriver *zpiece_device(const ztype *t, MPI_Datatype type, const void *buf, int64_t bytes, const void **there) {
  *there = (const char *)buf + t->true_lb;
  const zdriver *device = zdevice_of(*there, bytes);
  z_view v;
  z_span whole;
  if (buf || device || view_of(&v, &whole, t, type, buf, bytes)) return device;
  /* A type of addresses (MPI_BOTTOM) may have parts in the host's memory and others in a
   * device's */
  for (int64_t i = 0; i < v.n && !device; i++) {
    *there = (const char *)buf + v.spans[i].off;
    device = zdevice_of(*there, v.spans[i].len);
  }
  return device;
}

/* Packs (unpacks = 0) or unpacks the first `bytes` bytes of data of a view. */
static int move(const zdriver *device, const void *there, const z_view *v, int64_t bytes, char *packed, int unpacks) {
  zcopies c;
  zdevice_begin(&c, device, there);
  char *element = v->base;
  for (int64_t k = 0; k < v->count && bytes > 0; k++, element += v->extent)
    for (int64_t i = 0; i < v->n && bytes > 0; i++) {
      int64_t n = v->spans[i].len < bytes ? v->spans[i].len : bytes;
      char *at = element + v->spans[i].off;
      zdevice_add(&c, unpacks ? at : packed, unpacks ? packed : at, n);
      packed += n, bytes -= n;
    }
  return zdevice_end(&c);
}

static int pack_pieces(const zdriver *device, const void *there, const ztype *t, MPI_Datatype type, const void *buf,
                       int64_t bytes, void *out) {
  z_view v;
  z_span whole;
  int rc = view_of(&v, &whole, t, type, buf, bytes);
  return rc ? rc : move(device, there, &v, bytes, out, 0);
}

static int unpack_pieces(const zdriver *device, const void *there, const ztype *t, MPI_Datatype type,
                         const void *packed, int64_t bytes, void *buf) {
  z_view v;
  z_span whole;
  int rc = view_of(&v, &whole, t, type, buf, bytes);
  return rc ? rc : move(device, there, &v, bytes, (char *)(uintptr_t)packed, 1);
}

int64_t zpiece_bytes(const z_view *view) {
  int64_t bytes = 0;
  for (int64_t i = 0; i < view->n; i++) bytes += view->spans[i].len;
  return bytes * view->count;
}

int zpiece_gather(const zdriver *device, const void *there, const z_view *view, void *out) {
  return move(device, there, view, zpiece_bytes(view), out, 0);
}

/* ---- packing ---- */

void *ztype_packing(const ztype *t, MPI_Datatype type, const void *buf, int64_t bytes, int32_t *staged) {
  const void *there;
  const zdriver *device = zpiece_device(t, type, buf, bytes, &there);
  *staged = device != NULL;
  return device ? zstage_new(device, there, bytes) : malloc((size_t)bytes);
}

int ztype_pack(const void *buf, int64_t count, MPI_Datatype type, void *out, MPI_Comm comm) {
  const ztype *t = ztype_get(type);
  if (!t) return MPI_ERR_TYPE;
  if (t->size == 0) return MPI_SUCCESS;
  const void *there;
  const zdriver *device = zpiece_device(t, type, buf, count * t->size, &there);
  if (device) return pack_pieces(device, there, t, type, buf, count * t->size, out);
  int64_t piece = at_once(t);
  int rc = MPI_SUCCESS;
  for (int64_t i = 0; i < count && !rc; i += piece) {
    int n = (int)(count - i < piece ? count - i : piece), position = 0;
    int64_t bytes = n * t->size;
    const char *from = (const char *)buf + i * t->extent;
    char *to = (char *)out + i * t->size;
    rc = from && bytes <= INT_MAX ? real.Pack(from, n, type, to, (int)bytes, &position, comm)
                                  : pack_by_message(from ? from : MPI_BOTTOM, n, type, to, bytes);
  }
  return rc;
}

int ztype_unpack(const void *packed, int64_t bytes, void *buf, int64_t count, MPI_Datatype type, MPI_Comm comm) {
  const ztype *t = ztype_get(type);
  if (!t) return MPI_ERR_TYPE;
  if (bytes > count * t->size) return MPI_ERR_TRUNCATE;
  if (bytes == 0) return MPI_SUCCESS;
  const void *there;
  const zdriver *device = zpiece_device(t, type, buf, bytes, &there);
  if (device) return unpack_pieces(device, there, t, type, packed, bytes, buf);
  int64_t whole = bytes / t->size, piece = at_once(t);
  int rc = MPI_SUCCESS;
  for (int64_t i = 0; i < whole && !rc; i += piece) {
    int n = (int)(whole - i < piece ? whole - i : piece), position = 0;
    int64_t length = n * t->size;
    const char *from = (const char *)packed + i * t->size;
    char *to = (char *)buf + i * t->extent;
    rc = to && length <= INT_MAX ? real.Unpack(from, (int)length, &position, to, n, type, comm)
                                 : unpack_by_message(from, length, to ? to : MPI_BOTTOM, n, type);
  }
  if (!rc && bytes % t->size)
    rc = unpack_by_message((const char *)packed + whole * t->size, bytes % t->size, (char *)buf + whole * t->extent, 1,
                           type);
  return rc;
}
