/* Datatypes as spans of bytes. */
#ifndef ZIPPER_WINTYPE_H
#define ZIPPER_WINTYPE_H
#include "abi.h"
#include <mpi.h>

/* The spans of one element of a type. With `elements` pairs (MPI_DOUBLE_INT) are one span each,
 * gaps included. */
typedef struct zflat {
  int64_t n, room; /* the number of spans, and the number for which there is memory */
  int number;      /* the z_number of all elements, or -1 if they differ */
  z_span spans[];
} zflat;

/* Returns the spans of a type, which live as long as the type, or NULL after setting *rc to an MPI
 * error code. */
const zflat *zflat_get(MPI_Datatype type, int elements, int *rc);
#endif
