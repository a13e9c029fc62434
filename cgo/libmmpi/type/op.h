/* Operators of reductions and accumulates. */
#ifndef ZIPPER_OP_H
#define ZIPPER_OP_H
#include <mpi.h>

/* Returns the number (enum z_fn) by which the engine knows an operator, or 0 if it is not
 * predefined. */
int zop_fn(MPI_Op op);
#endif
