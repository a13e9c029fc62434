/* Nonblocking duplications, and the threads that forbid them to start (comm/idup.c,
 * comm/meet.c). */
#include "comm/comm.h"
#include "test.h"

/* The flag that zcomm_meet has last passed to the other processes: 1 if it has seen a duplication
 * in its native part. */
static int seen;

static int note_flag(const void *mine, void *others, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                     MPI_Request *request) {
  (void)others, (void)n, (void)type, (void)op, (void)comm, (void)request;
  seen = *(const int *)mine;
  return MPI_ERR_OTHER; /* ends the meeting */
}

/* Does what another thread may do while this one starts the native part, which then fails. */
static int meet_meanwhile(MPI_Comm from, MPI_Comm *made, MPI_Request *request) {
  (void)made, (void)request;
  zcomm_meet(from);
  return MPI_ERR_OTHER;
}

TEST(a_thread_that_forbids_duplications_sees_one_that_starts) {
  FAKE_WORLD(0, 2, 1);
  real.Comm_idup = meet_meanwhile, real.Iallreduce = note_flag;
  MPI_Comm made;
  MPI_Request request;
  seen = -1;
  SAME(z_Comm_idup(MPI_COMM_WORLD, &made, &request), MPI_SUCCESS);
  z_Wait(&request, MPI_STATUS_IGNORE);
  SAME(seen, 1);
  zcomm_meet(z_whole->native);
  SAME(seen, 0); /* the duplication that has failed is not counted */
}
