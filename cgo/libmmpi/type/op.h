/* Operators of reductions and accumulates. */
#ifndef ZIPPER_OP_H
#define ZIPPER_OP_H
#include <mpi.h>

int zop_fn(MPI_Op op);      /* z_fn; 0: not a predefined operator */
void zop_retain(MPI_Op op); /* until zop_release the program's MPI_Op_free only notes that it was called */
void zop_release(MPI_Op op);
#endif
