/* Requests for the tests of completion, as the program gets them. This process is rank 3 of
 * clusters of 2 and 3: ranks 0 and 1 are remote, native ranks 0, 1, 2 are ranks 2, 3, 4. */
#ifndef ZIPPER_TEST_REQUESTS_H
#define ZIPPER_TEST_REQUESTS_H
#include "request/request.h"
#include "test.h"

static inline void world(void) { FAKE_WORLD(3, 2, 3); }

/* The content of a status that nothing has written to. */
static const MPI_Status untouched_status = {.MPI_SOURCE = 77, .MPI_TAG = 77, .MPI_ERROR = 77};

static inline void untouch(int n, MPI_Status *s) {
  for (int i = 0; i < n; i++) s[i] = untouched_status;
}

/* ---- functions that make requests ---- */

static int buffer[64]; /* the buffer of receives */

/* Starts a receive from a remote rank, which the engine does. */
static inline MPI_Request remote_receive(fake_op **op) {
  MPI_Request r = MPI_REQUEST_NULL;
  SAME(z_Irecv(buffer, 4, MPI_INT, 1, 5, MPI_COMM_WORLD, &r), MPI_SUCCESS);
  *op = fake_last_op();
  CHECK(zreq_find(r));
  return r;
}

/* Starts a native receive from a rank of this cluster, whose status has a native rank. */
static inline MPI_Request native_receive(void) {
  MPI_Request r = MPI_REQUEST_NULL;
  SAME(z_Irecv(buffer, 4, MPI_INT, 4, 5, MPI_COMM_WORLD, &r), MPI_SUCCESS);
  CHECK(!zreq_find(r) && zmap_get(&z_receives, z_key(r)));
  return r;
}

static inline MPI_Request persistent(void) {
  MPI_Request r = MPI_REQUEST_NULL;
  SAME(z_Recv_init(buffer, 4, MPI_INT, 1, 5, MPI_COMM_WORLD, &r), MPI_SUCCESS);
  return r;
}

static inline void arrives(fake_op *op) { fake_arrive(op, 1, 5, (int[]){1, 2}, 8); }

/* Checks the status that arrives() leaves. */
static inline void is_remote_receive(const MPI_Status *s) {
  SAME(s->MPI_SOURCE, 1);
  SAME(s->MPI_TAG, 5);
  SAME(fake_bytes(s), 8);
}

/* Checks that nothing is left once the program has waited for all operations. */
static inline void all_over(void) {
  SAME(fake_requests(), 0);
  SAME(fake_ops(), 0);
  SAME(zmap_count(&z_receives), 0);
  SAME(z_whole->refs, 1);
}
#endif
