/* Probe, Iprobe, Mprobe, Improbe, Mrecv, Imrecv, with and without wildcards, beside receives that
 * match other messages first. */
#include "check.h"

static long checksum;

static void take(int form, int source, int tag) {
  MPI_Status st = {.MPI_ERROR = MPI_ERR_DIMS};
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Request request;
  int flag = 0, n;
  switch (form) {
  case 0: MPI_Probe(source, tag, MPI_COMM_WORLD, &st); break;
  case 1:
    while (!flag) MPI_Iprobe(source, tag, MPI_COMM_WORLD, &flag, &st);
    break;
  case 2:
  case 3: MPI_Mprobe(source, tag, MPI_COMM_WORLD, &message, &st); break;
  default:
    while (!flag) MPI_Improbe(source, tag, MPI_COMM_WORLD, &flag, &message, &st);
    break;
  }
  if (source != MPI_ANY_SOURCE) SAME(st.MPI_SOURCE, source, "probed source");
  if (tag != MPI_ANY_TAG) SAME(st.MPI_TAG, tag, "probed tag");
#ifdef OPEN_MPI /* MPICH 4.0 writes it in native probes */
  SAME(st.MPI_ERROR, MPI_ERR_DIMS, "error in the status, which is the program's, after a probe");
#endif
  MPI_Get_count(&st, MPI_INT, &n);
  int *in = malloc((n + 1) * sizeof *in);
  in[n] = -7;
  MPI_Status got;
  switch (form) {
  case 0:
  case 1: MPI_Recv(in, n, MPI_INT, st.MPI_SOURCE, st.MPI_TAG, MPI_COMM_WORLD, &got); break;
  case 2:
  case 4: MPI_Mrecv(in, n, MPI_INT, &message, &got); break;
  default:
    MPI_Imrecv(in, n, MPI_INT, &message, &request);
    MPI_Wait(&request, &got);
    break;
  }
  if (form >= 2) CHECK(message == MPI_MESSAGE_NULL, "message handle not reset");
  int m;
  MPI_Get_count(&got, MPI_INT, &m);
  SAME(m, n, "count");
  SAME(got.MPI_SOURCE, st.MPI_SOURCE, "source");
  SAME(got.MPI_TAG, st.MPI_TAG, "tag");
  SAME(in[n], -7, "word past the end");
  for (int i = 0; i < n; i++)
    if (in[i] != st.MPI_SOURCE * 1000 + st.MPI_TAG * 10 + i) {
      failed(__FILE__, __LINE__, "wrong data");
      break;
    }
  checksum += (long)n * (st.MPI_SOURCE + 1) + st.MPI_TAG;
  free(in);
}

static void give(int to, int tag, int n) {
  int *out = malloc((n + 1) * sizeof *out);
  for (int i = 0; i < n; i++) out[i] = me * 1000 + tag * 10 + i;
  MPI_Send(out, n, MPI_INT, to, tag, MPI_COMM_WORLD);
  free(out);
}

int main(int argc, char **argv) {
  static const int sizes[] = {0, 1, 250, 20000, 50000};
  start(&argc, &argv);
  for (int root = 0; root < np; root++) {
    for (int form = 0; form < 6; form++) {
      for (int s = 0; s < 5; s++) {
        if (me == root) {
          for (int k = 0; k < np - 1; k++) take(form, MPI_ANY_SOURCE, MPI_ANY_TAG);
          MPI_Barrier(MPI_COMM_WORLD);
          for (int k = 0; k < np - 1; k++) take(form, MPI_ANY_SOURCE, 3);
          for (int k = 0; k < np; k++)
            if (k != root) take(form, k, MPI_ANY_TAG), take(form, k, 5);
        } else {
          give(root, 2, sizes[s]);
          MPI_Barrier(MPI_COMM_WORLD);
          give(root, 3, sizes[(s + 1) % 5]);
          give(root, 4, sizes[(s + 2) % 5]);
          give(root, 5, sizes[(s + 3) % 5]);
        }
        MPI_Barrier(MPI_COMM_WORLD);
      }
    }
    /* A probe must not find a message that an earlier receive matches: the receive is for tag 1,
     * each sender sends tag 1 once or never, and the probe for any tag takes place while the
     * receive is outstanding. */
    for (int from = 0; from < np; from++) {
      if (from == root) continue;
      if (me == root) {
        int first = -1;
        MPI_Request request;
        MPI_Status st;
        MPI_Irecv(&first, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &request);
        MPI_Send(NULL, 0, MPI_INT, from, 9, MPI_COMM_WORLD);
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
        SAME(st.MPI_TAG, 2, "tag of the message that no receive takes");
        take(2, MPI_ANY_SOURCE, MPI_ANY_TAG);
        MPI_Wait(&request, &st);
        SAME(first, from * 1000 + 10, "the received");
        SAME(st.MPI_SOURCE, from, "its source");
      } else if (me == from) {
        MPI_Recv(NULL, 0, MPI_INT, root, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        give(root, 1, 1);
        give(root, 2, 300);
      }
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  /* Without a message nothing is found. A rank probes itself. */
  int flag = 1;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  SAME(flag, 0, "Iprobe's flag with no message");
  MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
  SAME(flag, 0, "Improbe's flag with no message");
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Request self;
  int *out = calloc(100, sizeof *out);
  for (int i = 0; i < 100; i++) out[i] = me * 1000 + 60 + i;
  MPI_Isend(out, 100, MPI_INT, me, 6, MPI_COMM_WORLD, &self);
  take(4, MPI_ANY_SOURCE, 6); /* not MPI_ANY_TAG, because others may be at line() already */
  MPI_Wait(&self, MPI_STATUS_IGNORE);
  free(out);
  MPI_Status st;
  MPI_Probe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &st);
  SAME(st.MPI_SOURCE, MPI_PROC_NULL, "source of a probe of PROC_NULL");
  SAME(st.MPI_TAG, MPI_ANY_TAG, "tag of a probe of PROC_NULL");
  MPI_Mprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &message, &st);
  CHECK(message == MPI_MESSAGE_NO_PROC, "message of PROC_NULL");
  MPI_Mrecv(NULL, 0, MPI_INT, &message, &st);
  CHECK(message == MPI_MESSAGE_NULL, "message of PROC_NULL after receive");
  SAME(st.MPI_SOURCE, MPI_PROC_NULL, "source of a receive from PROC_NULL");
  line("checksum %ld", checksum);
  return finish();
}
