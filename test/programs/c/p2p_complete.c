/* Every form of Wait and Test over arrays that mix null, persistent, local, remote, self, wildcard
 * and PROC_NULL requests. */
#include "check.h"

enum { EACH = 3, FORMS = 9 };

static void check_empty(const MPI_Status *st, const char *what) {
  int n = -1, cancelled = -1;
  MPI_Get_count((MPI_Status *)st, MPI_INT, &n);
  MPI_Test_cancelled((MPI_Status *)st, &cancelled);
  CHECK(st->MPI_SOURCE == MPI_ANY_SOURCE && st->MPI_TAG == MPI_ANY_TAG && n == 0 && cancelled == 0,
        "%s: status not empty", what);
}

/* Completes requests r[0..n) in the given form; done[i] counts completions; st[i] holds the last
 * status. */
static void complete(int form, int n, MPI_Request *r, int *done, MPI_Status *st, int expected) {
  int index, flag, some, *indices = malloc(n * sizeof *indices);
  MPI_Status one, *many = malloc(n * sizeof *many);
  int total = 0;
  switch (form) {
  case 0: /* Wait, from the last */
    for (int i = n - 1; i >= 0; i--) {
      int was = r[i] != MPI_REQUEST_NULL;
      MPI_Wait(&r[i], &st[i]);
      if (was) done[i]++, total++;
    }
    break;
  case 1: /* Test, round robin */
    while (total < expected)
      for (int i = 0; i < n; i++) {
        if (r[i] == MPI_REQUEST_NULL || done[i]) continue;
        MPI_Test(&r[i], &flag, &one);
        if (flag) done[i]++, total++, st[i] = one;
      }
    break;
  case 2:
    for (int i = 0; i < n; i++)
      if (r[i] != MPI_REQUEST_NULL) done[i]++, total++;
    MPI_Waitall(n, r, st);
    break;
  case 3:
    for (int i = 0; i < n; i++)
      if (r[i] != MPI_REQUEST_NULL) done[i]++, total++;
    for (flag = 0; !flag;) MPI_Testall(n, r, &flag, st);
    break;
  case 4:
    while (MPI_Waitany(n, r, &index, &one), index != MPI_UNDEFINED) done[index]++, total++, st[index] = one;
    check_empty(&one, "Waitany with nothing active");
    break;
  case 5:
    for (;;) {
      MPI_Testany(n, r, &index, &flag, &one);
      if (!flag) continue;
      if (index == MPI_UNDEFINED) break;
      done[index]++, total++, st[index] = one;
    }
    break;
  case 6:
    while (MPI_Waitsome(n, r, &some, indices, many), some != MPI_UNDEFINED) {
      CHECK(some > 0, "Waitsome returned %d", some);
      for (int i = 0; i < some; i++) done[indices[i]]++, total++, st[indices[i]] = many[i];
    }
    break;
  case 7:
    while (MPI_Testsome(n, r, &some, indices, many), some != MPI_UNDEFINED)
      for (int i = 0; i < some; i++) done[indices[i]]++, total++, st[indices[i]] = many[i];
    break;
  case 8: /* test with Request_get_status, which must leave the request, then wait */
    for (int i = 0; i < n; i++) {
      if (r[i] == MPI_REQUEST_NULL) continue;
      one = st[i]; /* of a send, source and tag are undefined: MPI may leave them unchanged */
      for (flag = 0; !flag;) MPI_Request_get_status(r[i], &flag, &one);
      CHECK(r[i] != MPI_REQUEST_NULL, "get_status freed the request");
      MPI_Wait(&r[i], &st[i]);
      done[i]++, total++;
    }
    break;
  }
  SAME(total, expected, "number of completions");
  free(indices), free(many);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  /* persistent: 1 = with inactive and active persistent requests in the array */
  for (int persistent = 0; persistent <= 1; persistent++)
    for (int form = 0; form < FORMS; form++) {
      int n = 0, max = 2 * EACH * np + 8, expected = 0;
      MPI_Request *r = malloc(max * sizeof *r);
      MPI_Status *st = malloc(max * sizeof *st);
      int *done = calloc(max, sizeof *done), *kind = calloc(max, sizeof *kind), *from = calloc(max, sizeof *from),
          *tag = calloc(max, sizeof *tag);
      int lengths[EACH] = {1, 400, 30000};
      int *in = malloc((size_t)max * 30000 * sizeof *in), *out = malloc((size_t)max * 30000 * sizeof *out);
      memset(st, 0, max * sizeof *st);
      enum { NOTHING, RECEIVE, SEND, NULL_PROC };
      r[n++] = MPI_REQUEST_NULL;
      for (int k = 0; k < EACH; k++)
        for (int p = 0; p < np; p++) {
          /* Tags identify the senders, so wildcard receives have only one outcome. */
          int source = (k + p + form) % 3 == 0 ? MPI_ANY_SOURCE : p;
          int *buf = in + (size_t)n * 30000, t = 1000 * form + 10 * p + k;
          kind[n] = RECEIVE, from[n] = p, tag[n] = t, expected++;
          if (persistent && k == 1)
            MPI_Recv_init(buf, lengths[k], MPI_INT, source, t, MPI_COMM_WORLD, &r[n]), MPI_Start(&r[n]);
          else MPI_Irecv(buf, lengths[k], MPI_INT, source, t, MPI_COMM_WORLD, &r[n]);
          n++;
          if (p == np / 2 && k == 1) r[n++] = MPI_REQUEST_NULL;
        }
      kind[n] = NULL_PROC, expected++;
      MPI_Irecv(in, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &r[n++]);
      int inactive = -1;
      if (persistent) {
        inactive = n;
        kind[n] = NOTHING;
        MPI_Recv_init(in, 1, MPI_INT, (me + 1) % np, 999, MPI_COMM_WORLD, &r[n++]);
      }
      for (int k = 0; k < EACH; k++)
        for (int p = 0; p < np; p++) {
          int *buf = out + (size_t)n * 30000, t = 1000 * form + 10 * me + k;
          fill(buf, lengths[k] * sizeof *buf, me * 100 + p * 10 + k);
          kind[n] = SEND, expected++;
          if (persistent && k == 2)
            MPI_Send_init(buf, lengths[k], MPI_INT, p, t, MPI_COMM_WORLD, &r[n]), MPI_Start(&r[n]);
          else if (k == 1) MPI_Issend(buf, lengths[k], MPI_INT, p, t, MPI_COMM_WORLD, &r[n]);
          else MPI_Isend(buf, lengths[k], MPI_INT, p, t, MPI_COMM_WORLD, &r[n]);
          n++;
        }
      /* an inactive request counts as done at once, with an empty status */
      if (persistent && (form == 0 || form == 8)) {
        MPI_Wait(&r[inactive], &st[inactive]);
        check_empty(&st[inactive], "Wait of an inactive request");
        int flag = 0;
        MPI_Test(&r[inactive], &flag, &st[inactive]);
        SAME(flag, 1, "Test of an inactive request");
        MPI_Request_free(&r[inactive]);
        CHECK(r[inactive] == MPI_REQUEST_NULL, "Request_free left the handle");
        inactive = -1;
      }
      if (inactive >= 0 && (form == 2 || form == 3)) expected++;
      if (form == 1 && inactive >= 0) done[inactive] = 1;
      complete(form, n, r, done, st, expected);
      if (inactive >= 0) {
        MPI_Request_free(&r[inactive]);
      }
      uint64_t sum = 0;
      for (int i = 0; i < n; i++) {
        if (kind[i] == NOTHING) continue;
        SAME(done[i], 1, "completions of a request");
        if (kind[i] != RECEIVE) continue;
        int k = tag[i] % 10, count;
        MPI_Get_count(&st[i], MPI_INT, &count);
        if (count != lengths[k] || st[i].MPI_SOURCE != from[i] || st[i].MPI_TAG != tag[i] ||
            !filled(in + (size_t)i * 30000, lengths[k] * sizeof *in, from[i] * 100 + me * 10 + k))
          failed(__FILE__, __LINE__, "form %d request %d: count %d source %d tag %d, want %d %d %d", form, i, count,
                 st[i].MPI_SOURCE, st[i].MPI_TAG, lengths[k], from[i], tag[i]);
        sum = digest(sum, in + (size_t)i * 30000, lengths[k] * sizeof *in);
      }
      for (int i = 0; i < n; i++)
        if (r[i] != MPI_REQUEST_NULL) {
          CHECK(persistent, "request left");
          MPI_Request_free(&r[i]);
        }
      line("persistent %d form %d: %016llx", persistent, form, (unsigned long long)sum);
      free(r), free(st), free(done), free(kind), free(from), free(tag), free(in), free(out);
    }

  /* Missing messages are reported as such: tests that fail leave everything unchanged. */
  for (int p = 0; p < np; p++) {
    if (p == me) continue;
    MPI_Request r[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status st[3];
    int x = 0, flag = 1, index, some, indices[3], y = 7;
    MPI_Irecv(&x, 1, MPI_INT, p, 4000, MPI_COMM_WORLD, &r[1]);
    MPI_Test(&r[1], &flag, st);
    SAME(flag, 0, "Test's flag");
    MPI_Testall(3, r, &flag, st);
    SAME(flag, 0, "Testall's flag");
    MPI_Testany(3, r, &index, &flag, st);
    SAME(flag, 0, "Testany's flag");
    MPI_Testsome(3, r, &some, indices, st);
    SAME(some, 0, "Testsome's count");
    CHECK(r[1] != MPI_REQUEST_NULL, "request lost");
    MPI_Sendrecv(&y, 1, MPI_INT, p, 4001, &flag, 1, MPI_INT, p, 4001, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&y, 1, MPI_INT, p, 4000, MPI_COMM_WORLD);
    MPI_Waitall(3, r, st);
    SAME(x, 7, "received");
    check_empty(&st[0], "Waitall of a null request");
  }
  /* Rank 0 only tests until the last rank's message has arrived, which is sent once rank 1 has
   * received all of rank 0's: in all forms testing has to drive the large local message. */
  for (int form = 0; form < 4 && np > 2; form++) {
    enum { LARGE = 200000 };
    int *large = calloc(LARGE, sizeof *large), token = form, got = -1, flag = 0, index, some, indices[2], last = np - 1;
    MPI_Status st[2];
    if (me == 0) {
      MPI_Request r[2];
      MPI_Irecv(&got, 1, MPI_INT, last, 5001, MPI_COMM_WORLD, &r[0]);
      large[LARGE - 1] = form;
      MPI_Isend(large, LARGE, MPI_INT, 1, 5000, MPI_COMM_WORLD, &r[1]);
      while (r[0] != MPI_REQUEST_NULL) switch (form) {
        case 0: MPI_Testall(2, r, &flag, st); break;
        case 1: MPI_Test(&r[0], &flag, st); break;
        case 2: MPI_Testany(1, r, &index, &flag, st); break;
        case 3: MPI_Testsome(1, r, &some, indices, st); break;
        }
      MPI_Wait(&r[1], MPI_STATUS_IGNORE);
      SAME(got, form, "what came when the large message was through");
    } else if (me == 1) {
      MPI_Recv(large, LARGE, MPI_INT, 0, 5000, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      SAME(large[LARGE - 1], form, "end of the large message");
      MPI_Send(&token, 1, MPI_INT, last, 5000, MPI_COMM_WORLD);
    }
    if (me == last) {
      MPI_Recv(&token, 1, MPI_INT, 1, 5000, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(&token, 1, MPI_INT, 0, 5001, MPI_COMM_WORLD);
    }
    free(large);
  }
  return finish();
}
