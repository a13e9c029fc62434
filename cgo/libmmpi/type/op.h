/* Operators of reductions and accumulates. */
#ifndef ZIPPER_OP_H
#define ZIPPER_OP_H
#include <mpi.h>

int zop_fn(MPI_Op op); /* z_fn; 0: not a predefined operator */
#endif
