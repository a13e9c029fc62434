/* MPI_Request_get_status of arrays (request/getstatus.c), where mpi.h declares it (MPI 4.1), and
 * MPIX_Request_is_complete. */
#include "core/error.h"
#include "mixed.h"

#ifdef Z_HAVE_Request_get_status_any
TEST(get_status_all_is_all_or_nothing) {
  world();
  many *m = mixed();
  int flag = 1;
  natives_end(m);
  arrives(m->remote);
  SAME(z_Request_get_status_all(MANY, m->r, &flag, m->s), MPI_SUCCESS);
  SAME(flag, 0);
  for (int i = 0; i < MANY; i++) SAME(m->s[i].MPI_SOURCE, 77);
  arrives(m->again);
  for (int turn = 0; turn < 2; turn++) {
    untouch(MANY, m->s);
    SAME(z_Request_get_status_all(MANY, m->r, &flag, turn ? MPI_STATUSES_IGNORE : m->s), MPI_SUCCESS);
    SAME(flag, 1);
    CHECK(m->r[0] != MPI_REQUEST_NULL && m->r[2] != MPI_REQUEST_NULL && m->r[3] != MPI_REQUEST_NULL);
  }
  SAME(z_Waitall(MANY, m->r, m->s), MPI_SUCCESS);
  ended(m);
  free_mixed(m);
}

/* The statuses are those that MPI_Waitall returns later. */
TEST(get_status_all_tells_what_waitall_tells) {
  world();
  many *m = mixed();
  MPI_Request before[MANY];
  int flag = 0;
  memcpy(before, m->r, sizeof before);
  end(m);
  SAME(z_Request_get_status_all(MANY, m->r, &flag, m->s), MPI_SUCCESS);
  CHECK(flag && !memcmp(before, m->r, sizeof before));
  MPI_Status kept[MANY];
  memcpy(kept, m->s, sizeof kept);
  SAME(z_Waitall(MANY, m->r, m->s), MPI_SUCCESS);
  memcpy(m->s, kept, sizeof kept);
  ended(m);
  free_mixed(m);
}

TEST(get_status_any_finds_each_kind) {
  for (int i = 0; i < MANY; i++) {
    if (!i) world();
    if (i == 1 || i > 4) continue;
    many *m = mixed();
    MPI_Status s = untouched_status;
    int index = -1, flag = 1;
    SAME(z_Request_get_status_any(MANY, m->r, &index, &flag, &s), MPI_SUCCESS);
    CHECK(!flag && index == MPI_UNDEFINED);
    if (i == 0) fake_done(m->r[0], 1, 9, 3);
    else if (i == 3) fake_done(m->r[3], 2, 5, 8);
    else arrives(i == 2 ? m->remote : m->again);
    for (int turn = 0; turn < 2; turn++) {
      SAME(z_Request_get_status_any(MANY, m->r, &index, &flag, &s), MPI_SUCCESS);
      CHECK(flag && index == i);
      SAME(s.MPI_SOURCE, i == 3 ? 4 : 1);
      SAME(s.MPI_ERROR, 77);
    }
    if (i) fake_done(m->r[0], 1, 9, 3);
    if (i != 3) fake_done(m->r[3], 2, 5, 8);
    if (i != 2) arrives(m->remote);
    if (i != 4) arrives(m->again);
    SAME(z_Waitall(MANY, m->r, MPI_STATUSES_IGNORE), MPI_SUCCESS);
    free_mixed(m);
  }
}

TEST(get_status_some_finds_all_that_is_over) {
  world();
  many *m = mixed();
  int count = -1, indices[MANY];
  SAME(z_Request_get_status_some(MANY, m->r, &count, indices, m->s), MPI_SUCCESS);
  SAME(count, 0);
  arrives(m->remote);
  fake_done(m->r[3], 2, 5, 8);
  for (int turn = 0; turn < 2; turn++) {
    SAME(z_Request_get_status_some(MANY, m->r, &count, indices, m->s), MPI_SUCCESS);
    SAME(count, 2);
    CHECK(indices[0] + indices[1] == 5 && indices[0] != indices[1]);
    for (int k = 0; k < 2; k++) {
      if (indices[k] == 2) is_remote_receive(&m->s[k]);
      else SAME(m->s[k].MPI_SOURCE, 4);
    }
  }
  fake_done(m->r[0], 1, 9, 3);
  arrives(m->again);
  SAME(z_Request_get_status_some(MANY, m->r, &count, indices, MPI_STATUSES_IGNORE), MPI_SUCCESS);
  SAME(count, 4);
  SAME(z_Waitall(MANY, m->r, MPI_STATUSES_IGNORE), MPI_SUCCESS);
  free_mixed(m);
}

TEST(get_status_without_operations) {
  world();
  MPI_Request r[3] = {persistent(), fake_persistent(), MPI_REQUEST_NULL};
  MPI_Status s[3];
  int flag = 0, index = 0, count = 0, indices[3];
  untouch(3, s);
  SAME(z_Request_get_status_all(3, r, &flag, s), MPI_SUCCESS);
  CHECK(flag && fake_is_empty(&s[0]) && fake_is_empty(&s[1]) && fake_is_empty(&s[2]));
  untouch(3, s);
  flag = 0;
  SAME(z_Request_get_status_any(3, r, &index, &flag, s), MPI_SUCCESS);
  CHECK(flag && index == MPI_UNDEFINED && fake_is_empty(&s[0]));
  SAME(z_Request_get_status_some(3, r, &count, indices, s), MPI_SUCCESS);
  SAME(count, MPI_UNDEFINED);
  for (int i = 0; i < 2; i++) z_Request_free(&r[i]);
  all_over();
}

/* A pending receive is an error if no request has completed, and stays active. */
TEST(get_status_of_a_pending_receive) {
  world();
  fake_op *op, *other;
  MPI_Request r[2] = {remote_receive(&op), remote_receive(&other)};
  MPI_Status s[2];
  int flag = 1, index = -1, count = -1, indices[2];
  fake.lost = 1;
  fake_op_fails(op, Z_ERR_PROC_FAILED_PENDING);
  SAME(z_Request_get_status_any(2, r, &index, &flag, s), Z_CLASS_PROC_FAILED_PENDING);
  CHECK(!flag && index == 0);
  SAME(z_Request_get_status_some(2, r, &count, indices, s), Z_CLASS_PROC_FAILED_PENDING);
  CHECK(count == 0);
  SAME(z_Request_get_status_all(2, r, &flag, s), Z_CLASS_PROC_FAILED_PENDING);
  SAME(flag, 0);
  arrives(other);
  SAME(z_Request_get_status_any(2, r, &index, &flag, s), MPI_SUCCESS);
  CHECK(flag && index == 1);
  SAME(z_Request_get_status_some(2, r, &count, indices, s), MPI_SUCCESS);
  CHECK(count == 1 && indices[0] == 1);
}
#endif

#ifdef Z_HAVE_X_Request_is_complete
TEST(is_complete_tells_what_get_status_tells) {
  world();
  many *m = mixed();
  for (int i = 0; i < MANY; i++) SAME(z_X_Request_is_complete(m->r[i]), i == 1 || i > 4);
  end(m);
  for (int i = 0; i < MANY; i++) SAME(z_X_Request_is_complete(m->r[i]), 1);
  SAME(z_Waitall(MANY, m->r, MPI_STATUSES_IGNORE), MPI_SUCCESS);
  free_mixed(m);
}
#endif
