/* Losing a cluster: every survivor learns of it, acknowledges it, agrees and shrinks, and the new
 * communicator works as any other. */
#include "lost.h"

static void works(MPI_Comm comm, int want) {
  int rank, size, sum = 0, one = 1, all[64], twice[2] = {0, 0};
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  SAME(size, want, "size of the new communicator");
  CLASS(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
  SAME(sum, want, "sum");
  CLASS(MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, comm), MPI_SUCCESS);
  for (int i = 0; i < size; i++) SAME(all[i], i, "rank");
  CLASS(MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 7, twice, 1, MPI_INT, (rank + size - 1) % size, 7, comm,
                     MPI_STATUS_IGNORE),
        MPI_SUCCESS);
  SAME(twice[0], (rank + size - 1) % size, "neighbour");
  MPI_Comm dup, half;
  CLASS(MPI_Comm_dup(comm, &dup), MPI_SUCCESS);
  CLASS(MPI_Comm_split(dup, rank % 2, rank, &half), MPI_SUCCESS);
  CLASS(MPI_Barrier(half), MPI_SUCCESS);
  MPI_Comm_free(&half);
  MPI_Comm_free(&dup);
}

int main(int argc, char **argv) {
  begin_lost(&argc, &argv);
  int flag, n = -1;
  MPI_Comm alive;
  MPI_Group lost;
  meet();
  perish();
  await_loss(MPI_COMM_WORLD);

  CLASS(MPI_Comm_get_failed(MPI_COMM_WORLD, &lost), MPI_SUCCESS);
  MPI_Group world;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  for (int i = 0; i < victims; i++) {
    int at = -1;
    MPI_Group_translate_ranks(lost, 1, &i, world, &at);
    SAME(at, first_dying + i, "lost rank");
  }
  MPI_Group_free(&lost);
  MPI_Group_free(&world);

  CLASS(MPI_Barrier(MPI_COMM_WORLD), MPIX_ERR_PROC_FAILED);
  CLASS(MPI_Comm_dup(MPI_COMM_WORLD, &alive), MPIX_ERR_PROC_FAILED);
  CLASS(MPI_Comm_split(MPI_COMM_WORLD, 0, me, &alive), MPIX_ERR_PROC_FAILED);

  flag = 6 | (me == 0);
  CLASS(MPIX_Comm_agree(MPI_COMM_WORLD, &flag), MPIX_ERR_PROC_FAILED);
  SAME(flag, np - victims > 1 ? 6 : 7, "agreed value, with a loss that nobody has acknowledged");
  CLASS(MPIX_Comm_ack_failed(MPI_COMM_WORLD, 0, &n), MPI_SUCCESS);
  SAME(n, 0, "acknowledged");
  CLASS(MPIX_Comm_ack_failed(MPI_COMM_WORLD, victims, &n), MPI_SUCCESS);
  SAME(n, victims, "acknowledged");
  flag = 13;
  CLASS(MPIX_Comm_agree(MPI_COMM_WORLD, &flag), MPI_SUCCESS);
  SAME(flag, 13, "agreed value");

  CLASS(MPIX_Comm_shrink(MPI_COMM_WORLD, &alive), MPI_SUCCESS);
  works(alive, np - victims);
  line("%d ranks go on", np - victims);
  return finish_lost(alive);
}
