/* Receives from any source while a cluster is lost: the request stays pending until the loss is
 * acknowledged, and then receives a survivor's message. Blocking receives and probes fail. */
#include "lost.h"

enum { TAG = 5 };

static int acked_size(void) {
  MPI_Group acked;
  int n;
  CLASS(MPIX_Comm_failure_get_acked(MPI_COMM_WORLD, &acked), MPI_SUCCESS);
  MPI_Group_size(acked, &n);
  if (acked != MPI_GROUP_EMPTY) MPI_Group_free(&acked);
  return n;
}

/* Checks all calls on a receive that is pending. */
static void pending(MPI_Request *any, int *in) {
  int flag = -1, index = -1, other = -1, rc;
  MPI_Status statuses[2];
  MPI_Request two[2] = {*any, MPI_REQUEST_NULL};
  CLASS(MPI_Wait(any, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED_PENDING);
  CHECK(*any != MPI_REQUEST_NULL);
  CLASS(MPI_Test(any, &flag, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED_PENDING);
  CLASS(MPI_Waitany(2, two, &index, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED_PENDING);
  SAME(index, 0, "index");
  MPI_Irecv(&other, 1, MPI_INT, 0, TAG + 1, MPI_COMM_SELF, &two[1]);
  MPI_Send(&me, 1, MPI_INT, 0, TAG + 1, MPI_COMM_SELF);
  rc = MPI_Waitall(2, two, statuses);
  CLASS(rc, MPI_ERR_IN_STATUS);
  CLASS(statuses[0].MPI_ERROR, MPIX_ERR_PROC_FAILED_PENDING);
  CLASS(statuses[1].MPI_ERROR, MPI_SUCCESS);
  CHECK(two[0] == *any && two[1] == MPI_REQUEST_NULL);
  SAME(other, me, "the other message");
  SAME(*in, -1, "the buffer of the pending receive");
}

int main(int argc, char **argv) {
  begin_lost(&argc, &argv);
  int in = -1, strided[3] = {-1, -1, -1}, flag, n = np - victims, next = (me + 1) % n;
  MPI_Request any, gaps;
  MPI_Status status, statuses[2];
  MPI_Datatype vector;
  MPI_Message message;
  MPI_Type_vector(2, 1, 2, MPI_INT, &vector);
  MPI_Type_commit(&vector);
  MPI_Barrier(MPI_COMM_WORLD);
  if (dying) usleep(100000), perish();
  MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &any);
  MPI_Irecv(strided, 1, vector, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &gaps);
  await_loss(MPI_COMM_WORLD);
  pending(&any, &in);
  int one;
  CLASS(MPI_Recv(&one, 1, MPI_INT, MPI_ANY_SOURCE, TAG + 2, MPI_COMM_WORLD, &status), MPIX_ERR_PROC_FAILED);
  CLASS(MPI_Probe(MPI_ANY_SOURCE, TAG + 2, MPI_COMM_WORLD, &status), MPIX_ERR_PROC_FAILED);
  CLASS(MPI_Mprobe(MPI_ANY_SOURCE, TAG + 2, MPI_COMM_WORLD, &message, &status), MPIX_ERR_PROC_FAILED);
  CLASS(MPI_Iprobe(MPI_ANY_SOURCE, TAG + 2, MPI_COMM_WORLD, &flag, &status), MPIX_ERR_PROC_FAILED);

  SAME(acked_size(), 0, "acknowledged");
  CLASS(MPIX_Comm_failure_ack(MPI_COMM_WORLD), MPI_SUCCESS);
  SAME(acked_size(), victims, "acknowledged");
  flag = 1;
  CLASS(MPIX_Comm_agree(MPI_COMM_WORLD, &flag), MPI_SUCCESS); /* all receives are pending until here */
  CLASS(MPI_Test(&any, &flag, &status), MPI_SUCCESS);
  MPI_Request out[2];
  MPI_Isend(&me, 1, MPI_INT, next, TAG, MPI_COMM_WORLD, &out[0]);
  MPI_Isend(&me, 1, MPI_INT, next, TAG, MPI_COMM_WORLD, &out[1]);
  if (!flag) CLASS(MPI_Wait(&any, &status), MPI_SUCCESS);
  CHECK(any == MPI_REQUEST_NULL);
  SAME(in, (me + n - 1) % n, "the received message");
  SAME(status.MPI_SOURCE, in, "source");
  /* a receive of a type with gaps that is resumed by MPI_Waitall */
  CLASS(MPI_Waitall(2, out, statuses), MPI_SUCCESS);
  CLASS(MPI_Waitall(1, &gaps, statuses), MPI_SUCCESS);
  SAME(strided[0], (me + n - 1) % n, "the first element");
  SAME(strided[1], -1, "the gap");
  /* one that is cancelled while it is pending, and one that never completes before the end */
  MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, TAG + 3, MPI_COMM_WORLD, &any);
  CLASS(MPI_Cancel(&any), MPI_SUCCESS);
  CLASS(MPI_Wait(&any, &status), MPI_SUCCESS);
  MPI_Test_cancelled(&status, &flag);
  CHECK(flag);
  MPI_Type_free(&vector);
  MPI_Comm alive;
  CLASS(MPIX_Comm_shrink(MPI_COMM_WORLD, &alive), MPI_SUCCESS);
  return finish_lost(alive);
}
