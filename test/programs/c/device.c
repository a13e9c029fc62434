/* Memory of a device between clusters, beyond the programs that run with their buffers there
 * (on_device.h): memory that is used in place, dynamic windows, failures. A driver is opened after
 * MPI_Init. Before it there may be a driver of the same name without a device, which DRIVER_BEFORE
 * names.
 *
 *   device libcuda.so.1         or another fake driver (fakedriver.c)
 *   device libcuda.so.1 N       the N-th copy of a long message fails, which ends the job
 */
#include "check.h"
#include <dlfcn.h>

enum { LONG = 5000001 };
static void *(*address)(const void *), *(*managed)(size_t);
static int (*copies)(void), peer, ends;
static void (*fails)(int), (*dies)(int);

static int class_of(int rc) {
  int class_ = -1;
  MPI_Error_class(rc, &class_);
  return class_;
}

/* Checks that a call returns the driver's error. */
static void driver_failed(int rc, const char *call) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int n;
  SAME(class_of(rc), MPI_ERR_OTHER, call);
  MPI_Error_string(rc, text, &n);
  CHECK(strstr(text, "driver cannot copy the buffer"), "%s: %s", call, text);
}

/* Host and device memory at the two ends, in all combinations, with gaps that stay untouched. */
static void combinations(void) {
  MPI_Datatype every_third;
  MPI_Type_vector(1000, 1, 3, MPI_INT, &every_third);
  MPI_Type_commit(&every_third);
  for (int kind = 0; ends && kind < 4; kind++) {
    static int out[3000], in[3000];
    MPI_Status s;
    int n = 0, wrong = 0;
    for (int i = 0; i < 3000; i++) out[i] = 10000 * me + i, in[i] = -i;
    MPI_Sendrecv(kind & 1 ? address(out) : out, 1, every_third, peer, 3, kind & 2 ? address(in) : in, 1, every_third,
                 peer, 3, MPI_COMM_WORLD, &s);
    MPI_Get_count(&s, MPI_INT, &n);
    SAME(n, 1000, "elements received");
    for (int i = 0; i < 3000; i++) wrong += in[i] != (i % 3 ? -i : 10000 * peer + i);
    SAME(wrong, 0, "wrong elements");
  }
  MPI_Type_free(&every_third);
}

/* Data that processor and device can both read are sent without a copy by the driver. */
static void in_place(void) {
  int *x = managed(8), before = copies();
  x[0] = me;
  if (ends) MPI_Sendrecv(x, 1, MPI_INT, peer, 4, x + 1, 1, MPI_INT, peer, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (ends) SAME(x[1], peer, "managed memory");
  SAME(copies() - before, 0, "copies of managed memory");
}

/* A dynamic window with memory of the device and of the host. */
static void attached(void) {
  static int memory[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
  void *of[2] = {address(memory[0]), memory[1]};
  MPI_Aint mine[2] = {(MPI_Aint)of[0], (MPI_Aint)of[1]}, *all = malloc(2 * (size_t)np * sizeof *all);
  MPI_Win w;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &w);
  for (int i = 0; i < 2; i++) MPI_Win_attach(w, of[i], sizeof memory[i]);
  MPI_Allgather(mine, 2, MPI_AINT, all, 2, MPI_AINT, MPI_COMM_WORLD);
  for (int i = 0; i < 2; i++) {
    int got[4] = {0}, one = 1, sum = 0, target = (me + 1) % np;
    MPI_Win_fence(0, w);
    MPI_Get(address(got), 4, MPI_INT, target, all[2 * target + i], 4, MPI_INT, w);
    MPI_Win_fence(0, w);
    SAME(got[0] + got[1] + got[2] + got[3], i ? 26 : 10, "elements of the window");
    MPI_Accumulate(address(&one), 1, MPI_INT, 0, all[i], 1, MPI_INT, MPI_SUM, w);
    MPI_Win_fence(0, w);
    MPI_Get(&sum, 1, MPI_INT, 0, all[i], 1, MPI_INT, w);
    MPI_Win_fence(0, w);
    SAME(sum, (i ? 5 : 1) + np, "sum in the window");
  }
  for (int i = 0; i < 2; i++) MPI_Win_detach(w, of[i]);
  MPI_Win_free(&w);
  free(all);
}

/* Long messages are copied in pieces. A device that has failed before the call is found in the
 * first piece, and no message is sent. */
static void long_messages(void) {
  char *x = malloc(LONG);
  if (me == 0) {
    fails(1);
    driver_failed(MPI_Send(address(x), LONG, MPI_CHAR, peer, 6, MPI_COMM_WORLD), "MPI_Send of a long message");
    for (int i = 0; i < 2; i++) {
      fill(x, LONG, i);
      SAME(MPI_Send(address(x), LONG, MPI_CHAR, peer, 6, MPI_COMM_WORLD), 0, "the next long message");
    }
  } else if (ends) {
    fails(1);
    driver_failed(MPI_Recv(address(x), LONG, MPI_CHAR, peer, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv");
    MPI_Recv(address(x), LONG, MPI_CHAR, peer, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(filled(x, LONG, 1), "the long message after a failure");
  }
  free(x);
}

/* A copy that fails is an error of the call, and the next message arrives. */
static void failures_of_copies(void) {
  char x[8] = "message", y[8] = "";
  MPI_Request r;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (me == 0) {
    fails(1);
    driver_failed(MPI_Send(address(x), 8, MPI_CHAR, peer, 5, MPI_COMM_WORLD), "MPI_Send");
    fails(1);
    driver_failed(MPI_Isend(address(x), 8, MPI_CHAR, peer, 5, MPI_COMM_WORLD, &r), "MPI_Isend");
    fails(1);
    driver_failed(MPI_Sendrecv_replace(address(x), 8, MPI_CHAR, peer, 5, peer, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                  "MPI_Sendrecv_replace");
    for (int i = 0; i < 4; i++) SAME(MPI_Send(address(x), 8, MPI_CHAR, peer, 5, MPI_COMM_WORLD), 0, "the next");
  } else if (ends) {
    fails(1);
    driver_failed(MPI_Recv(address(y), 8, MPI_CHAR, peer, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv");
    fails(1);
    MPI_Irecv(address(y), 8, MPI_CHAR, peer, 5, MPI_COMM_WORLD, &r);
    driver_failed(MPI_Wait(&r, MPI_STATUS_IGNORE), "MPI_Wait");
    *y = 0;
    MPI_Recv(address(y), 8, MPI_CHAR, peer, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(address(y), 8, MPI_CHAR, peer, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    SAME(strcmp(y, "message"), 0, "the message after failures");
  }
  long_messages();
  if (me == np - 1) fails(1);
  int rc = MPI_Bcast(address(x), 8, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (me == np - 1) driver_failed(rc, "MPI_Bcast");
  fails(0);
}

/* After a device has failed for good its memory is an error, and the host's is used as before. */
static void dead_device(void) {
  int x = me, y = -1, class_;
  dies(700);
  if (ends) {
    MPI_Error_class(MPI_Send(address(&x), 1, MPI_INT, peer, 7, MPI_COMM_WORLD), &class_);
    SAME(class_, MPI_ERR_OTHER, "class of a send from a dead device");
    MPI_Sendrecv(&x, 1, MPI_INT, peer, 8, &y, 1, MPI_INT, peer, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    SAME(y, peer, "a message of the host");
  }
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  int x = me, y = -1;
  peer = me ? 0 : np - 1; /* in another cluster */
  ends = me == 0 || me == np - 1;
  MPI_Sendrecv(&x, 1, MPI_INT, me < np - 1 ? me + 1 : 0, 1, &y, 1, MPI_INT, me ? me - 1 : np - 1, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  const char *before = getenv("DRIVER_BEFORE");
  CHECK(!before || dlopen(before, RTLD_NOW), "%s", dlerror());
  void *lib = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
  if (lib) {
    address = (void *(*)(const void *))dlsym(lib, "fake_device_address");
    managed = (void *(*)(size_t))dlsym(lib, "fake_managed");
    copies = (int (*)(void))dlsym(lib, "fake_copies");
    fails = (void (*)(int))dlsym(lib, "fake_fails");
    dies = (void (*)(int))dlsym(lib, "fake_dies");
  }
  if (!address || !managed || !copies || !fails || !dies) {
    fprintf(stderr, "device: %s\n", dlerror());
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  address(NULL); /* real drivers take some time, too, until they have memory */
  if (argc > 2) {
    void *data = calloc(1, LONG);
    if (me == 0) fails(atoi(argv[2]));
    if (me == 0) MPI_Send(address(data), LONG, MPI_CHAR, peer, 2, MPI_COMM_WORLD);
    else if (ends) MPI_Recv(data, LONG, MPI_CHAR, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  combinations();
  in_place();
  attached();
  failures_of_copies();
  MPI_Allreduce(address(&x), address(&y), 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  SAME(y, np * (np - 1) / 2, "a sum");
  dead_device();
  line("done");
  return finish();
}
