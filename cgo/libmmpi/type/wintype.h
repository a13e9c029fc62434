/* Datatypes as spans of bytes. */
#ifndef ZIPPER_WINTYPE_H
#define ZIPPER_WINTYPE_H
#include "abi.h"
#include <mpi.h>

/* A type as the spans of one element. elements: pairs (MPI_DOUBLE_INT) stay whole, gaps
 * included. */
typedef struct zflat {
  int64_t n, room;
  int number; /* enum z_number of all its elements; -1: there are several */
  z_span spans[];
} zflat;

/* The flat form; NULL if there is none: *rc says why. Lives as long as the type. */
const zflat *zflat_get(MPI_Datatype type, int elements, int *rc);
#endif
