/* Each pair of ranks exchanges large messages, of which every byte is checked, until the file that
 * the second argument names exists. The survivors of a lost cluster shrink the communicator and go
 * on. Rank 0 prints each completed round with the number of ranks. */
#include "lost.h"

enum { LARGE = 1 << 20, MOST = 16 };

static unsigned char out[LARGE], in[LARGE];
static int world[MOST]; /* the ranks of the communicator in MPI_COMM_WORLD */

/* Exchanges messages of one round, and returns the code of the first call that fails. */
static int exchange(MPI_Comm comm, uint64_t round, int *stop) {
  int rank, size, rc;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int d = 1; d < size; d++) {
    int to = (rank + d) % size, from = (rank + size - d) % size;
    fill(out, LARGE, round * MOST + me);
    rc = MPI_Sendrecv(out, LARGE, MPI_BYTE, to, 1, in, LARGE, MPI_BYTE, from, 1, comm, MPI_STATUS_IGNORE);
    if (rc != MPI_SUCCESS) return rc;
    CHECK(filled(in, LARGE, round * MOST + world[from]), "message of round %llu is damaged", (unsigned long long)round);
  }
  if (rank == 0) *stop = access(phase, F_OK) == 0;
  return MPI_Bcast(stop, 1, MPI_INT, 0, comm);
}

int main(int argc, char **argv) {
  begin_lost(&argc, &argv);
  alarm(0); /* the test bounds the time */
  MPI_Comm comm;
  int stop = 0;
  CLASS(MPI_Comm_dup(MPI_COMM_WORLD, &comm), MPI_SUCCESS);
  for (int i = 0; i < np; i++) world[i] = i;
  for (uint64_t round = 0; !stop; round++) {
    int rc = exchange(comm, round, &stop), size;
    if (rc != MPI_SUCCESS) {
      uint64_t last = round;
      MPI_Comm alive;
      CHECK(class_of(rc) == MPIX_ERR_PROC_FAILED || class_of(rc) == MPIX_ERR_REVOKED, "a call returns %s", name_of(rc));
      MPIX_Comm_revoke(comm);
      CLASS(MPIX_Comm_shrink(comm, &alive), MPI_SUCCESS);
      MPI_Comm_free(&comm);
      comm = alive;
      CLASS(MPI_Allgather(&me, 1, MPI_INT, world, 1, MPI_INT, comm), MPI_SUCCESS);
      CLASS(MPI_Allreduce(&last, &round, 1, MPI_UINT64_T, MPI_MAX, comm), MPI_SUCCESS);
      stop = 0;
      continue;
    }
    MPI_Comm_size(comm, &size);
    if (me == 0) {
      printf("round %llu of %d ranks\n", (unsigned long long)round, size);
      fflush(stdout);
    }
  }
  return finish_lost(comm);
}
