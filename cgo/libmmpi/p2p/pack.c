/* MPI_Pack and MPI_Unpack on communicators that span clusters. Where clusters have different
 * formats of long double, the packed data are in the exchange format (type/exchange.h), because
 * their receiver may be in any of the clusters. Data and packed data may be in memory of
 * devices, which native MPI may not accept. All else is native. */
#include "p2p/p2p.h"

/* Returns the properties of a type if this process must convert its data on a communicator, or
 * if the `count` elements at buf, or the `size` bytes at `packed`, are in memory of a device.
 * Otherwise returns NULL: native MPI packs and unpacks them. */
static const ztype *concerned(MPI_Comm comm, const void *buf, int64_t count, MPI_Datatype type, const void *packed,
                              int64_t size) {
  const ztype *t = zcomm_find(comm) ? ztype_get(type) : NULL;
  if (!t || (t->longs && zexchange_converts())) return t;
  int staged = count > 0 && (zdevice_of(packed, size) || ztype_device(t, type, buf, count * t->size));
  return staged ? t : NULL;
}

/* Copies n bytes between memory of the host or of devices. Returns an MPI error class. */
static int copy(void *to, const void *from, int64_t n) {
  const zdriver *there = zdevice_of(to, n), *here = there ? NULL : zdevice_of(from, n);
  if (there || here) return zdevice_copy(there ? there : here, there ? to : from, to, from, n);
  memcpy(to, from, (size_t)n);
  return MPI_SUCCESS;
}

/* Checks that `count` elements of a type fit from `position` on into a buffer of `size` bytes, and
 * sets *bytes to their size. Raises an error and returns its code if they do not. */
static int check(MPI_Comm comm, const char *function, const ztype *t, int64_t count, int64_t size, int64_t position,
                 int64_t *bytes) {
  if (count < 0) return z_raise_on(comm, MPI_ERR_COUNT, function, "the count is negative: %lld", (long long)count);
  if (__builtin_mul_overflow(count, t->size, bytes) || position < 0 || *bytes > size - position)
    return z_raise_on(comm, MPI_ERR_TRUNCATE, function,
                      "%lld elements of %lld bytes at position %lld of a buffer of %lld bytes", (long long)count,
                      (long long)t->size, (long long)position, (long long)size);
  return MPI_SUCCESS;
}

/* Packs elements of a type, and advances *position. Returns an error code after raising the
 * error. */
static int pack(const char *function, const ztype *t, const void *buf, int64_t count, MPI_Datatype type, char *out,
                int64_t size, int64_t *position, MPI_Comm comm) {
  int64_t bytes = 0;
  int rc = check(comm, function, t, count, size, *position, &bytes);
  if (rc) return rc;
  char *packed = malloc((size_t)bytes + 1);
  if (!packed) return z_raise_on(comm, MPI_ERR_NO_MEM, function, "no memory for %lld bytes", (long long)bytes);
  rc = zexchange.pack(buf, count, type, packed, z_private);
  if (!rc) rc = copy(out + *position, packed, bytes);
  free(packed);
  if (rc) return z_raise_on(comm, z_native_class(rc), function, "%s", zdevice_blame("the data cannot be packed"));
  *position += bytes;
  return MPI_SUCCESS;
}

/* Unpacks elements of a type, and advances *position. Returns an error code after raising the
 * error. */
static int unpack(const char *function, const ztype *t, const char *in, int64_t size, int64_t *position, void *buf,
                  int64_t count, MPI_Datatype type, MPI_Comm comm) {
  int64_t bytes = 0;
  int rc = check(comm, function, t, count, size, *position, &bytes);
  if (rc) return rc;
  char *packed = malloc((size_t)bytes + 1); /* zexchange.unpack changes the packed data */
  if (!packed) return z_raise_on(comm, MPI_ERR_NO_MEM, function, "no memory for %lld bytes", (long long)bytes);
  rc = copy(packed, in + *position, bytes);
  if (!rc) rc = zexchange.unpack(packed, bytes, buf, count, type, z_private);
  free(packed);
  if (rc) return z_raise_on(comm, z_native_class(rc), function, "%s", zdevice_blame("the data cannot be unpacked"));
  *position += bytes;
  return MPI_SUCCESS;
}

/* Defines z_Pack and z_Unpack, or their big-count forms, whose counts are COUNTs. */
#define PACKING(BIG, COUNT)                                                                                 \
  int z_Pack##BIG(const void *buf, COUNT count, MPI_Datatype type, void *out, COUNT size, COUNT *position,  \
                  MPI_Comm comm) {                                                                          \
    const ztype *t = concerned(comm, buf, count, type, out, size);                                          \
    int64_t at = *position;                                                                                 \
    if (!t) return real.Pack##BIG(buf, count, type, out, size, position, comm);                             \
    int rc = pack("MPI_Pack" #BIG, t, buf, count, type, out, size, &at, comm);                              \
    *position = (COUNT)at;                                                                                  \
    return rc;                                                                                              \
  }                                                                                                         \
                                                                                                            \
  int z_Unpack##BIG(const void *in, COUNT size, COUNT *position, void *buf, COUNT count, MPI_Datatype type, \
                    MPI_Comm comm) {                                                                        \
    const ztype *t = concerned(comm, buf, count, type, in, size);                                           \
    int64_t at = *position;                                                                                 \
    if (!t) return real.Unpack##BIG(in, size, position, buf, count, type, comm);                            \
    int rc = unpack("MPI_Unpack" #BIG, t, in, size, &at, buf, count, type, comm);                           \
    *position = (COUNT)at;                                                                                  \
    return rc;                                                                                              \
  }

PACKING(, int)
#ifdef Z_HAVE_Pack_c
PACKING(_c, MPI_Count)
#endif
