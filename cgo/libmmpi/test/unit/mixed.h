/* An array of requests of every kind, for the tests of calls that complete or look at several. */
#ifndef ZIPPER_TEST_MIXED_H
#define ZIPPER_TEST_MIXED_H
#include "requests.h"

/* The indices of the array: 0 native, 1 null, 2 a remote receive, 3 a native receive, 4 persistent,
 * 5 inactive persistent, 6 inactive native, 7 null. */
enum { MANY = 8 };
typedef struct many {
  MPI_Request r[MANY];
  MPI_Status s[MANY];
  fake_op *remote, *again;
} many;

static inline many *mixed(void) {
  static many m;
  m.r[0] = fake_request();
  m.r[1] = m.r[7] = MPI_REQUEST_NULL;
  m.r[2] = remote_receive(&m.remote);
  m.r[3] = native_receive();
  m.r[4] = persistent();
  z_Start(&m.r[4]);
  m.again = fake_last_op();
  m.r[5] = persistent();
  m.r[6] = fake_persistent();
  untouch(MANY, m.s);
  return &m;
}

static inline void natives_end(many *m) {
  fake_done(m->r[0], 1, 9, 3);
  fake_done(m->r[3], 2, 5, 8);
}

static inline void ours_end(many *m) {
  arrives(m->remote);
  arrives(m->again);
}

static inline void end(void *m) {
  natives_end(m);
  ours_end(m);
}

/* Checks all statuses of a mixed array after completion. */
static inline void ended(const many *m) {
  SAME(m->s[0].MPI_SOURCE, 1); /* a native status of the program's needs no translation */
  SAME(m->s[0].MPI_TAG, 9);
  is_remote_receive(&m->s[2]);
  SAME(m->s[3].MPI_SOURCE, 4);
  is_remote_receive(&m->s[4]);
  for (int i = 0; i < MANY; i++) {
    int persistent = i >= 4 && i <= 6, nothing = i == 1 || i >= 5;
    CHECK((m->r[i] == MPI_REQUEST_NULL) == !persistent);
    if (nothing) CHECK(fake_is_empty(&m->s[i]));
  }
}

static inline void free_mixed(many *m) {
  for (int i = 4; i <= 6; i++) z_Request_free(&m->r[i]);
  all_over();
}
#endif
