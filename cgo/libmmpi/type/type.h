/* Datatypes: whether they are contiguous bytes, and the packing of the others. */
#ifndef ZIPPER_TYPE_H
#define ZIPPER_TYPE_H
#include "core/map.h"
#include "device/device.h"
#include <mpi.h>
#include <stdint.h>

/* the number of forms of a type as spans of bytes (wintype.h) */
enum { ZTYPE_FORMS = 5 };

/* The properties of a datatype that the shim caches. */
typedef struct ztype {
  /* the size in bytes of the data in one element */
  int64_t size;
  /* the distance in bytes from one element to the next */
  int64_t extent;
  /* The offset in bytes of an element's first byte of data, and the number of bytes from there to
   * the end of its last byte of data. */
  int64_t true_lb;
  int64_t true_extent;
  /* 1 if count elements are count * size bytes from the buffer's address on, without gaps and in
   * order. */
  int contiguous;
  int predefined; /* 1 if the program cannot free the type */
  /* For a predefined type: bit f is 1 if operator f (z_fn) is known to be defined for the type. */
  _Atomic uint32_t fns;
  /* 1 if the job is mixed and the type has long doubles (exchange.h) */
  int longs;
  /* the type as spans of bytes (zflat), by the form of zflat_get, or NULL until first needed */
  void *flat[ZTYPE_FORMS];
} ztype;

/* the cache: the map from a datatype's handle to its properties */
extern zmap z_types;

/* Queries a type that is not in z_types from native MPI, adds it to z_types, and returns its
 * properties, or NULL as ztype_get does. */
const ztype *ztype_learn(MPI_Datatype type);

/* Returns the properties of a type, or NULL if data cannot be sent with it, which is MPI_ERR_TYPE
 * (MPI_DATATYPE_NULL, not committed, no memory). The result is valid until the program frees the
 * type. */
static inline const ztype *ztype_get(MPI_Datatype type) {
  const ztype *t = (const ztype *)zmap_get(&z_types, z_key(type));
  return t ? t : ztype_learn(type);
}

/* Returns whether a buffer with `bytes` bytes of data is unusable, which is MPI_ERR_BUFFER: its
 * bytes are contiguous and at address NULL, which the engine would take for an empty message. */
static inline int ztype_bad_buffer(const ztype *t, const void *buf, int64_t bytes) {
  return t->contiguous && bytes && !buf;
}

/* Returns whether `bytes` bytes of data can be sent from a buffer, or received into it, as they
 * are. Otherwise they are packed first, or unpacked at the end, because they have gaps or are in
 * memory of a device. */
static inline int ztype_in_place(const ztype *t, const void *buf, int64_t bytes) {
  return t->contiguous && !zdevice_of(buf, bytes);
}

/* Allocates memory for the packed data of a buffer of `bytes` bytes that is not in place. Sets
 * *staged to 1 if the data are in memory of a device: zstage_free frees the packed data then,
 * otherwise free. Returns NULL if memory is exhausted. */
void *ztype_packing(const ztype *t, MPI_Datatype type, const void *buf, int64_t bytes, int32_t *staged);

/* Returns whether `bytes` bytes of data of a type are in memory of a device. */
int ztype_device(const ztype *t, MPI_Datatype type, const void *buf, int64_t bytes);

/* Packs count elements, which may be in memory of a device, into out, which has room for count *
 * size bytes of the host's memory, in the format of memory; data for other clusters are packed by
 * zexchange.pack. comm may be any native communicator. Returns an MPI error code; native MPI raises
 * an error of its MPI_Pack on comm. */
int ztype_pack(const void *buf, int64_t count, MPI_Datatype type, void *out, MPI_Comm comm);

/* Unpacks `bytes` bytes at packed, which may end within an element, into count elements at buf,
 * which may be in memory of a device. comm may be any native communicator. Returns an MPI error
 * code, which is MPI_ERR_TRUNCATE for more bytes than the elements have. */
int ztype_unpack(const void *packed, int64_t bytes, void *buf, int64_t count, MPI_Datatype type, MPI_Comm comm);

/* The arguments `count` and `type` with which one native call, whose counts are int, passes n
 * consecutive elements of a type. */
typedef struct zmany {
  MPI_Datatype type;
  /* n, or 1 if n does not fit an int: `type` is then a type of all n elements */
  int count;
  /* 1 if zmany_end must free `type`, because zmany_begin has made it */
  int made;
} zmany;
/* Sets *m to a count and a type for n elements of the type `of`, and returns an MPI error code. The
 * caller calls zmany_end later. */
int zmany_begin(zmany *m, int64_t n, MPI_Datatype of);
/* Frees the type that zmany_begin has made for *m, if it has made one. */
void zmany_end(zmany *m);

/* How a datatype was made: its constructor, and the numbers of the constructor's arguments. */
typedef struct zmade {
  /* The numbers of integers, addresses, large counts and datatypes. `counts` is not 0 only if the
   * constructor is a big-count function, whose counts are not among the integers. */
  MPI_Count ints, addresses, counts, types;
  /* the constructor, such as MPI_COMBINER_VECTOR for MPI_Type_vector */
  int combiner;
} zmade;
/* Sets *m to the constructor of a type and the numbers of its arguments, and returns an MPI error
 * code. */
int ztype_made(MPI_Datatype type, zmade *m);

/* Returns whether a type with this constructor is predefined, so that it must not be freed. */
int zmade_predefined(const zmade *m);

/* Stores the arguments of a type's constructor in arrays that have room for the numbers in m. The
 * caller frees the types that are not predefined. Returns an MPI error code. */
int ztype_contents(MPI_Datatype type, const zmade *m, int *ints, MPI_Aint *addresses, MPI_Count *counts,
                   MPI_Datatype *types);

/* Makes the attribute by which the cache learns that a type is freed. Called after native MPI_Init.
 * Returns an MPI error code. */
int ztype_start(void);
/* Frees the keyval of that attribute, when this process leaves the job. The properties of a type
 * stay in the cache until the type is freed. */
void ztype_stop(void);
#endif
