/* Messages to and from ranks of a lost cluster fail, whether they were started before the loss or
 * after it. Messages between survivors arrive. */
#include "lost.h"

enum { TAG = 5, LONG = 1 << 20 };

static char *buffer(void) { return calloc(LONG, 1); }

int main(int argc, char **argv) {
  begin_lost(&argc, &argv);
  int gone = first_dying, n = np - victims, next = (me + 1) % n, from = (me + n - 1) % n, x = me, y = -1, flag;
  char *in = buffer(), *out = buffer(), *other = buffer();
  MPI_Request r[3], persistent[2], rest[2];
  MPI_Status statuses[3], status;
  MPI_Barrier(MPI_COMM_WORLD);
  if (dying) usleep(50000), perish();
  MPI_Irecv(in, LONG, MPI_CHAR, gone, TAG, MPI_COMM_WORLD, &r[0]);
  MPI_Isend(out, LONG, MPI_CHAR, gone, TAG, MPI_COMM_WORLD, &r[1]);
  MPI_Irecv(other, LONG, MPI_CHAR, from, TAG, MPI_COMM_WORLD, &r[2]);
  MPI_Recv_init(&y, 1, MPI_INT, gone, TAG + 1, MPI_COMM_WORLD, &persistent[0]);
  MPI_Send_init(out, LONG, MPI_CHAR, gone, TAG + 1, MPI_COMM_WORLD, &persistent[1]);
  MPI_Startall(2, persistent);
  fill(out, LONG, me);
  CLASS(MPI_Send(out, LONG, MPI_CHAR, next, TAG, MPI_COMM_WORLD), MPI_SUCCESS);
  CLASS(MPI_Waitall(3, r, statuses), MPI_ERR_IN_STATUS);
  CLASS(statuses[0].MPI_ERROR, MPIX_ERR_PROC_FAILED);
  CLASS(statuses[1].MPI_ERROR, MPIX_ERR_PROC_FAILED);
  CLASS(statuses[2].MPI_ERROR, MPI_SUCCESS);
  CHECK(filled(other, LONG, from));
  CLASS(MPI_Wait(&persistent[0], MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
  CLASS(MPI_Wait(&persistent[1], MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
  MPI_Request_free(&persistent[0]);
  MPI_Request_free(&persistent[1]);

  await_loss(MPI_COMM_WORLD);
  CLASS(MPI_Recv(&y, 1, MPI_INT, gone, TAG, MPI_COMM_WORLD, &status), MPIX_ERR_PROC_FAILED);
  CLASS(MPI_Send(&x, 1, MPI_INT, gone, TAG, MPI_COMM_WORLD), MPIX_ERR_PROC_FAILED);
  CLASS(MPI_Ssend(&x, 1, MPI_INT, gone, TAG, MPI_COMM_WORLD), MPIX_ERR_PROC_FAILED);
  CLASS(MPI_Send(out, LONG, MPI_CHAR, gone, TAG, MPI_COMM_WORLD), MPIX_ERR_PROC_FAILED);
  CLASS(MPI_Probe(gone, TAG, MPI_COMM_WORLD, &status), MPIX_ERR_PROC_FAILED);
  CLASS(MPI_Iprobe(gone, TAG, MPI_COMM_WORLD, &flag, &status), MPIX_ERR_PROC_FAILED);
  CLASS(MPI_Sendrecv(&x, 1, MPI_INT, gone, TAG, &y, 1, MPI_INT, gone, TAG, MPI_COMM_WORLD, &status),
        MPIX_ERR_PROC_FAILED);
  CLASS(MPI_Sendrecv(&x, 1, MPI_INT, next, TAG, &y, 1, MPI_INT, from, TAG, MPI_COMM_WORLD, &status), MPI_SUCCESS);
  SAME(y, from, "message of a survivor");
  MPI_Irecv(&y, 1, MPI_INT, gone, TAG, MPI_COMM_WORLD, &rest[0]);
  MPI_Isend(&x, 1, MPI_INT, gone, TAG, MPI_COMM_WORLD, &rest[1]);
  CLASS(MPI_Wait(&rest[0], &status), MPIX_ERR_PROC_FAILED);
  CLASS(MPI_Wait(&rest[1], &status), MPIX_ERR_PROC_FAILED);
  CHECK(rest[0] == MPI_REQUEST_NULL && rest[1] == MPI_REQUEST_NULL);

  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  CLASS(MPI_Error_string(MPIX_ERR_PROC_FAILED, text, &length), MPI_SUCCESS);
  CHECK(strstr(text, "MPI_ERR_PROC_FAILED"), "the text is %s", text);
  free(in), free(out), free(other);
  MPI_Comm alive;
  CLASS(MPIX_Comm_shrink(MPI_COMM_WORLD, &alive), MPI_SUCCESS);
  return finish_lost(alive);
}
