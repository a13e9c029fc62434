/* Errors that are returned, and the world continues afterwards: truncation in every form, wrong
 * arguments. Only classes are checked. The argument is the longest message in ints (default 100).
 * Open MPI 4.1 writes past the end of a buffer that is too short for a message from a rank of the
 * same host. So longer messages can be tested only if all partners are remote. */
#include "check.h"

static int class_of(int code) {
  int c = -1;
  MPI_Error_class(code, &c);
  return c;
}
#define CLASS(call, want)                                          \
  do {                                                             \
    int code_ = (call);                                            \
    CHECK(class_of(code_) == (want), "class %d", class_of(code_)); \
  } while (0)

static int calls;
static void count_call(MPI_Comm *comm, int *code, ...) {
  (void)comm, (void)code;
  calls++;
}

/* Checks that if the send of a pair does not start, here to itself, its receive is cancelled: later
 * messages are for later receives. */
static void half(void) {
  MPI_Datatype loose; /* not committed */
  MPI_Type_contiguous(1, MPI_INT, &loose);
  for (int shift = 1; shift < np; shift++)
    for (int wild = 0; wild < 2; wild++) {
      int to = (me + shift) % np, from = (me + np - shift) % np, never = -1, x[2] = {-1, -1}, y[2] = {me, me + 100};
      MPI_Request s[2];
      MPI_Status st[2];
      CLASS(MPI_Sendrecv(y, 1, loose, me, 60, &never, 1, MPI_INT, wild ? MPI_ANY_SOURCE : from, 60, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE),
            MPI_ERR_TYPE);
      MPI_Barrier(MPI_COMM_WORLD);
      for (int i = 0; i < 2; i++) MPI_Isend(&y[i], 1, MPI_INT, to, 60, MPI_COMM_WORLD, &s[i]);
      MPI_Recv(&x[0], 1, MPI_INT, from, 60, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      SAME(x[0], from, "message after a pair that failed");
      SAME(never, -1, "what the pair's receive got");
      if (x[0] == from) MPI_Recv(&x[1], 1, MPI_INT, from, 60, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Waitall(2, s, st);
      MPI_Barrier(MPI_COMM_WORLD);
    }
  MPI_Type_free(&loose);
}

/* Checks NULL results. Native libraries differ in the class, and Open MPI 4.1 crashes in some other
 * cases. */
#define ABSENT(call)                                                                       \
  do {                                                                                     \
    int code_ = (call), class_ = class_of(code_);                                          \
    CHECK(class_ == MPI_ERR_ARG || class_ == MPI_ERR_REQUEST, #call ": class %d", class_); \
  } while (0)
static void absent(void) {
  int x = 0, flag, other = (me + 1) % np;
  MPI_Request null = MPI_REQUEST_NULL;
  MPI_Status st[1];
  ABSENT(MPI_Comm_rank(MPI_COMM_WORLD, NULL));
  ABSENT(MPI_Comm_size(MPI_COMM_WORLD, NULL));
  ABSENT(MPI_Comm_dup(MPI_COMM_WORLD, NULL));
  ABSENT(MPI_Comm_split(MPI_COMM_WORLD, 0, 0, NULL));
  ABSENT(MPI_Isend(&x, 1, MPI_INT, other, 1, MPI_COMM_WORLD, NULL));
  ABSENT(MPI_Irecv(&x, 1, MPI_INT, other, 1, MPI_COMM_WORLD, NULL));
  ABSENT(MPI_Send_init(&x, 1, MPI_INT, other, 1, MPI_COMM_WORLD, NULL));
  ABSENT(MPI_Test(NULL, &flag, MPI_STATUS_IGNORE));
  ABSENT(MPI_Test(&null, NULL, MPI_STATUS_IGNORE));
  ABSENT(MPI_Wait(NULL, MPI_STATUS_IGNORE));
  ABSENT(MPI_Waitall(1, NULL, st));
  ABSENT(MPI_Waitany(1, &null, NULL, MPI_STATUS_IGNORE));
  CLASS(MPI_Waitall(0, NULL, st), MPI_SUCCESS);
  if (me == 0) { /* only the root notices it, and sends nothing */
    int class_ = class_of(MPI_Reduce(&x, &x, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD));
    CHECK(class_ == MPI_ERR_ARG || class_ == MPI_ERR_BUFFER, "one buffer of MPI_Reduce: class %d", class_);
  }
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  int limit = argc > 1 ? atoi(argv[1]) : 100;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  static const int lengths[] = {10, 90, 900, 200000}; /* in ints: eager and rendezvous */
  /* not to itself, where Open MPI does not always notice the error */
  for (int shift = 1; shift < np; shift++) {
    int to = (me + shift) % np, from = (me + np - shift) % np;
    for (int k = 0; k < 4; k++)
      for (int form = 0; form < 5; form++) {
        int n = lengths[k], room = n / 2, x = -1, y = me;
        int *out = malloc(n * sizeof *out), *in = malloc(n * sizeof *in);
        MPI_Request s[2], r[2];
        MPI_Status st[2];
        if (n > limit) {
          free(out), free(in);
          continue;
        }
        fill(out, n * sizeof *out, me);
        memset(in, 0x77, n * sizeof *in);
        if (form == 1 || form == 2) { /* posted before the message arrives */
          MPI_Irecv(in, room, MPI_INT, form == 2 ? MPI_ANY_SOURCE : from, 50 + 10 * from, MPI_COMM_WORLD, &r[0]);
          MPI_Irecv(&x, 1, MPI_INT, from, 51 + 10 * from, MPI_COMM_WORLD, &r[1]);
        }
        MPI_Isend(out, n, MPI_INT, to, 50 + 10 * me, MPI_COMM_WORLD, &s[0]);
        MPI_Isend(&y, 1, MPI_INT, to, 51 + 10 * me, MPI_COMM_WORLD, &s[1]);
        switch (form) {
        case 0:
          CLASS(MPI_Recv(in, room, MPI_INT, from, 50 + 10 * from, MPI_COMM_WORLD, &st[0]), MPI_ERR_TRUNCATE);
          break;
        case 1: CLASS(MPI_Wait(&r[0], &st[0]), MPI_ERR_TRUNCATE); break;
        case 2: {
          int code = MPI_Waitall(2, r, st);
          SAME(class_of(code), MPI_ERR_IN_STATUS, "class of Waitall");
          SAME(class_of(st[0].MPI_ERROR), MPI_ERR_TRUNCATE, "class in the status");
          int second = class_of(st[1].MPI_ERROR);
          CHECK(second == MPI_SUCCESS || second == MPI_ERR_PENDING, "class in the other status %d", second);
          if (second == MPI_ERR_PENDING) MPI_Wait(&r[1], MPI_STATUS_IGNORE);
          break;
        }
        case 3: {
          int probed;
          MPI_Probe(from, 50 + 10 * from, MPI_COMM_WORLD, &st[0]);
          MPI_Get_count(&st[0], MPI_INT, &probed);
          SAME(probed, n, "probed length");
          CLASS(MPI_Recv(in, room, MPI_INT, from, 50 + 10 * from, MPI_COMM_WORLD, &st[0]), MPI_ERR_TRUNCATE);
          break;
        }
        case 4: {
          MPI_Message m;
          MPI_Mprobe(from, 50 + 10 * from, MPI_COMM_WORLD, &m, &st[0]);
          /* the message can still be received */
          CLASS(MPI_Mrecv(NULL, n, MPI_INT, &m, &st[0]), MPI_ERR_BUFFER);
          CLASS(MPI_Mrecv(in, room, MPI_INT, &m, &st[0]), MPI_ERR_TRUNCATE);
          break;
        }
        }
        SAME(in[room], 0x77777777, "word past the end of a truncated message");
        SAME(in[n - 1], 0x77777777, "last word");
        if (form == 0 || form == 3 || form == 4)
          MPI_Recv(&x, 1, MPI_INT, from, 51 + 10 * from, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (form == 1) MPI_Wait(&r[1], MPI_STATUS_IGNORE);
        SAME(x, from, "message after the truncated one");
        MPI_Waitall(2, s, st);
        free(out), free(in);
      }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  half();
  absent();
  char text[MPI_MAX_ERROR_STRING];
  int x = 0, other = (me + 1) % np;
  MPI_Request r;
  CLASS(MPI_Send(&x, 1, MPI_INT, np, 1, MPI_COMM_WORLD), MPI_ERR_RANK);
  CLASS(MPI_Send(&x, 1, MPI_INT, -77, 1, MPI_COMM_WORLD), MPI_ERR_RANK);
  CLASS(MPI_Irecv(&x, 1, MPI_INT, np + 5, 1, MPI_COMM_WORLD, &r), MPI_ERR_RANK);
  CLASS(MPI_Send(&x, 1, MPI_INT, other, -77, MPI_COMM_WORLD), MPI_ERR_TAG);
  CLASS(MPI_Send(&x, -1, MPI_INT, other, 1, MPI_COMM_WORLD), MPI_ERR_COUNT);
  CLASS(MPI_Send(&x, 1, MPI_DATATYPE_NULL, other, 1, MPI_COMM_WORLD), MPI_ERR_TYPE);
  CLASS(MPI_Bcast(&x, 1, MPI_INT, np, MPI_COMM_WORLD), MPI_ERR_ROOT);
  CLASS(MPI_Isend(&x, 1, MPI_INT, other, -5, MPI_COMM_WORLD, &r), MPI_ERR_TAG);
  CLASS(MPI_Send(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD), MPI_SUCCESS);
  for (int vector = 0; vector < 2; vector++) { /* committed only later */
    int some[4] = {0};
    MPI_Datatype t;
    vector ? MPI_Type_vector(2, 1, 2, MPI_INT, &t) : MPI_Type_contiguous(2, MPI_INT, &t);
    for (int shift = 1; shift < np; shift++) {
      CLASS(MPI_Send(some, 1, t, (me + shift) % np, 1, MPI_COMM_WORLD), MPI_ERR_TYPE);
      CLASS(MPI_Irecv(some, 1, t, (me + shift) % np, 1, MPI_COMM_WORLD, &r), MPI_ERR_TYPE);
    }
    CLASS(MPI_Bcast(some, 1, t, 0, MPI_COMM_WORLD), MPI_ERR_TYPE);
    MPI_Type_commit(&t);
    some[0] = me == 0 ? 5 : 0;
    CLASS(MPI_Bcast(some, 1, t, 0, MPI_COMM_WORLD), MPI_SUCCESS);
    SAME(some[0], 5, "from a type that is committed now");
    MPI_Type_free(&t);
  }
  if (me != 0) { /* MPI_IN_PLACE is allowed at the root only; the other ranks do not call it */
    CHECK(MPI_Reduce(MPI_IN_PLACE, &x, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD) != MPI_SUCCESS, "reduce");
    CHECK(MPI_Gather(MPI_IN_PLACE, 1, MPI_INT, NULL, 0, MPI_INT, 0, MPI_COMM_WORLD) != MPI_SUCCESS, "gather");
    CHECK(MPI_Scatter(NULL, 0, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, 0, MPI_COMM_WORLD) != MPI_SUCCESS, "scatter");
  }
  for (int shift = 1; shift < np; shift++) { /* a NULL buffer */
    CLASS(MPI_Send(NULL, 1, MPI_INT, (me + shift) % np, 1, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    CLASS(MPI_Irecv(NULL, 1, MPI_INT, (me + shift) % np, 1, MPI_COMM_WORLD, &r), MPI_ERR_BUFFER);
  }
  /* an operator that is not defined for the type: the same error at all ranks, raised once, on no
   * other communicator (MPI_COMM_WORLD's would end the job) */
  MPI_Comm own;
  MPI_Errhandler handler;
  double a = 1, b = 2;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  MPI_Comm_create_errhandler(count_call, &handler);
  MPI_Comm_set_errhandler(own, handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  CLASS(MPI_Allreduce(&a, &b, 1, MPI_DOUBLE, MPI_BXOR, own), MPI_ERR_OP);
  CLASS(MPI_Reduce(&a, &b, 1, MPI_DOUBLE, MPI_BAND, 0, own), MPI_ERR_OP);
  CLASS(MPI_Scan(&a, &b, 1, MPI_DOUBLE, MPI_BOR, own), MPI_ERR_OP);
  SAME(calls, 3, "calls of the error handler");
  MPI_Datatype uncommitted;
  MPI_Type_vector(2, 1, 2, MPI_INT, &uncommitted);
  for (int shift = 1; shift < np; shift++)
    CLASS(MPI_Send(text, 1, uncommitted, (me + shift) % np, 1, own), MPI_ERR_TYPE);
  SAME(calls, 2 + np, "calls of the error handler");
  CLASS(MPI_Allreduce(&a, &b, 1, MPI_DOUBLE, MPI_SUM, own), MPI_SUCCESS);
  SAME(b, np, "the sum after that");
  MPI_Type_free(&uncommitted);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&own);
  int n = 0;
  MPI_Error_string(MPI_ERR_TRUNCATE, text, &n);
  CHECK(n > 0, "no text for MPI_ERR_TRUNCATE");
  line("done");
  return finish();
}
