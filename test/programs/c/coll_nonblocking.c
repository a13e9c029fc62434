/* Nonblocking collectives: all of them, several outstanding at once, mixed with point to point and
 * with blocking collectives, completed by every form of Wait and Test. */
#include "check.h"

static int value(int from, int to, int i) { return from * 100000 + to * 1000 + i % 1000; }

enum { KINDS = 18, N = 600 };

typedef struct {
  int kind, n, root, *a, *b, *sc, *sd, *rc, *rd;
  MPI_Datatype *st, *rt;
} operation;

static void begin(operation *o, int kind, int n, int root, MPI_Comm comm, MPI_Request *r) {
  o->kind = kind, o->n = n, o->root = root;
  int len = n * np + 1;
  o->a = malloc(len * sizeof(int)), o->b = malloc(len * sizeof(int));
  o->sc = malloc(4 * np * sizeof(int)), o->sd = o->sc + np, o->rc = o->sd + np, o->rd = o->rc + np;
  o->st = malloc(2 * np * sizeof(MPI_Datatype)), o->rt = o->st + np;
  for (int i = 0; i < len; i++) o->a[i] = value(me, i / (n ? n : 1), i), o->b[i] = -1;
  for (int p = 0; p < np; p++) o->sc[p] = o->rc[p] = n, o->sd[p] = o->rd[p] = p * n;
  int *a = o->a, *b = o->b;
  switch (kind) {
  case 0: MPI_Ibarrier(comm, r); break;
  case 1: MPI_Ibcast(me == root ? a : b, n, MPI_INT, root, comm, r); break;
  case 2: MPI_Igather(a, n, MPI_INT, b, n, MPI_INT, root, comm, r); break;
  case 3: MPI_Igatherv(a, n, MPI_INT, b, o->rc, o->rd, MPI_INT, root, comm, r); break;
  case 4: MPI_Iscatter(a, n, MPI_INT, b, n, MPI_INT, root, comm, r); break;
  case 5: MPI_Iscatterv(a, o->sc, o->sd, MPI_INT, b, n, MPI_INT, root, comm, r); break;
  case 6: MPI_Iallgather(a, n, MPI_INT, b, n, MPI_INT, comm, r); break;
  case 7: MPI_Iallgatherv(a, n, MPI_INT, b, o->rc, o->rd, MPI_INT, comm, r); break;
  case 8: MPI_Ialltoall(a, n, MPI_INT, b, n, MPI_INT, comm, r); break;
  case 9: MPI_Ialltoallv(a, o->sc, o->sd, MPI_INT, b, o->rc, o->rd, MPI_INT, comm, r); break;
  case 10:
    for (int p = 0; p < np; p++) o->st[p] = o->rt[p] = MPI_INT, o->sd[p] = o->rd[p] = p * n * (int)sizeof(int);
    MPI_Ialltoallw(a, o->sc, o->sd, o->st, b, o->rc, o->rd, o->rt, comm, r);
    break;
  case 11: MPI_Ireduce(a, b, n, MPI_INT, MPI_SUM, root, comm, r); break;
  case 12: MPI_Iallreduce(a, b, n, MPI_INT, MPI_SUM, comm, r); break;
  case 13: MPI_Ireduce_scatter(a, b, o->rc, MPI_INT, MPI_SUM, comm, r); break;
  case 14: MPI_Ireduce_scatter_block(a, b, n, MPI_INT, MPI_SUM, comm, r); break;
  case 15: MPI_Iscan(a, b, n, MPI_INT, MPI_SUM, comm, r); break;
  case 16: MPI_Iexscan(a, b, n, MPI_INT, MPI_SUM, comm, r); break;
  case 17:
    memcpy(b, a, n * sizeof(int));
    MPI_Iallreduce(MPI_IN_PLACE, b, n, MPI_INT, MPI_MAX, comm, r);
    break;
  }
}

static uint64_t end(operation *o) {
  int n = o->n, root = o->root, *b = o->b, count = 0;
  for (int i = 0; i < n * np; i++) {
    int want = -1, p = n ? i / n : 0, k = n ? i % n : 0, sum = 0;
    for (int q = 0; q < np; q++) sum += value(q, 0, i);
    switch (o->kind) {
    case 1:
      if (me != root && i < n) want = value(root, 0, i);
      break;
    case 2:
    case 3:
      if (me == root) want = value(p, 0, k);
      break;
    case 4:
    case 5:
      if (i < n) want = value(root, me, me * n + i);
      break;
    case 6:
    case 7: want = value(p, 0, k); break;
    case 8:
    case 9:
    case 10: want = value(p, me, me * n + k); break;
    case 11:
      if (me == root && i < n) want = sum;
      break;
    case 12:
      if (i < n) want = sum;
      break;
    case 13:
    case 14:
      if (i < n)
        for (want = 0, p = 0; p < np; p++) want += value(p, me, me * n + i);
      break;
    case 15:
      if (i < n)
        for (want = 0, p = 0; p <= me; p++) want += value(p, 0, i);
      break;
    case 16:
      if (i < n && me > 0)
        for (want = 0, p = 0; p < me; p++) want += value(p, 0, i);
      if (i < n && me == 0) want = b[i];
      break;
    case 17:
      if (i < n) want = value(np - 1, 0, i);
      break;
    }
    if (b[i] != want) {
      failed(__FILE__, __LINE__, "kind %d n %d root %d: [%d] is %d, want %d", o->kind, n, root, i, b[i], want);
      break;
    }
    count++;
  }
  SAME(b[n * np], -1, "word past the end");
  uint64_t h = o->kind == 16 && me == 0 ? 1 : digest(0, b, n * np * sizeof *b);
  free(o->a), free(o->b), free(o->sc), free(o->st);
  return h;
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  MPI_Comm dup;
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  MPI_Status st;
  /* freed with an operation pending in a communicator of one: Open MPI 4.1 alone never completes it
   * unless another communicator has run a nonblocking collective */
  int one = me + 1, same = 0;
  MPI_Comm alone;
  MPI_Request last;
  operation first;
  begin(&first, 0, 3, 0, MPI_COMM_WORLD, &last);
  MPI_Wait(&last, &st);
  end(&first);
  MPI_Comm_split(MPI_COMM_WORLD, me, 0, &alone);
  MPI_Ireduce_scatter_block(&one, &same, 1, MPI_INT, MPI_SUM, alone, &last);
  MPI_Comm_free(&alone);
  MPI_Wait(&last, &st);
  SAME(same, one, "in a communicator that is gone");
  /* one at a time */
  for (int kind = 0; kind < KINDS; kind++)
    for (int s = 0; s < 3; s++)
      for (int root = 0; root < np; root++) {
        operation o;
        MPI_Request r;
        begin(&o, kind, s == 0 ? 0 : s == 1 ? 3 : 20000 / np, root, MPI_COMM_WORLD, &r);
        if ((kind + s) % 2) MPI_Wait(&r, &st);
        else
          for (int flag = 0; !flag;) MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
        CHECK(r == MPI_REQUEST_NULL, "request left");
        uint64_t h = end(&o);
        if (root == 0) line("kind %d: %016llx", kind, (unsigned long long)h);
      }
  /* many at once on two communicators, with point to point around them; each rank completes them in
   * an order of its own */
  for (int round = 0; round < 8; round++) {
    enum { MANY = 2 * KINDS };
    operation o[MANY];
    MPI_Request r[MANY + 4];
    int x[2] = {-1, -1}, y[2] = {me + round, me * 2 + round}, right = (me + 1) % np, left = (me + np - 1) % np, z = me,
        sum = 0;
    MPI_Irecv(&x[0], 1, MPI_INT, MPI_ANY_SOURCE, round, MPI_COMM_WORLD, &r[MANY]);
    MPI_Irecv(&x[1], 1, MPI_INT, left, 100 + round, dup, &r[MANY + 1]);
    for (int k = 0; k < MANY; k++) {
      begin(&o[k], (k * 5 + round) % KINDS, k % 3 ? N / np : 5, k % np, k % 2 ? dup : MPI_COMM_WORLD, &r[k]);
      if (k == 10) MPI_Isend(&y[0], 1, MPI_INT, right, round, MPI_COMM_WORLD, &r[MANY + 2]);
      if (k == 20) MPI_Isend(&y[1], 1, MPI_INT, right, 100 + round, dup, &r[MANY + 3]);
      if (k == 15 && round % 2) MPI_Allreduce(&z, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    if (round % 2) SAME(sum, np * (np - 1) / 2, "blocking one among them");
    int index[MANY + 4], some, left_over = MANY + 4, flag;
    MPI_Status many[MANY + 4];
    switch ((round + me) % 5) {
    case 0: MPI_Waitall(MANY + 4, r, many); break;
    case 1:
      for (int k = MANY + 3; k >= 0; k--) MPI_Wait(&r[k], MPI_STATUS_IGNORE);
      break;
    case 2:
      for (; left_over > 0; left_over--) MPI_Waitany(MANY + 4, r, &index[0], &st);
      break;
    case 3:
      for (; left_over > 0; left_over -= some) MPI_Waitsome(MANY + 4, r, &some, index, many);
      break;
    case 4:
      for (flag = 0; !flag;) MPI_Testall(MANY + 4, r, &flag, many);
      break;
    }
    for (int k = 0; k < MANY + 4; k++) CHECK(r[k] == MPI_REQUEST_NULL, "request left");
    uint64_t h = 0;
    for (int k = 0; k < MANY; k++) h = mix(h ^ end(&o[k]));
    SAME(x[0], left + round, "wildcard message among collectives");
    SAME(x[1], 2 * left + round, "message among collectives");
    line("round %d: %016llx", round, (unsigned long long)h);
  }
  MPI_Comm_free(&dup);
  return finish();
}
