/* Revocation of a communicator with persistent and partitioned requests: rank 0 revokes it while
 * all others wait in the call that the argument names. Every call returns and calls the error
 * handler that the communicator has then. MPI_Start fails afterwards. */
#include "lost.h"

#if MPI_VERSION >= 4
enum { PARTS = 3, EACH = 100, TAG = 5 };

static MPI_Comm comm;  /* the communicator that is revoked, or an intercommunicator of its halves */
static int next, prev; /* the neighbours in a ring of all ranks except rank 0 */
static int called;     /* the number of calls of `handle` */
static int out[PARTS * EACH], in[PARTS * EACH];
static MPI_Request r[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};

static int is(const char *name) { return !strcmp(phase, name); }

static void handle(MPI_Comm *on, int *code, ...) {
  called++;
  CHECK(*on == comm, "the handler gets another communicator");
  CLASS(*code, MPIX_ERR_REVOKED);
}

/* The error handler that the communicator has when the requests are made. */
static void unexpected(MPI_Comm *on, int *code, ...) {
  (void)on;
  failed(__FILE__, __LINE__, "the old error handler is called with %s", name_of(*code));
}

/* Makes the requests of the phase before the revocation. Returns their number. */
static int make(void) {
  if (is("create") || is("create_inter")) return 0;
  if (is("recv")) {
    CLASS(MPI_Recv_init(in, EACH, MPI_INT, MPI_ANY_SOURCE, TAG, comm, &r[0]), MPI_SUCCESS);
    return 1;
  }
  if (is("bcast")) {
    CLASS(MPI_Bcast_init(in, EACH, MPI_INT, 0, comm, MPI_INFO_NULL, &r[0]), MPI_SUCCESS);
    return 1;
  }
  if (is("barrier") || is("barrier_inter") || is("waitall")) {
    int n = is("waitall") ? 2 : 1;
    for (int i = 0; i < n; i++) CLASS(MPI_Barrier_init(comm, MPI_INFO_NULL, &r[i]), MPI_SUCCESS);
    return n;
  }
  if (me == 0) return 0;
  int n = 0;
  if (!is("psend"))
    CLASS(MPI_Precv_init(in, PARTS, EACH, MPI_INT, next, TAG, comm, MPI_INFO_NULL, &r[n++]), MPI_SUCCESS);
  if (!is("precv_alone"))
    CLASS(MPI_Psend_init(out, PARTS, EACH, MPI_INT, prev, TAG, comm, MPI_INFO_NULL, &r[n++]), MPI_SUCCESS);
  return n;
}

/* Waits in the call of the phase until the communicator is revoked. */
static void wait_in(int n) {
  MPI_Status s[2];
  if (is("create") || is("create_inter")) {
    CLASS(MPI_Barrier_init(comm, MPI_INFO_NULL, &r[0]), MPIX_ERR_REVOKED);
    SAME(called, 1, "calls of the handler");
    return;
  }
  CLASS(MPI_Startall(n, r), MPI_SUCCESS);
  if (is("precv")) MPI_Pready(1, r[1]);
  if (is("waitall")) {
    CLASS(MPI_Waitall(2, r, s), MPI_ERR_IN_STATUS);
    for (int i = 0; i < 2; i++) CLASS(s[i].MPI_ERROR, MPIX_ERR_REVOKED);
    SAME(called, 1, "calls of the handler");
    return;
  }
  for (int i = 0; i < n; i++) CLASS(MPI_Wait(&r[i], MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
  SAME(called, n, "calls of the handler");
}

int main(int argc, char **argv) {
  begin_lost(&argc, &argv);
  int flag = 0, probed;
  MPI_Comm all, half = MPI_COMM_NULL;
  MPI_Errhandler first, second;
  next = me == np - 1 ? 1 : me + 1, prev = me == 1 ? np - 1 : me - 1;
  CLASS(MPI_Comm_dup(MPI_COMM_WORLD, &all), MPI_SUCCESS);
  comm = all;
  if (strstr(phase, "inter")) {
    CLASS(MPI_Comm_split(all, me % 2, me, &half), MPI_SUCCESS);
    CLASS(MPI_Intercomm_create(half, 0, all, 1 - me % 2, TAG, &comm), MPI_SUCCESS);
  }
  MPI_Comm_create_errhandler(unexpected, &first), MPI_Comm_create_errhandler(handle, &second);
  MPI_Comm_set_errhandler(comm, first);
  int n = make();
  MPI_Comm_set_errhandler(comm, second);
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 0) {
    usleep(200000);
    CLASS(MPIX_Comm_revoke(comm), MPI_SUCCESS);
  } else {
    wait_in(n);
  }
  while (!flag) {
    CLASS(MPIX_Comm_is_revoked(comm, &flag), MPI_SUCCESS);
    MPI_Iprobe(0, TAG, MPI_COMM_SELF, &probed, MPI_STATUS_IGNORE);
  }
  int before = called;
  for (int i = 0; i < n; i++) CLASS(MPI_Start(&r[i]), MPIX_ERR_REVOKED);
  SAME(called, before + n, "calls of the handler");
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  if (n) CLASS(MPI_Startall(n, r), MPIX_ERR_REVOKED);
  SAME(called, before + n, "calls of the handler");
  MPI_Request late = MPI_REQUEST_NULL;
  CLASS(MPI_Barrier_init(comm, MPI_INFO_NULL, &late), MPIX_ERR_REVOKED);
  for (int i = 0; i < n; i++) CLASS(MPI_Request_free(&r[i]), MPI_SUCCESS);
  MPI_Errhandler_free(&first), MPI_Errhandler_free(&second);
  if (comm != all) CLASS(MPI_Comm_free(&comm), MPI_SUCCESS);
  if (half != MPI_COMM_NULL) CLASS(MPI_Comm_free(&half), MPI_SUCCESS);
  CLASS(MPI_Comm_free(&all), MPI_SUCCESS);
  return finish_lost(MPI_COMM_WORLD);
}
#else
int main(int argc, char **argv) {
  begin_lost(&argc, &argv);
  CHECK(0, "this library has neither persistent collectives nor partitioned communication");
  return finish_lost(MPI_COMM_WORLD);
}
#endif
