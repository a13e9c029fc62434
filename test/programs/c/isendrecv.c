/* MPI 4: MPI_Isendrecv and MPI_Isendrecv_replace, several at once, with derived types that are
 * freed at once, from MPI_ANY_SOURCE, with MPI_PROC_NULL, completed in all ways. An MPI 3 library
 * prints the same by a receive and a send; MPICH 4.0 by itself does not fill in the statuses, and
 * fails if a type is freed. */
#include "check.h"

enum { N = 20000, ROUNDS = 6, MOST = 8 };

#if MPI_VERSION >= 4
#define both MPI_Isendrecv
#define both_big MPI_Isendrecv_c
#define replace MPI_Isendrecv_replace
#else
static int both(const void *out, int n, MPI_Datatype type, int dest, int tag, void *in, int m, MPI_Datatype in_type,
                int source, int in_tag, MPI_Comm c, MPI_Request *r) {
  MPI_Request sent;
  MPI_Irecv(in, m, in_type, source, in_tag, c, r);
  MPI_Isend(out, n, type, dest, tag, c, &sent);
  return MPI_Request_free(&sent); /* all wait for an answer before the memory is freed */
}
#define both_big both
static int replace(void *buf, int n, MPI_Datatype type, int dest, int tag, int source, int in_tag, MPI_Comm c,
                   MPI_Request *r) {
  int bytes, at = 0;
  MPI_Pack_size(n, type, c, &bytes);
  void *copy = malloc(bytes); /* never freed */
  MPI_Pack(buf, n, type, copy, bytes, &at, c);
  return both(copy, at, MPI_PACKED, dest, tag, buf, n, type, source, in_tag, c, r);
}
#endif

static int count_of(MPI_Status *s) {
  int n;
  MPI_Get_count(s, MPI_INT, &n);
  return n;
}

/* Exchanges messages around the ring in both directions at once, short and long. */
static void ring(MPI_Comm c) {
  static int out[MOST][N], in[MOST][N];
  int right = (me + 1) % np, left = (me + np - 1) % np;
  MPI_Request r[MOST];
  MPI_Status s[MOST];
  for (int round = 0; round < ROUNDS; round++) {
    for (int k = 0; k < MOST; k++) {
      int n = k % 2 ? N : 10 + k, to = k % 4 < 2 ? right : left, from = k % 4 < 2 ? left : right;
      fill(out[k], n * sizeof(int), 1000 * me + 10 * round + k);
      memset(in[k], 0, sizeof in[k]);
      if (k == 5) both_big(out[k], n, MPI_INT, to, k, in[k], N, MPI_INT, from, k, c, &r[k]);
      else
        both(out[k], n, MPI_INT, to, k, in[k], N, MPI_INT, k == 6 ? MPI_ANY_SOURCE : from, k == 7 ? MPI_ANY_TAG : k, c,
             &r[k]);
      if (k == 7) MPI_Wait(&r[k], &s[k]); /* any later message could be matched otherwise */
    }
    int left_over = MOST - 1, flag = 0, at;
    if (round % 3 == 0) MPI_Waitall(MOST - 1, r, s);
    else if (round % 3 == 1) {
      MPI_Status one;
      for (; left_over; left_over--) MPI_Waitany(MOST - 1, r, &at, &one), s[at] = one;
    } else
      while (!flag) MPI_Testall(MOST - 1, r, &flag, s);
    for (int k = 0; k < MOST; k++) {
      int n = k % 2 ? N : 10 + k, from = k % 4 < 2 ? left : right;
      CHECK(filled(in[k], n * sizeof(int), 1000 * from + 10 * round + k), "round %d, exchange %d", round, k);
      SAME(s[k].MPI_SOURCE, from, "source");
      SAME(s[k].MPI_TAG, k, "tag");
      SAME(count_of(&s[k]), n, "count");
      CHECK(r[k] == MPI_REQUEST_NULL, "request %d", k);
    }
    MPI_Barrier(c);
  }
}

/* Exchanges in place, every second element. */
static void in_place(MPI_Comm c) {
  static int data[2 * N];
  int right = (me + 1) % np, left = (me + np - 1) % np;
  MPI_Request r;
  MPI_Status s;
  for (int round = 0; round < ROUNDS; round++) {
    int n = round % 2 ? N : 17, flag = 0, same = 0, gaps = 0;
    MPI_Datatype second;
    MPI_Type_vector(n, 1, 2, MPI_INT, &second);
    MPI_Type_commit(&second);
    for (int i = 0; i < 2 * N; i++) data[i] = me * 100000 + i;
    replace(data, 1, second, right, 50, left, 50, c, &r);
    MPI_Type_free(&second);
    while (!flag) MPI_Request_get_status(r, &flag, &s);
    SAME(count_of(&s), n, "count of Request_get_status");
    MPI_Wait(&r, &s);
    SAME(s.MPI_SOURCE, left, "source");
    for (int i = 0; i < n; i++) same += data[2 * i] == left * 100000 + 2 * i;
    for (int i = 0; i < N; i++) gaps += data[2 * i + 1] == me * 100000 + 2 * i + 1;
    SAME(same, n, "elements replaced");
    SAME(gaps, N, "elements between");
    line("round %d: %016llx", round, (unsigned long long)digest(0, data, sizeof data));
    MPI_Barrier(c);
  }
}

static void edges(MPI_Comm c) {
  int x = me, y = -7, first = me == 0, last = me == np - 1;
  MPI_Request r;
  MPI_Status s;
  both(&x, 1, MPI_INT, last ? MPI_PROC_NULL : me + 1, 3, &y, 1, MPI_INT, first ? MPI_PROC_NULL : me - 1, 3, c, &r);
  MPI_Wait(&r, &s);
  SAME(y, first ? -7 : me - 1, "shifted");
  if (!first) SAME(s.MPI_SOURCE, me - 1, "source"); /* from MPI_PROC_NULL MPICH 4.0 leaves it 0 */
  SAME(count_of(&s), first ? 0 : 1, "count");
  both(&x, 1, MPI_INT, me, 4, &y, 1, MPI_INT, me, 4, c, &r); /* to itself */
  MPI_Wait(&r, &s);
  SAME(y, me, "from oneself");
  /* A message that is longer than its buffer. */
  MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* MPICH 4.0 raises the error there natively */
  int big[4] = {me, me, me, me}, small[2] = {-1, -1}, class_ = -1;
  both(big, 4, MPI_INT, (me + 1) % np, 5, small, 2, MPI_INT, (me + np - 1) % np, 5, c, &r);
  MPI_Error_class(MPI_Wait(&r, &s), &class_);
  SAME(class_, MPI_ERR_TRUNCATE, "error class");
  MPI_Barrier(c);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  MPI_Comm c;
  MPI_Comm_dup(MPI_COMM_WORLD, &c);
  ring(c);
  in_place(c);
  edges(c);
  MPI_Comm_free(&c);
  return finish();
}
