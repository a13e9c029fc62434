/* MPI 4.1: MPI_Request_get_status_all, _any and _some, with receives from neighbours, persistent
 * requests and MPI_REQUEST_NULL in one array, and MPICH's MPIX_Request_is_complete. The requests
 * stay as they are until MPI_Waitall completes them. A library of MPI 3 prints the same by
 * MPI_Request_get_status, with which a program cannot tell an inactive request from a completed
 * one; here all active requests are receives, whose status has a source. */
#include "check.h"

#if MPI_VERSION * 10 + MPI_SUBVERSION >= 41
#define get_all MPI_Request_get_status_all
#define get_any MPI_Request_get_status_any
#define get_some MPI_Request_get_status_some
#else
static int get_some(int n, MPI_Request *r, int *count, int *indices, MPI_Status *statuses) {
  int active = 0;
  *count = 0;
  for (int i = 0, flag; i < n; i++) {
    MPI_Status s;
    MPI_Request_get_status(r[i], &flag, &s);
    active += !flag || s.MPI_SOURCE != MPI_ANY_SOURCE;
    if (!flag || s.MPI_SOURCE == MPI_ANY_SOURCE) continue;
    statuses[*count] = s;
    indices[(*count)++] = i;
  }
  if (!active) *count = MPI_UNDEFINED;
  return MPI_SUCCESS;
}
static int get_any(int n, MPI_Request *r, int *index, int *flag, MPI_Status *status) {
  int count, indices[8];
  MPI_Status statuses[8] = {{.MPI_SOURCE = MPI_ANY_SOURCE, .MPI_TAG = MPI_ANY_TAG}};
  get_some(n, r, &count, indices, statuses);
  *flag = count != 0;
  *index = count > 0 ? indices[0] : MPI_UNDEFINED;
  if (*flag) *status = statuses[0];
  return MPI_SUCCESS;
}
static int get_all(int n, MPI_Request *r, int *flag, MPI_Status *statuses) {
  *flag = 1;
  for (int i = 0; i < n && *flag; i++) MPI_Request_get_status(r[i], flag, MPI_STATUS_IGNORE);
  for (int i = 0; i < n && *flag; i++) MPI_Request_get_status(r[i], flag, &statuses[i]);
  return MPI_SUCCESS;
}
#endif

#if defined MPICH_NUMVERSION && MPICH_NUMVERSION >= 50000000
#define is_complete MPIX_Request_is_complete
#else
static int is_complete(MPI_Request r) {
  int flag;
  MPI_Request_get_status(r, &flag, MPI_STATUS_IGNORE);
  return flag;
}
#endif

/* The requests: receives FIRST and LATER from the left and AGAIN from the right, which is
 * persistent; INACTIVE has not been started. */
enum { FIRST, NOTHING, AGAIN, INACTIVE, LATER, ALL };
enum { N = 1000 };
static int left, right, out[N], in[ALL][N];
static MPI_Request r[ALL];
static MPI_Status st[ALL];

static void untouch(void) {
  for (int i = 0; i < ALL; i++) st[i].MPI_SOURCE = st[i].MPI_TAG = 777;
}

static void is_empty(const MPI_Status *s, const char *what) {
  int n;
  MPI_Get_count(s, MPI_INT, &n);
  CHECK(s->MPI_SOURCE == MPI_ANY_SOURCE && s->MPI_TAG == MPI_ANY_TAG && n == 0, "status of %s", what);
}

static void is_message(int i, const MPI_Status *s, const char *what) {
  int n;
  MPI_Get_count(s, MPI_INT, &n);
  SAME(s->MPI_SOURCE, i == AGAIN ? right : left, what);
  SAME(s->MPI_TAG, i, what);
  SAME(n, N - i, what);
}

/* Sends message i, as the peer's requests name it, to the rank that expects it from this one. */
static void send(int i, MPI_Comm c) { MPI_Ssend(out, N - i, MPI_INT, i == AGAIN ? left : right, i, c); }

static void nothing_yet(void) {
  int flag = 1, index = 7, count = 7, indices[ALL];
  untouch();
  SAME(get_all(ALL, r, &flag, st), MPI_SUCCESS, "get_status_all");
  SAME(flag, 0, "flag of all");
  SAME(get_any(ALL, r, &index, &flag, st), MPI_SUCCESS, "get_status_any");
  SAME(flag, 0, "flag of any");
  SAME(index, MPI_UNDEFINED, "index of any");
  SAME(get_some(ALL, r, &count, indices, st), MPI_SUCCESS, "get_status_some");
  SAME(count, 0, "count of some");
  CHECK(!is_complete(r[FIRST]) && !is_complete(r[AGAIN]), "complete before it is sent");
}

static void first_messages(void) {
  int flag = 0, index, count = 0, indices[ALL];
  while (!flag) get_any(ALL, r, &index, &flag, &st[0]);
  CHECK(index == FIRST || index == AGAIN, "index %d", index);
  is_message(index, &st[0], "any");
  while (count < 2) get_some(ALL, r, &count, indices, st);
  SAME(count, 2, "count of some");
  CHECK(indices[0] + indices[1] == FIRST + AGAIN, "indices %d and %d", indices[0], indices[1]);
  for (int k = 0; k < count; k++) is_message(indices[k], &st[k], "some");
  CHECK(is_complete(r[FIRST]) && is_complete(r[AGAIN]) && !is_complete(r[LATER]), "not complete");
  untouch();
  get_all(ALL, r, &flag, st);
  SAME(flag, 0, "flag of all before the last message");
  for (int i = 0; i < ALL; i++) SAME(st[i].MPI_SOURCE, 777, "a status that must not be written");
  CHECK(filled(in[FIRST], (N - FIRST) * sizeof(int), left) && filled(in[AGAIN], (N - AGAIN) * sizeof(int), right),
        "data");
}

static void all_messages(void) {
  for (int flag = 0; !flag;) get_all(ALL, r, &flag, st);
  for (int turn = 0; turn < 2; turn++) {
    for (int i = 0; i < ALL; i++) {
      if (i == NOTHING || i == INACTIVE) is_empty(&st[i], "a request without an operation");
      else is_message(i, &st[i], turn ? "Waitall" : "all");
    }
    CHECK(turn || r[FIRST] != MPI_REQUEST_NULL, "a request was freed");
    if (!turn) MPI_Waitall(ALL, r, st);
  }
  CHECK(filled(in[LATER], (N - LATER) * sizeof(int), left), "data of the last message");
}

static void nothing_active(void) {
  int flag = 0, index = 7, count = 7, indices[ALL];
  get_all(ALL, r, &flag, st);
  SAME(flag, 1, "flag of all without operations");
  for (int i = 0; i < ALL; i++) is_empty(&st[i], "all without operations");
  flag = 0;
  get_any(ALL, r, &index, &flag, st);
  SAME(flag, 1, "flag of any without operations");
  SAME(index, MPI_UNDEFINED, "index of any without operations");
  is_empty(&st[0], "any without operations");
  get_some(ALL, r, &count, indices, st);
  SAME(count, MPI_UNDEFINED, "count of some without operations");
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  MPI_Comm c;
  MPI_Comm_dup(MPI_COMM_WORLD, &c);
  left = (me + np - 1) % np, right = (me + 1) % np;
  fill(out, sizeof out, me);
  r[NOTHING] = MPI_REQUEST_NULL;
  MPI_Recv_init(in[AGAIN], N, MPI_INT, right, AGAIN, c, &r[AGAIN]);
  MPI_Recv_init(in[INACTIVE], N, MPI_INT, MPI_ANY_SOURCE, INACTIVE, c, &r[INACTIVE]);
  for (int round = 0; round < 3; round++) {
    memset(in, 0, sizeof in);
    MPI_Irecv(in[FIRST], N, MPI_INT, left, FIRST, c, &r[FIRST]);
    MPI_Irecv(in[LATER], N, MPI_INT, round ? left : MPI_ANY_SOURCE, LATER, c, &r[LATER]);
    MPI_Start(&r[AGAIN]);
    nothing_yet();
    MPI_Barrier(c);
    send(FIRST, c), send(AGAIN, c);
    first_messages();
    MPI_Barrier(c);
    send(LATER, c);
    all_messages();
    nothing_active();
    line("round %d: the messages of ranks %d and %d have arrived", round, left, right);
  }
  MPI_Request_free(&r[AGAIN]), MPI_Request_free(&r[INACTIVE]);
  MPI_Comm_free(&c);
  return finish();
}
