/* MPI_Comm_free and MPI_Comm_disconnect with attributes and with operations in progress: callbacks
 * run inside, a callback that fails keeps the communicator, and operations that were started
 * complete as if the communicator still existed. */
#include "check.h"

enum { KEYS = 3, LONG = 300000 };

static MPI_Comm freed; /* the communicator that is being freed */
static int refusing;   /* the value whose callback fails, or 0 */
static int deleted[10], ndeleted;

static int gone(MPI_Comm comm, int key, void *value, void *extra) {
  (void)key, (void)extra;
  CHECK(comm == freed, "the communicator of the callback");
  int size = -1, sum = -1, rank = -1;
  MPI_Comm_size(comm, &size), MPI_Comm_rank(comm, &rank);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm); /* the communicator is still complete */
  SAME(sum, size * (size - 1) / 2, "sum in a callback");
  deleted[ndeleted++ % 10] = (int)(long)value;
  return refusing == (int)(long)value ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int keys[KEYS];
static void dress(MPI_Comm comm) {
  freed = comm, ndeleted = 0, refusing = 0;
  for (int i = 0; i < KEYS; i++) MPI_Comm_set_attr(comm, keys[i], (void *)(long)(i + 1));
}

typedef int ending(MPI_Comm *);

static int calls;
static void note(MPI_Comm *comm, int *code, ...) {
  int class_;
  MPI_Error_class(*code, &class_);
  CHECK(*comm == freed, "the communicator of the error");
  SAME(class_, MPI_ERR_OTHER, "class of the error");
  calls++;
}

/* Whether errors have the effects that MPI requires. Natively, and so in a job of one cluster, Open
 * MPI 4's MPI_Comm_disconnect hides the error, and MPICH 4 frees the communicator in both
 * functions. */
static int as_mpi_wants(ending *end) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  const char *layout = getenv("ZIPPER_LAYOUT");
  int n;
  MPI_Get_library_version(text, &n);
  return (layout && strchr(layout, ',')) || (end == MPI_Comm_free && strncmp(text, "MPICH", 5));
}

static void refused(ending *end) {
  MPI_Comm c, handle;
  MPI_Errhandler noting;
  if (!as_mpi_wants(end)) return;
  MPI_Comm_dup(MPI_COMM_WORLD, &c);
  MPI_Comm_create_errhandler(note, &noting);
  MPI_Comm_set_errhandler(c, noting);
  dress(c);
  refusing = 2, calls = 0, handle = c;
  int rc = end(&c), class_ = -1, flag, sum = -1;
  MPI_Error_class(rc, &class_);
  SAME(class_, MPI_ERR_OTHER, "class of what it returns");
  SAME(calls, 1, "calls of the error handler");
  CHECK(c == handle, "the handle is gone");
  SAME(ndeleted, 2, "callbacks until one fails");
  void *value;
  for (int i = 0; i < KEYS; i++) {
    MPI_Comm_get_attr(c, keys[i], &value, &flag);
    SAME(flag, i < 2, "attribute after a callback that fails");
  }
  MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, c);
  SAME(sum, np * (np - 1) / 2, "sum on a communicator that was kept");
  refusing = 0;
  SAME(end(&c), MPI_SUCCESS, "the second time");
  CHECK(c == MPI_COMM_NULL, "the handle is left");
  SAME(ndeleted, 4, "callbacks in all");
  MPI_Errhandler_free(&noting);
}

/* Checks that receives, sends and a collective outlive the communicator. */
static void pending(void) {
  MPI_Comm c;
  MPI_Request r[5];
  int next = (me + 1) % np, left = (me + np - 1) % np, small = -1, mine = 100 + me, sum = -1,
      inside = as_mpi_wants(MPI_Comm_free);
  char *out = malloc(LONG), *in = calloc(1, LONG);
  fill(out, LONG, me);
  MPI_Comm_dup(MPI_COMM_WORLD, &c);
  dress(c);
  MPI_Irecv(in, LONG, MPI_CHAR, left, 1, c, &r[0]);
  MPI_Irecv(&small, 1, MPI_INT, MPI_ANY_SOURCE, 2, c, &r[1]);
  MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, c, &r[2]);
  MPI_Isend(out, LONG, MPI_CHAR, next, 1, c, &r[3]);
  MPI_Isend(&mine, 1, MPI_INT, next, 2, c, &r[4]);
  MPI_Comm_free(&c);
  CHECK(c == MPI_COMM_NULL, "the handle is left");
  if (inside) SAME(ndeleted, KEYS, "callbacks inside MPI_Comm_free");
  MPI_Waitall(5, r, MPI_STATUSES_IGNORE);
  SAME(ndeleted, KEYS, "callbacks");
  for (int i = 0; i < KEYS; i++) SAME(deleted[i], KEYS - i, "order of the callbacks");
  CHECK(filled(in, LONG, left), "long message");
  SAME(small, 100 + left, "message from any");
  SAME(sum, 100 * np + np * (np - 1) / 2, "sum that outlives its communicator");
  free(out), free(in);
}

/* Cancels a receive without a sender after its communicator was freed. */
static void given_up(void) {
  MPI_Comm c;
  MPI_Request r[2];
  MPI_Status status;
  int x, y, flag = 0;
  MPI_Comm_dup(MPI_COMM_WORLD, &c);
  MPI_Irecv(&x, 1, MPI_INT, (me + 1) % np, 1, c, &r[0]);
  MPI_Recv_init(&y, 1, MPI_INT, (me + 1) % np, 1, c, &r[1]);
  MPI_Comm_free(&c);
  MPI_Cancel(&r[0]);
  MPI_Wait(&r[0], &status);
  MPI_Test_cancelled(&status, &flag);
  CHECK(flag, "cancelled");
  MPI_Request_free(&r[1]);
}

/* Disconnects a communicator that has inactive persistent requests, which are no communication that
 * MPI_Comm_disconnect waits for. Native MPICH 4 waits for them forever. */
static void resting(void) {
  MPI_Comm c;
  MPI_Request r[5];
  int n = 0, next = (me + 1) % np, left = (me + np - 1) % np, in[2] = {-1, -1}, version = MPI_VERSION, oldest = 0;
  if (!as_mpi_wants(MPI_Comm_free)) return;
  MPI_Allreduce(&version, &oldest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  MPI_Comm_dup(MPI_COMM_WORLD, &c);
  MPI_Send_init(&me, 1, MPI_INT, next, 1, c, &r[n++]);
  MPI_Recv_init(&in[0], 1, MPI_INT, left, 1, c, &r[n++]);
#if MPI_VERSION >= 4
  if (oldest >= 4) {
    MPI_Barrier_init(c, MPI_INFO_NULL, &r[n++]);
    MPI_Psend_init(&me, 1, 1, MPI_INT, next, 2, c, MPI_INFO_NULL, &r[n++]);
    MPI_Precv_init(&in[1], 1, 1, MPI_INT, left, 2, c, MPI_INFO_NULL, &r[n++]);
  }
#endif
  for (int round = 0; round < 2; round++) {
    in[0] = in[1] = -1;
    MPI_Startall(n, r);
#if MPI_VERSION >= 4
    if (oldest >= 4) MPI_Pready(0, r[3]);
#endif
    for (int i = 0; i < n; i++) MPI_Wait(&r[i], MPI_STATUS_IGNORE);
    SAME(in[0], left, "number of a persistent receive");
    if (oldest >= 4) SAME(in[1], left, "number of a partitioned receive");
  }
  SAME(MPI_Comm_disconnect(&c), MPI_SUCCESS, "disconnecting");
  CHECK(c == MPI_COMM_NULL, "the handle is left");
  for (int i = 0; i < n; i++) SAME(MPI_Request_free(&r[i]), MPI_SUCCESS, "freeing a request");
}

/* Checks attributes of keyvals that were freed before, or deleted before. */
static void orphans(void) {
  MPI_Comm c;
  int k;
  MPI_Comm_dup(MPI_COMM_WORLD, &c);
  dress(c);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, gone, &k, NULL);
  MPI_Comm_set_attr(c, k, (void *)9);
  MPI_Comm_free_keyval(&k);
  MPI_Comm_delete_attr(c, keys[1]);
  MPI_Comm_free(&c);
  SAME(ndeleted, 4, "callbacks");
  MPI_Comm_dup(MPI_COMM_WORLD, &c); /* no attribute of that keyval is left */
  MPI_Comm_free(&c);
  SAME(ndeleted, 4, "callbacks after another communicator");
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  for (int i = 0; i < KEYS; i++) MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, gone, &keys[i], NULL);
  refused(MPI_Comm_free);
  refused(MPI_Comm_disconnect);
  for (int i = 0; i < 20; i++) pending();
  given_up();
  resting();
  orphans();
  for (int i = 0; i < KEYS; i++) MPI_Comm_free_keyval(&keys[i]);
  line("done");
  return finish();
}
