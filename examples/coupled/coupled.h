/* The common part of both codes of the coupled pair: they find each other in the common world. */
#ifndef COUPLED_H
#define COUPLED_H
#include <mpi.h>

/* meet splits the world into codes and gives the code's own communicator and the one to the other
 * code, whose processes are the remote group. code: 0 ocean, 1 air. */
static inline void meet(int code, MPI_Comm *own, MPI_Comm *other) {
  int rank, leader[2], mine[2], n;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  MPI_Comm_split(MPI_COMM_WORLD, code, rank, own);
  /* The first process of each code leads it. */
  mine[code] = rank;
  mine[!code] = n;
  MPI_Allreduce(mine, leader, 2, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  MPI_Intercomm_create(*own, 0, MPI_COMM_WORLD, leader[!code], 0, other);
}

enum { STEPS = 200 };
#endif
