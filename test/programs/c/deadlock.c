/* Programs that hang if a rank blocks in the native library while it has a wildcard receive
 * outstanding. Rank 0 posts Irecv(ANY_SOURCE, tag 1) and waits in Recv(tag 2); its partner calls
 * Ssend(tag 1) and then Send(tag 2). Every ordered pair of ranks does this (with tags of its own),
 * so it occurs with both in one cluster and in two. The second part does the same with rank 0 in
 * Buffer_detach, which waits for a large buffered send that its partner receives after the Ssend.
 * In the third part a rank sends a long message beside its wait, with and without another rank that
 * has entered the making of a communicator early. */
#include "check.h"

/* The sender waits for the far rank, which waits for the receiver, which waits for the sender's
 * long message. That message makes progress only if the sender's wait drives the native library,
 * also while a message of an early rank, for the making of the communicator, lies unreceived. */
static void beside_a_long_message(int far, int sender, int receiver, int early) {
  enum { LONG = 1 << 20, TAG = 9000 };
  int token = me, members[] = {early >= 0 ? early : receiver, sender, far};
  char *data = malloc(LONG);
  MPI_Group world, group;
  MPI_Comm made;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 3, members, &group);
  if (me == sender) {
    MPI_Request request;
    fill(data, LONG, 1);
    MPI_Isend(data, LONG, MPI_BYTE, receiver, TAG, MPI_COMM_WORLD, &request);
    MPI_Recv(&token, 1, MPI_INT, far, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    SAME(token, far, "token");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else if (me == receiver) {
    MPI_Probe(sender, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* the sender is about to wait */
    MPI_Recv(data, LONG, MPI_BYTE, sender, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(filled(data, LONG, 1), "the long message");
    MPI_Send(&token, 1, MPI_INT, far, TAG, MPI_COMM_WORLD);
  } else if (me == far) {
    MPI_Recv(&token, 1, MPI_INT, receiver, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&me, 1, MPI_INT, sender, TAG, MPI_COMM_WORLD);
  }
  if (me == members[0] || me == members[1] || me == members[2]) {
    int sum;
    MPI_Comm_create_group(MPI_COMM_WORLD, group, 1, &made);
    MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, made);
    SAME(sum, members[0] + members[1] + members[2], "sum");
    MPI_Comm_free(&made);
  }
  MPI_Group_free(&group), MPI_Group_free(&world);
  free(data);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  for (int a = 0; a < np; a++)
    for (int b = 0; b < np; b++) {
      if (a == b) continue;
      int x = -1, y = -1, v = 100 * a + b, one = 2 * (a * np + b), two = one + 1;
      MPI_Status status;
      if (me == a) {
        MPI_Request request;
        MPI_Irecv(&x, 1, MPI_INT, MPI_ANY_SOURCE, one, MPI_COMM_WORLD, &request);
        MPI_Recv(&y, 1, MPI_INT, b, two, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, &status);
        SAME(x, v, "x");
        SAME(y, v + 1, "y");
        SAME(status.MPI_SOURCE, b, "source");
        SAME(status.MPI_TAG, one, "tag");
        line("%d %d: %d %d", a, b, x, y);
      } else if (me == b) {
        MPI_Ssend(&v, 1, MPI_INT, a, one, MPI_COMM_WORLD);
        v++;
        MPI_Send(&v, 1, MPI_INT, a, two, MPI_COMM_WORLD);
      }
    }
  enum { LARGE = 1 << 20 };
  int *data = malloc(LARGE * sizeof *data), room = LARGE * sizeof *data + MPI_BSEND_OVERHEAD;
  void *buffer = malloc(room), *back;
  for (int a = 0; a < np; a++)
    for (int b = 0; b < np; b++) {
      if (a == b) continue;
      int x = -1, v = 100 * a + b, one = 2 * (a * np + b), two = one + 1;
      if (me == a) {
        MPI_Request request;
        MPI_Irecv(&x, 1, MPI_INT, MPI_ANY_SOURCE, one, MPI_COMM_WORLD, &request);
        fill(data, LARGE * sizeof *data, a + 1);
        MPI_Buffer_attach(buffer, room);
        MPI_Bsend(data, LARGE, MPI_INT, b, two, MPI_COMM_WORLD);
        memset(data, 0, LARGE * sizeof *data); /* it has been copied */
        MPI_Buffer_detach(&back, &room);
        CHECK(back == buffer, "another buffer comes back");
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        SAME(x, v, "x beside a buffered send");
      } else if (me == b) {
        MPI_Ssend(&v, 1, MPI_INT, a, one, MPI_COMM_WORLD);
        MPI_Recv(data, LARGE, MPI_INT, a, two, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(filled(data, LARGE * sizeof *data, a + 1), "what was sent with a buffer");
      }
    }
  free(data), free(buffer);
  /* Repeated, because it is not known whether the early rank has sent by then */
  for (int i = 0; i < 20 && np >= 3; i++) beside_a_long_message(0, np - 2, np - 1, -1);
  for (int i = 0; i < 20 && np >= 4; i++) beside_a_long_message(0, np - 3, np - 1, np - 2);
  return finish();
}
