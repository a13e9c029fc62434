/* Datatypes as spans of bytes. */
#ifndef ZIPPER_WINTYPE_H
#define ZIPPER_WINTYPE_H
#include "abi.h"
#include <mpi.h>

/* The spans of bytes of one element of a type. If it was made with `elements`, pairs
 * (MPI_DOUBLE_INT) are one span each, gaps included. */
typedef struct zflat {
  /* the number of spans, and the number for which memory has been allocated */
  int64_t n, room;
  /* The common type (z_number) of all elements, Z_BYTES if there are none, or -1 if they differ or
   * nothing can be computed with them. */
  int number;
  z_span spans[];
} zflat;

/* Returns the spans of one element of a type, which live as long as the type, or NULL after setting
 * *rc to an MPI error code. With elements = 1 each element, a pair too, is a number for arithmetic
 * (zflat). */
const zflat *zflat_get(MPI_Datatype type, int elements, int *rc);
#endif
