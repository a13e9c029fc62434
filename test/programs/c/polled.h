/* Blocking calls as loops of nonblocking ones, which yield in between: MMPI waits for native MPI in
 * this way. With it a program shows natively how its library handles such waits. */
#include <mpi.h>
#include <sched.h>

enum { TAG_NOBODY = 31999 };

static void polled_pause(void) {
  int flag;
  MPI_Iprobe(MPI_ANY_SOURCE, TAG_NOBODY, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  sched_yield();
}

#define POLL(call)                                   \
  do                                                 \
    for (int flag = 0; call, !flag;) polled_pause(); \
  while (0)

static int polled_Wait(MPI_Request *r, MPI_Status *st) {
  POLL(MPI_Test(r, &flag, st));
  return MPI_SUCCESS;
}

static int polled_Waitall(int n, MPI_Request *r, MPI_Status *st) {
  POLL(MPI_Testall(n, r, &flag, st));
  return MPI_SUCCESS;
}

static int polled_Probe(int from, int tag, MPI_Comm comm, MPI_Status *st) {
  POLL(MPI_Iprobe(from, tag, comm, &flag, st));
  return MPI_SUCCESS;
}

static int polled_Mprobe(int from, int tag, MPI_Comm comm, MPI_Message *m, MPI_Status *st) {
  POLL(MPI_Improbe(from, tag, comm, &flag, m, st));
  return MPI_SUCCESS;
}

static int polled_Recv(void *to, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *st) {
  MPI_Request r;
  MPI_Irecv(to, n, type, from, tag, comm, &r);
  return polled_Wait(&r, st);
}

static int polled_Mrecv(void *to, int n, MPI_Datatype type, MPI_Message *m, MPI_Status *st) {
  MPI_Request r;
  MPI_Imrecv(to, n, type, m, &r);
  return polled_Wait(&r, st);
}

static int polled_Allreduce(const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  MPI_Request r;
  MPI_Iallreduce(from, to, n, type, op, comm, &r);
  return polled_Wait(&r, MPI_STATUS_IGNORE);
}

#define MPI_Wait polled_Wait
#define MPI_Waitall polled_Waitall
#define MPI_Probe polled_Probe
#define MPI_Mprobe polled_Mprobe
#define MPI_Recv polled_Recv
#define MPI_Mrecv polled_Mrecv
#define MPI_Allreduce polled_Allreduce
