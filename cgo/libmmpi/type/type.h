/* Datatypes: which are contiguous bytes, and how the others become so. */
#ifndef ZIPPER_TYPE_H
#define ZIPPER_TYPE_H
#include "core/map.h"
#include "type/device.h"
#include <mpi.h>
#include <stdint.h>

typedef struct ztype {
  int64_t size;    /* bytes of data in one element */
  int64_t extent;  /* bytes from one element to the next */
  int64_t true_lb; /* where an element's first byte lies, and how far it reaches from there */
  int64_t true_extent;
  int contiguous;       /* count elements are count * size bytes from the buffer's address on, without gaps, in order */
  int predefined;       /* the program cannot free it */
  _Atomic uint32_t fns; /* of a predefined type: bit f is set if operator f (z_fn) is known to be defined for it */
  void *flat[2];        /* as spans, made when first needed (wintype.c) */
} ztype;

extern zmap z_types; /* handle → ztype */

const ztype *ztype_learn(MPI_Datatype type);

/* What is known of a type. NULL: data cannot be sent with it, and MPI_ERR_TYPE is due
 * (MPI_DATATYPE_NULL, not committed, no memory). Valid until the program frees the type. */
static inline const ztype *ztype_get(MPI_Datatype type) {
  const ztype *t = (const ztype *)zmap_get(&z_types, z_key(type));
  return t ? t : ztype_learn(type);
}

/* Whether MPI_ERR_BUFFER is due (zdevice_blame). The bytes are contiguous and at address NULL,
 * which the engine would take for an empty message; or they are where only a device can read
 * them. */
static inline int ztype_nowhere(const ztype *t, const void *buf, int64_t bytes) {
  return (t->contiguous && bytes && !buf) || zdevice_has(buf, bytes);
}

/* Packs count elements into out, which has room for count * size bytes. comm is any native
 * communicator. MPI error code, not raised. */
int ztype_pack(const void *buf, int64_t count, MPI_Datatype type, void *out, MPI_Comm comm);

/* Unpacks bytes into buf. More than count elements are MPI_ERR_TRUNCATE; the last element may be
 * there in part. */
int ztype_unpack(const void *packed, int64_t bytes, void *buf, int64_t count, MPI_Datatype type, MPI_Comm comm);

/* n elements one after the other as count and type of one native call, whose counts are int. Too
 * many for that become one element of a type that zmany_end frees. MPI error code. */
typedef struct zmany {
  MPI_Datatype type;
  int count, made;
} zmany;
int zmany_begin(zmany *m, int64_t n, MPI_Datatype of);
void zmany_end(zmany *m);

/* By which constructor a type was made, and how many arguments that had. counts > 0: it was a
 * big-count function, whose counts are not among the integers. */
typedef struct zmade {
  MPI_Count ints, addresses, counts, types;
  int combiner;
} zmade;
int ztype_made(MPI_Datatype type, zmade *m);

/* The arguments themselves, into room for as many. The caller frees those of the types that are not
 * predefined. */
int ztype_contents(MPI_Datatype type, const zmade *m, int *ints, MPI_Aint *addresses, MPI_Count *counts,
                   MPI_Datatype *types);

int ztype_start(void); /* after native MPI_Init */
void ztype_stop(void); /* before native MPI_Finalize */
#endif
