/* Buffers in a device's memory are refused between clusters with MPI_ERR_BUFFER, and later calls
 * work. A driver is opened after MPI_Init. Before it there may be a driver of the same name without
 * a device, which DRIVER_BEFORE names.
 *
 *   device libcuda.so.1         or another fake driver (fakedriver.c); with a second argument
 * the error is fatal */
#include "check.h"
#include <dlfcn.h>

static int class_of(int rc) {
  int class_ = -1;
  MPI_Error_class(rc, &class_);
  return class_;
}
#define REFUSED(call, want) SAME(class_of(call), want, #call)

int main(int argc, char **argv) {
  start(&argc, &argv);
  int peer = me ? 0 : np - 1, x = me, y = -1;
  char kept[8] = "host";
  void *(*memory)(void) = NULL;
  MPI_Request r;
  MPI_Win w;
  MPI_Sendrecv(&x, 1, MPI_INT, me < np - 1 ? me + 1 : 0, 1, &y, 1, MPI_INT, me ? me - 1 : np - 1, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  const char *before = getenv("DRIVER_BEFORE");
  CHECK(!before || dlopen(before, RTLD_NOW), "%s", dlerror());
  void *lib = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
  if (lib) memory = (void *(*)(void))dlsym(lib, "fake_device_memory");
  CHECK(memory, "%s", dlerror());
  if (!memory) MPI_Abort(MPI_COMM_WORLD, 3);
  char *p = memory();
  MPI_Win_create(kept, sizeof kept, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w);
  if (argc <= 2) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Win_set_errhandler(w, MPI_ERRORS_RETURN);
  }
  if (me == 0 || me == np - 1) { /* the peer is in another cluster */
    REFUSED(MPI_Send(p, 8, MPI_CHAR, peer, 2, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    REFUSED(MPI_Isend(p + 100, 8, MPI_CHAR, peer, 2, MPI_COMM_WORLD, &r), MPI_ERR_BUFFER);
    REFUSED(MPI_Recv(p, 8, MPI_CHAR, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_ERR_BUFFER);
    REFUSED(MPI_Irecv(p, 8, MPI_CHAR, peer, 2, MPI_COMM_WORLD, &r), MPI_ERR_BUFFER);
  }
  REFUSED(MPI_Bcast(p, 8, MPI_CHAR, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
  REFUSED(MPI_Allreduce(p, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_BUFFER);
  REFUSED(MPI_Allgather(&x, 1, MPI_INT, p, 1, MPI_INT, MPI_COMM_WORLD), MPI_ERR_BUFFER);
  MPI_Win_fence(0, w);
  REFUSED(MPI_Put(p, 8, MPI_CHAR, peer, 0, 8, MPI_CHAR, w), MPI_ERR_BUFFER);
  REFUSED(MPI_Get(p, 8, MPI_CHAR, peer, 0, 8, MPI_CHAR, w), MPI_ERR_BUFFER);
  MPI_Win_fence(0, w);
  SAME(strcmp(kept, "host"), 0, "what the window has");
  MPI_Win_free(&w);
  MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  SAME(y, np * (np - 1) / 2, "a sum of what is the host's");
  line("done");
  return finish();
}
