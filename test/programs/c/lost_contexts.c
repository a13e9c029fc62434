/* Each process duplicates MPI_COMM_WORLD, revokes and frees the duplicate, more often than a native
 * library has communicators. A message to itself that no call has received does not reach a later
 * communicator. The argument is the number of duplicates. */
#include "lost.h"

enum { TAG = 5 };

int main(int argc, char **argv) {
  begin_lost(&argc, &argv);
  for (int i = 0, n = atoi(phase), own; i < n && !failures; i++) {
    MPI_Comm comm;
    MPI_Request r[2];
    CLASS(MPI_Comm_dup(MPI_COMM_WORLD, &comm), MPI_SUCCESS);
    CLASS(MPI_Sendrecv(&i, 1, MPI_INT, me, TAG, &own, 1, MPI_INT, me, TAG, comm, MPI_STATUS_IGNORE), MPI_SUCCESS);
    SAME(own, i, "the message to itself");
    MPI_Barrier(MPI_COMM_WORLD); /* no process revokes it before */
    int left[2] = {-1, i};
    for (int k = 0; k < 2; k++) {
      int rc = (k ? MPI_Issend : MPI_Isend)(left, 2, MPI_INT, me, TAG, comm, &r[k]);
      if (rc) CLASS(rc, MPIX_ERR_REVOKED);
    }
    CLASS(MPIX_Comm_revoke(comm), MPI_SUCCESS);
    for (int k = 0; k < 2; k++) {
      int rc = MPI_Wait(&r[k], MPI_STATUS_IGNORE);
      if (rc || k) CLASS(rc, MPIX_ERR_REVOKED);
    }
    CLASS(MPI_Comm_free(&comm), MPI_SUCCESS);
  }
  return finish_lost(MPI_COMM_WORLD);
}
