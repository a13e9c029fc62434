/* Datatypes: whether they are contiguous bytes, and the packing of the others. */
#ifndef ZIPPER_TYPE_H
#define ZIPPER_TYPE_H
#include "core/map.h"
#include "type/device.h"
#include <mpi.h>
#include <stdint.h>

/* The properties of a datatype. */
typedef struct ztype {
  int64_t size;   /* the bytes of data in one element */
  int64_t extent; /* the bytes from one element to the next */
  /* The offset of an element's first byte, and the bytes from there to the end of its last byte. */
  int64_t true_lb;
  int64_t true_extent;
  /* 1 if count elements are count * size bytes from the buffer's address on, without gaps and in
   * order. */
  int contiguous;
  int predefined; /* 1 if the program cannot free the type */
  /* For a predefined type: bit f is set if operator f (z_fn) is known to be defined for it. */
  _Atomic uint32_t fns;
  void *flat[2]; /* the type as spans, made when first needed (wintype.c) */
} ztype;

extern zmap z_types; /* the map from handle to ztype */

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

/* Whether a buffer is unusable, which is MPI_ERR_BUFFER (zdevice_blame): its bytes are contiguous
 * and at address NULL, which the engine would take for an empty message, or are in memory that only
 * a device can read. */
static inline int ztype_bad_buffer(const ztype *t, const void *buf, int64_t bytes) {
  return (t->contiguous && bytes && !buf) || zdevice_has(buf, bytes);
}

/* Packs count elements into out, which has room for count * size bytes. comm may be any native
 * communicator. Returns an MPI error code without raising it. */
int ztype_pack(const void *buf, int64_t count, MPI_Datatype type, void *out, MPI_Comm comm);

/* Unpacks bytes into buf. The bytes may end within an element. Returns MPI_ERR_TRUNCATE for more
 * bytes than count elements have. */
int ztype_unpack(const void *packed, int64_t bytes, void *buf, int64_t count, MPI_Datatype type, MPI_Comm comm);

/* The count and the type by which one native call, whose counts are int, gets n consecutive
 * elements. */
typedef struct zmany {
  MPI_Datatype type;
  int count; /* n, or 1 if n exceeds an int: type is then a type of all elements */
  int made;  /* 1 if zmany_end frees type */
} zmany;
/* Sets m for n elements of a type, and returns an MPI error code. */
int zmany_begin(zmany *m, int64_t n, MPI_Datatype of);
/* Frees the type that zmany_begin has made, if any. */
void zmany_end(zmany *m);

/* The constructor of a datatype, and the numbers of its arguments. */
typedef struct zmade {
  /* The numbers of integers, addresses, large counts and datatypes. `counts` is not 0 only if the
   * constructor is a big-count function, whose counts are not among the integers. */
  MPI_Count ints, addresses, counts, types;
  int combiner; /* the constructor, such as MPI_COMBINER_VECTOR */
} zmade;
/* Sets *m to the constructor of a type, and returns an MPI error code. */
int ztype_made(MPI_Datatype type, zmade *m);

/* Stores the arguments of a type's constructor in arrays that have room for the numbers in m. The
 * caller frees the types that are not predefined. Returns an MPI error code. */
int ztype_contents(MPI_Datatype type, const zmade *m, int *ints, MPI_Aint *addresses, MPI_Count *counts,
                   MPI_Datatype *types);

int ztype_start(void); /* called after native MPI_Init */
void ztype_stop(void); /* called before native MPI_Finalize */
#endif
