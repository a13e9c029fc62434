/* A typical user's tool: it wraps MPI calls by the profiling interface and prints sums at the end.
 * It is preloaded or linked in. */
#include <mpi.h>
#include <stdio.h>

static long long count[4]; /* sends, bytes sent, blocking receives, allreduces */

static void sent(int n, MPI_Datatype type) {
  int size;
  PMPI_Type_size(type, &size);
  count[0]++, count[1] += (long long)n * size;
}

int MPI_Send(const void *p, int n, MPI_Datatype type, int to, int tag, MPI_Comm c) {
  sent(n, type);
  return PMPI_Send(p, n, type, to, tag, c);
}

int MPI_Isend(const void *p, int n, MPI_Datatype type, int to, int tag, MPI_Comm c, MPI_Request *r) {
  sent(n, type);
  return PMPI_Isend(p, n, type, to, tag, c, r);
}

int MPI_Recv(void *p, int n, MPI_Datatype type, int from, int tag, MPI_Comm c, MPI_Status *st) {
  count[2]++;
  return PMPI_Recv(p, n, type, from, tag, c, st);
}

int MPI_Allreduce(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm c) {
  count[3]++;
  return PMPI_Allreduce(in, out, n, type, op, c);
}

int MPI_Finalize(void) {
  long long all[4];
  int rank, ranks;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  PMPI_Reduce(count, all, 4, MPI_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0)
    printf("tool: %d ranks, %lld sends of %lld bytes, %lld receives, %lld allreduces\n", ranks, all[0], all[1], all[2],
           all[3]);
  fflush(stdout);
  return PMPI_Finalize();
}
