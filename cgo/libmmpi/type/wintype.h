/* Datatypes as spans of bytes. */
#ifndef ZIPPER_WINTYPE_H
#define ZIPPER_WINTYPE_H
#include "abi.h"
#include "type/type.h"
#include <mpi.h>

/* The forms in which the bytes of a type are listed. */
enum {
  ZFLAT_SPANS,
  /* pairs (MPI_DOUBLE_INT) are one span each, gaps included: a number for arithmetic */
  ZFLAT_ELEMENTS,
  /* the spans of long doubles, and the spans of everything else */
  ZFLAT_LONGS,
  ZFLAT_REST,
  /* The data in the order of the type map, as it is packed: `off` is 1 for long doubles and 0 for
   * other bytes. */
  ZFLAT_SIGNATURE,
  ZFLAT_FORMS
};

/* The bytes of one element of a type, in one of these forms. */
typedef struct zflat {
  int form;
  /* the number of spans, and the number for which memory has been allocated */
  int64_t n, room;
  /* The common type (z_number) of all elements, Z_BYTES if there are none, or -1 if they differ or
   * nothing can be computed with them. */
  int number;
  z_span spans[];
} zflat;

/* Returns the spans of one element of a type in a form, which live as long as the type, or NULL
 * after setting *rc to an MPI error code. */
const zflat *zflat_get(MPI_Datatype type, int form, int *rc);
#endif
