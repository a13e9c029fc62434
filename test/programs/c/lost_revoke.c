/* Revocation: rank 0 revokes a communicator on which all others wait in the call that the argument
 * names. Every call returns, and agreement and shrinking go on. */
#include "lost.h"

enum { TAG = 5, LONG = 1 << 22 };

static int wait_in(MPI_Comm comm, int peer) {
  int x = 0, rc = MPI_SUCCESS, index;
  char *data = calloc(LONG, 1);
  MPI_Request r[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  if (!strcmp(phase, "recv")) rc = MPI_Recv(&x, 1, MPI_INT, peer, TAG, comm, MPI_STATUS_IGNORE);
  if (!strcmp(phase, "any")) rc = MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, TAG, comm, MPI_STATUS_IGNORE);
  if (!strcmp(phase, "send")) rc = MPI_Send(data, LONG, MPI_CHAR, peer, TAG, comm);
  if (!strcmp(phase, "ssend")) rc = MPI_Ssend(&x, 1, MPI_INT, peer, TAG, comm);
  if (!strcmp(phase, "probe")) rc = MPI_Probe(peer, TAG, comm, MPI_STATUS_IGNORE);
  if (!strcmp(phase, "barrier")) rc = MPI_Barrier(comm);
  if (!strcmp(phase, "allreduce")) rc = MPI_Allreduce(MPI_IN_PLACE, data, LONG, MPI_CHAR, MPI_BOR, comm);
  if (!strcmp(phase, "dup")) {
    MPI_Comm dup;
    rc = MPI_Comm_dup(comm, &dup);
  }
  if (!strcmp(phase, "waitany")) {
    MPI_Irecv(&x, 1, MPI_INT, peer, TAG, comm, &r[0]);
    MPI_Isend(data, LONG, MPI_CHAR, peer, TAG, comm, &r[1]);
    rc = MPI_Waitany(2, r, &index, MPI_STATUS_IGNORE);
    MPI_Wait(&r[!index], MPI_STATUS_IGNORE);
  }
  free(data);
  return rc;
}

int main(int argc, char **argv) {
  begin_lost(&argc, &argv);
  int flag = -1, probed, other = np > 2 ? (me == np - 1 ? 1 : me + 1) : 0;
  MPI_Comm comm, alive;
  MPI_Request request;
  CLASS(MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request), MPI_ERR_UNSUPPORTED_OPERATION);
  int *tolerant;
  CLASS(MPI_Comm_get_attr(MPI_COMM_WORLD, MPIX_FT, &tolerant, &flag), MPI_SUCCESS);
  CHECK(flag && *tolerant == 1, "the attribute MPIX_FT is not 1");
  CLASS(MPI_Comm_dup(MPI_COMM_WORLD, &comm), MPI_SUCCESS);
  CLASS(MPIX_Comm_is_revoked(comm, &flag), MPI_SUCCESS);
  SAME(flag, 0, "revoked before");
  MPI_Barrier(comm);
  if (me == 0) {
    usleep(100000);
    CLASS(MPIX_Comm_revoke(comm), MPI_SUCCESS);
    CLASS(MPIX_Comm_revoke(comm), MPI_SUCCESS);
  } else {
    int rc = wait_in(comm, other);
    /* a send succeeds if native MPI buffers the message, or if its receiver has dropped the message
     * because of the revocation */
    if (rc || (strcmp(phase, "send") && strcmp(phase, "waitany"))) CLASS(rc, MPIX_ERR_REVOKED);
  }
  while (!flag) {
    CLASS(MPIX_Comm_is_revoked(comm, &flag), MPI_SUCCESS);
    MPI_Iprobe(0, TAG, MPI_COMM_SELF, &probed, MPI_STATUS_IGNORE);
  }
  CLASS(MPIX_Comm_is_revoked(comm, &flag), MPI_SUCCESS);
  SAME(flag, 1, "revoked");
  int x = me;
  CLASS(MPI_Send(&x, 1, MPI_INT, other, TAG + 1, comm), MPIX_ERR_REVOKED);
  CLASS(MPI_Recv(&x, 1, MPI_INT, other, TAG + 1, comm, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
  CLASS(MPI_Barrier(comm), MPIX_ERR_REVOKED);
  flag = me ? 3 : 2;
  CLASS(MPIX_Comm_agree(comm, &flag), MPI_SUCCESS);
  SAME(flag, 2, "agreed value");
  CLASS(MPIX_Comm_shrink(comm, &alive), MPI_SUCCESS);
  CLASS(MPI_Barrier(alive), MPI_SUCCESS);
  CLASS(MPIX_Comm_is_revoked(alive, &flag), MPI_SUCCESS);
  SAME(flag, 0, "the new one is revoked");
  CLASS(MPI_Comm_free(&comm), MPI_SUCCESS);
  /* a communicator of one process */
  CLASS(MPIX_Comm_revoke(MPI_COMM_SELF), MPI_SUCCESS);
  CLASS(MPIX_Comm_is_revoked(MPI_COMM_SELF, &flag), MPI_SUCCESS);
  SAME(flag, 1, "MPI_COMM_SELF is revoked");
  return finish_lost(alive);
}
