/* Generalized requests among receives, sends and collectives in every Wait and Test form; error
 * handlers of the program's for failed receives, alone and in arrays, while MPI_COMM_WORLD's stays
 * fatal; MPI_Pack_external between all ranks. */
#include "check.h"

static int queried, freed, cancelled;
static int query(void *extra, MPI_Status *status) {
  queried++;
  MPI_Status_set_elements(status, MPI_INT, *(int *)extra);
  MPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED, status->MPI_TAG = 1000 + *(int *)extra;
  return MPI_SUCCESS;
}
static int done(void *extra) {
  (void)extra, freed++;
  return MPI_SUCCESS;
}
static int cancel(void *extra, int complete) {
  (void)extra, (void)complete, cancelled++;
  return MPI_SUCCESS;
}

enum { G = 3, N = 500 };

/* Mixes messages of peers, a collective, and G generalized requests. */
static void mixed(int form, MPI_Comm comm) {
  int n = 0, extra[G], at[G], *in = malloc(np * N * sizeof *in), *out = malloc(N * sizeof *out), sum = -1, done_now = 0,
      some, flag, index;
  MPI_Request *r = malloc((2 * np + G + 1) * sizeof *r), copy[G];
  MPI_Status *st = malloc((2 * np + G + 1) * sizeof *st), one;
  int *which = malloc((2 * np + G + 1) * sizeof *which);
  queried = freed = 0;
  fill(out, N * sizeof *out, me + 10 * form);
  for (int p = 0; p < np; p++) {
    MPI_Irecv(in + p * N, N, MPI_INT, p, form, comm, &r[n++]);
    if (p < G) {
      extra[p] = p + 1;
      SAME(MPI_Grequest_start(query, done, cancel, &extra[p], &r[at[p] = n++]), MPI_SUCCESS, "Grequest_start");
    }
  }
  int g = np < G ? np : G;
  for (int i = 0; i < g; i++) copy[i] = r[at[i]];
  MPI_Iallreduce(&me, &sum, 1, MPI_INT, MPI_SUM, comm, &r[n++]);
  for (int p = 0; p < np; p++) MPI_Isend(out, N, MPI_INT, p, form, comm, &r[n++]);
  MPI_Testall(n, r, &flag, st);
  SAME(flag, 0, "all over before the generalized ones");
  switch (form) {
  case 0: /* all complete before the wait */
    for (int i = 0; i < g; i++) MPI_Grequest_complete(copy[i]);
    MPI_Waitall(n, r, st);
    for (int i = 0; i < g; i++) {
      int count;
      MPI_Get_count(&st[at[i]], MPI_INT, &count);
      SAME(count, extra[i], "count of a generalized request");
      SAME(st[at[i]].MPI_TAG, 1000 + extra[i], "its tag");
    }
    break;
  case 1: /* the others complete first */
    for (done_now = 0; done_now < n - g; done_now += some) {
      MPI_Waitsome(n, r, &some, which, st);
      for (int k = 0; k < some; k++)
        for (int i = 0; i < g; i++) CHECK(which[k] != at[i], "a generalized request that is not over");
    }
    for (int i = 0; i < g; i++) MPI_Grequest_complete(copy[i]);
    for (; done_now < n; done_now += some) MPI_Waitsome(n, r, &some, which, st);
    break;
  case 2: /* one completes in each turn */
    for (int turn = 0; done_now < n; turn++) {
      if (turn < g) MPI_Grequest_complete(copy[turn]);
      MPI_Testsome(n, r, &some, which, st);
      if (some != MPI_UNDEFINED) done_now += some;
    }
    break;
  case 3:
    for (int i = 0; i < g; i++) MPI_Grequest_complete(copy[i]);
    for (; done_now < n; done_now++) MPI_Waitany(n, r, &index, &one), CHECK(index != MPI_UNDEFINED, "Waitany");
    break;
  case 4:
    for (int i = 0; i < g; i++) MPI_Grequest_complete(copy[i]);
    for (flag = 0; !flag;) MPI_Testall(n, r, &flag, st);
    break;
  default:
    MPI_Cancel(&r[at[0]]);
    SAME(cancelled, 1, "calls of the cancel function");
    for (int i = 0; i < g; i++) MPI_Grequest_complete(copy[i]);
    for (; done_now < n; done_now += flag) MPI_Testany(n, r, &index, &flag, &one);
  }
  for (int i = 0; i < n; i++) CHECK(r[i] == MPI_REQUEST_NULL, "request %d of form %d", i, form);
  CHECK(queried >= g, "only %d queries", queried); /* MPI allows a library to query repeatedly */
  SAME(freed, g, "frees");
  SAME(sum, np * (np - 1) / 2, "sum");
  for (int p = 0; p < np; p++) CHECK(filled(in + p * N, N * sizeof *in, p + 10 * form), "from %d in form %d", p, form);
  line("form %d: %d requests", form, n);
  free(in), free(out), free(r), free(st), free(which);
}

static int calls, raised;
static MPI_Comm on;
static void handler(MPI_Comm *c, int *code, ...) { calls++, on = *c, MPI_Error_class(*code, &raised); }

static int class_of(int code) {
  int class_ = -1, length = 0;
  char text[MPI_MAX_ERROR_STRING];
  MPI_Error_class(code, &class_);
  SAME(MPI_Error_string(code, text, &length), MPI_SUCCESS, "Error_string");
  CHECK(length > 0, "no text for %d", code);
  return class_;
}

/* Receives messages that are too long, from every peer. */
static void failures_of(MPI_Comm comm) {
  int out[8] = {0}, in[4], right[8];
  MPI_Errhandler mine;
  MPI_Status st[2];
  MPI_Request r[2], s[3];
  MPI_Comm_create_errhandler(handler, &mine);
  MPI_Comm_set_errhandler(comm, mine);
  MPI_Errhandler_free(&mine);
#ifdef MPICH_VERSION /* MPICH 4.0 itself raises errors of Test and Waitall on MPI_COMM_WORLD */
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
#endif
  for (int shift = 0; shift < np; shift++) {
    int to = (me + shift) % np, from = (me + np - shift) % np;
    for (int i = 0; i < 3; i++) MPI_Isend(out, 8, MPI_INT, to, 50 + i, comm, &s[i]);
    calls = 0, on = MPI_COMM_NULL;
    SAME(class_of(MPI_Recv(in, 4, MPI_INT, from, 50, comm, &st[0])), MPI_ERR_TRUNCATE, "class of a truncated Recv");
    SAME(calls, 1, "calls of the handler");
    CHECK(on == comm, "the handler's communicator");
    MPI_Irecv(in, 4, MPI_INT, from, 51, comm, &r[0]);
    MPI_Irecv(right, 8, MPI_INT, from, 52, comm, &r[1]);
    calls = 0, on = MPI_COMM_NULL;
    SAME(class_of(MPI_Waitall(2, r, st)), MPI_ERR_IN_STATUS, "class of Waitall");
#ifndef MPICH_VERSION
    CHECK(calls >= 1 && on == comm, "the handler of the failed request's communicator: %d calls", calls);
    SAME(raised, MPI_ERR_TRUNCATE, "the class that the handler gets");
#endif
    SAME(class_of(st[0].MPI_ERROR), MPI_ERR_TRUNCATE, "class in the status");
    if (st[1].MPI_ERROR == MPI_ERR_PENDING)
      SAME(MPI_Wait(&r[1], MPI_STATUS_IGNORE), MPI_SUCCESS, "the other one, later");
    else SAME(st[1].MPI_ERROR, MPI_SUCCESS, "the other's status");
    MPI_Waitall(3, s, MPI_STATUSES_IGNORE);
    line("shift %d: refused", shift);
  }
}

static void external(void) {
  int ints[5] = {me, -1, 1 << 30, 0, 77}, got[5], n = 0, at = 0;
  double reals[3] = {1.5, -me, 1e300}, back[3];
  char *out, *in;
  MPI_Aint size, more, position = 0;
  MPI_Pack_external_size("external32", 5, MPI_INT, &size);
  MPI_Pack_external_size("external32", 3, MPI_DOUBLE, &more);
  SAME(size + more, 44, "bytes");
  out = calloc(1, size + more), in = calloc(1, size + more);
  MPI_Pack_external("external32", ints, 5, MPI_INT, out, size + more, &position);
  MPI_Pack_external("external32", reals, 3, MPI_DOUBLE, out, size + more, &position);
  SAME(position, 44, "position");
  n = (int)position;
  line("external32: %016llx", (unsigned long long)digest(0, out, n));
  MPI_Sendrecv(out, n, MPI_BYTE, (me + 1) % np, 60, in, n, MPI_BYTE, at = (me + np - 1) % np, 60, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  position = 0;
  MPI_Unpack_external("external32", in, n, &position, got, 5, MPI_INT);
  MPI_Unpack_external("external32", in, n, &position, back, 3, MPI_DOUBLE);
  SAME(got[0], at, "first int");
  SAME(got[2], 1 << 30, "third int");
  CHECK(back[0] == 1.5 && back[1] == -at && back[2] == 1e300, "reals");
  free(out), free(in);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int form = 0; form < 6; form++) mixed(form, comm);
  failures_of(comm);
  external();
  MPI_Comm_free(&comm);
  return finish();
}
