/* Wait and Test of all, any and some (request/all.c, some.c), with arrays that mix native requests,
 * the shim's, persistent ones and MPI_REQUEST_NULL. */
#include "mixed.h"

/* ---- all ---- */

TEST(waitall_completes_every_kind) {
  world();
  many *m = mixed();
  end(m);
  SAME(z_Waitall(MANY, m->r, m->s), MPI_SUCCESS);
  ended(m);
  free_mixed(m);
}

TEST(waitall_waits_for_the_last) {
  world();
  many *m = mixed();
  natives_end(m);
  z_busy = Z_BUSY;
  fake_at(100, (void (*)(void *))ours_end, m);
  SAME(z_Waitall(MANY, m->r, MPI_STATUSES_IGNORE), MPI_SUCCESS);
  CHECK(fake.now >= 100);
  CHECK(m->r[0] == MPI_REQUEST_NULL && m->r[2] == MPI_REQUEST_NULL && m->r[4] != MPI_REQUEST_NULL);
  free_mixed(m);
}

TEST(waitall_of_what_only_native_mpi_ends) {
  world();
  many *m = mixed();
  ours_end(m);
  fake_at(500, (void (*)(void *))natives_end, m);
  SAME(z_Waitall(MANY, m->r, m->s), MPI_SUCCESS);
  CHECK(fake.now >= 500);
  SAME(fake.calls.wait + fake.calls.waitall, 0);
  ended(m);
  free_mixed(m);
}

/* None of the requests needs to be polled, so they are waited for one after the other. */
TEST(waitall_of_the_engines_alone) {
  world();
  fake_op *op[3];
  MPI_Request r[4];
  MPI_Status s[4];
  for (int i = 0; i < 3; i++) r[i] = remote_receive(&op[i]);
  r[3] = persistent();
  for (int i = 0; i < 3; i++) fake_at(300 - 100 * i, (void (*)(void *))arrives, op[i]);
  z_busy = Z_BUSY;
  untouch(4, s);
  SAME(z_Waitall(4, r, s), MPI_SUCCESS);
  for (int i = 0; i < 3; i++) is_remote_receive(&s[i]);
  CHECK(fake_is_empty(&s[3]));
  SAME(fake.calls.testall + fake.calls.test, 0);
  z_Request_free(&r[3]);
  all_over();
}

TEST(waitall_with_failures_says_which) {
  world();
  many *m = mixed();
  fake_done(m->r[0], 1, 9, 3);
  fake_fails(m->r[3], MPI_ERR_TRUNCATE);
  fake_op_fails(m->remote, Z_ERR_LINK);
  arrives(m->again);
  SAME(z_Waitall(MANY, m->r, m->s), MPI_ERR_IN_STATUS);
  const int want[MANY] = {MPI_SUCCESS, MPI_SUCCESS, MPI_ERR_OTHER, MPI_ERR_TRUNCATE,
                          MPI_SUCCESS, MPI_SUCCESS, MPI_SUCCESS,   MPI_SUCCESS};
  for (int i = 0; i < MANY; i++) SAME(m->s[i].MPI_ERROR, want[i]);
  SAME(fake.raised, 1); /* on the shim's communicator; native MPI has raised the other error */
  SAME(fake.raised_code, MPI_ERR_OTHER);
  free_mixed(m);
}

TEST(waitall_with_failures_and_no_statuses) {
  world();
  many *m = mixed();
  natives_end(m);
  arrives(m->remote);
  fake_op_fails(m->again, Z_ERR_LINK);
  SAME(z_Waitall(MANY, m->r, MPI_STATUSES_IGNORE), MPI_ERR_IN_STATUS);
  free_mixed(m);
}

TEST(native_arrays_go_to_native_mpi_whole) {
  world();
  MPI_Request r[2] = {fake_request(), MPI_REQUEST_NULL};
  MPI_Status s[2];
  int flag, index, count, indices[2];
  SAME(z_Testall(2, r, &flag, s), MPI_SUCCESS);
  SAME(flag, 0);
  SAME(z_Testany(2, r, &index, &flag, s), MPI_SUCCESS);
  CHECK(!flag && index == MPI_UNDEFINED);
  SAME(z_Testsome(2, r, &count, indices, s), MPI_SUCCESS);
  SAME(count, 0);
  fake_done(r[0], 1, 9, 3);
  SAME(z_Waitall(2, r, s), MPI_SUCCESS);
  SAME(fake.calls.waitall, 1);
  SAME(z_Waitany(2, r, &index, s), MPI_SUCCESS);
  SAME(index, MPI_UNDEFINED);
  SAME(z_Waitsome(2, r, &count, indices, s), MPI_SUCCESS);
  SAME(count, MPI_UNDEFINED);
  CHECK(fake.calls.waitany == 1 && fake.calls.waitsome == 1);
}

TEST(no_requests_at_all) {
  world();
  fake_op *op;
  MPI_Request other = remote_receive(&op); /* a request of the shim that is in none of the arrays */
  int flag = 0, index = 0, count = 0;
  MPI_Status s = untouched_status;
  SAME(z_Waitall(0, NULL, NULL), MPI_SUCCESS);
  SAME(z_Testall(0, NULL, &flag, NULL), MPI_SUCCESS);
  SAME(flag, 1);
  flag = 0;
  SAME(z_Testany(0, NULL, &index, &flag, &s), MPI_SUCCESS);
  CHECK(flag && index == MPI_UNDEFINED && fake_is_empty(&s));
  SAME(z_Waitsome(0, NULL, &count, NULL, NULL), MPI_SUCCESS);
  SAME(count, MPI_UNDEFINED);
  arrives(op);
  z_Wait(&other, MPI_STATUS_IGNORE);
}

TEST(testall_is_all_or_nothing) {
  for (int threads = 0; threads < 2; threads++) {
    if (!threads) world();
    z_threads = threads;
    many *m = mixed();
    int flag = 1;
    natives_end(m);
    arrives(m->remote);
    SAME(z_Testall(MANY, m->r, &flag, m->s), MPI_SUCCESS);
    SAME(flag, 0);
    for (int i = 0; i < MANY; i++) SAME(m->s[i].MPI_SOURCE, 77);
    CHECK(m->r[0] != MPI_REQUEST_NULL && m->r[2] != MPI_REQUEST_NULL);
    arrives(m->again);
    SAME(z_Testall(MANY, m->r, &flag, m->s), MPI_SUCCESS);
    SAME(flag, 1);
    ended(m);
    free_mixed(m);
  }
}

TEST(testall_waits_for_natives_too) {
  for (int threads = 0; threads < 2; threads++) {
    if (!threads) world();
    z_threads = threads;
    many *m = mixed();
    int flag = 1;
    ours_end(m);
    fake_done(m->r[0], 1, 9, 3);
    SAME(z_Testall(MANY, m->r, &flag, m->s), MPI_SUCCESS);
    SAME(flag, 0);
    SAME(zmap_count(&z_receives), 1);
    fake_done(m->r[3], 2, 5, 8);
    SAME(z_Testall(MANY, m->r, &flag, m->s), MPI_SUCCESS);
    SAME(flag, 1);
    ended(m);
    free_mixed(m);
  }
}

TEST(testall_with_a_failure) {
  world();
  many *m = mixed();
  int flag = 0;
  natives_end(m);
  arrives(m->remote);
  fake_op_fails(m->again, Z_ERR_LINK);
  SAME(z_Testall(MANY, m->r, &flag, m->s), MPI_ERR_IN_STATUS);
  SAME(flag, 1);
  SAME(m->s[4].MPI_ERROR, MPI_ERR_OTHER);
  SAME(m->s[2].MPI_ERROR, MPI_SUCCESS);
  free_mixed(m);
}

/* ---- any ---- */

/* Takes completed requests one by one until none is active, and checks that each index comes
 * once. */
static void any_until_none(many *m, int wait) {
  int seen[MANY] = {0};
  for (int turn = 0;; turn++) {
    int index = -1, flag = 1;
    MPI_Status s = untouched_status;
    CHECK(turn < 6);
    SAME(wait ? z_Waitany(MANY, m->r, &index, &s) : z_Testany(MANY, m->r, &index, &flag, &s), MPI_SUCCESS);
    SAME(flag, 1);
    if (index == MPI_UNDEFINED) {
      CHECK(fake_is_empty(&s));
      break;
    }
    CHECK(index >= 0 && index < MANY);
    SAME(s.MPI_ERROR, 77);
    seen[index]++;
    m->s[index] = s;
  }
  for (int i = 0; i < MANY; i++) SAME(seen[i], i == 0 || (i >= 2 && i <= 4));
  m->s[1] = m->s[5] = m->s[6] = m->s[7] = (MPI_Status){.MPI_SOURCE = MPI_ANY_SOURCE, .MPI_TAG = MPI_ANY_TAG};
  ended(m);
}

TEST(testany_one_after_the_other) {
  world();
  many *m = mixed();
  int index = 0, flag = 1;
  SAME(z_Testany(MANY, m->r, &index, &flag, MPI_STATUS_IGNORE), MPI_SUCCESS);
  CHECK(!flag && index == MPI_UNDEFINED);
  end(m);
  any_until_none(m, 0);
  free_mixed(m);
}

TEST(waitany_one_after_the_other) {
  for (int threads = 0; threads < 2; threads++) {
    if (!threads) world();
    z_threads = threads;
    many *m = mixed();
    fake_at(fake.now + 100, end, m);
    any_until_none(m, 1);
    free_mixed(m);
  }
}

/* No native request is active, but requests of the shim are. */
TEST(any_and_some_of_the_engines_alone) {
  world();
  fake_op *op[2];
  MPI_Request r[3] = {remote_receive(&op[0]), MPI_REQUEST_NULL, remote_receive(&op[1])};
  int index = -1, flag = 1, count = -1, indices[3];
  SAME(z_Testany(3, r, &index, &flag, MPI_STATUS_IGNORE), MPI_SUCCESS);
  CHECK(!flag && index == MPI_UNDEFINED);
  SAME(z_Testsome(3, r, &count, indices, MPI_STATUSES_IGNORE), MPI_SUCCESS);
  SAME(count, 0);
  SAME(z_Testany(1, r, &index, &flag, MPI_STATUS_IGNORE), MPI_SUCCESS);
  SAME(flag, 0);
  z_busy = Z_BUSY;
  fake_at(fake.now + 50, (void (*)(void *))arrives, op[1]);
  SAME(z_Waitany(3, r, &index, MPI_STATUS_IGNORE), MPI_SUCCESS);
  SAME(index, 2);
  fake_at(fake.now + 50, (void (*)(void *))arrives, op[0]);
  SAME(z_Waitsome(3, r, &count, indices, MPI_STATUSES_IGNORE), MPI_SUCCESS);
  CHECK(count == 1 && indices[0] == 0);
  all_over();
}

TEST(any_reports_a_failed_request) {
  world();
  many *m = mixed();
  int index = -1, flag = 0;
  fake_op_fails(m->again, Z_ERR_LINK);
  SAME(z_Testany(MANY, m->r, &index, &flag, MPI_STATUS_IGNORE), MPI_ERR_OTHER);
  CHECK(flag && index == 4);
  SAME(fake.raised, 1);
  fake_fails(m->r[3], MPI_ERR_TRUNCATE);
  SAME(z_Waitany(MANY, m->r, &index, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
  SAME(index, 3);
  CHECK(m->r[3] == MPI_REQUEST_NULL);
  SAME(fake.raised, 1);
  fake_done(m->r[0], 1, 9, 3);
  arrives(m->remote);
  z_Waitall(MANY, m->r, MPI_STATUSES_IGNORE);
  free_mixed(m);
}

/* ---- some ---- */

TEST(testsome_gives_all_that_is_over) {
  for (int threads = 0; threads < 2; threads++) {
    if (!threads) world();
    z_threads = threads;
    many *m = mixed();
    int count = -1, indices[MANY];
    SAME(z_Testsome(MANY, m->r, &count, indices, m->s), MPI_SUCCESS);
    SAME(count, 0);
    arrives(m->remote);
    fake_done(m->r[3], 2, 5, 8);
    SAME(z_Testsome(MANY, m->r, &count, indices, m->s), MPI_SUCCESS);
    SAME(count, 2);
    for (int i = 0; i < 2; i++) {
      if (indices[i] == 2) is_remote_receive(&m->s[i]);
      else SAME(m->s[i].MPI_SOURCE, 4);
    }
    CHECK(indices[0] + indices[1] == 5 && indices[0] != indices[1]);
    fake_done(m->r[0], 1, 9, 3);
    arrives(m->again);
    SAME(z_Waitsome(MANY, m->r, &count, indices, MPI_STATUSES_IGNORE), MPI_SUCCESS);
    SAME(count, 2);
    SAME(z_Testsome(MANY, m->r, &count, indices, m->s), MPI_SUCCESS);
    SAME(count, MPI_UNDEFINED);
    SAME(z_Waitsome(MANY, m->r, &count, indices, m->s), MPI_SUCCESS);
    SAME(count, MPI_UNDEFINED);
    free_mixed(m);
  }
}

TEST(some_with_failures) {
  world();
  many *m = mixed();
  int count = -1, indices[MANY];
  fake_op_fails(m->remote, Z_ERR_LINK);
  arrives(m->again);
  fake_fails(m->r[3], MPI_ERR_TRUNCATE);
  fake_done(m->r[0], 1, 9, 3);
  SAME(z_Waitsome(MANY, m->r, &count, indices, m->s), MPI_ERR_IN_STATUS);
  SAME(count, 4);
  for (int i = 0; i < 4; i++)
    SAME(m->s[i].MPI_ERROR, indices[i] == 2 ? MPI_ERR_OTHER : indices[i] == 3 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
  free_mixed(m);
}

/* ---- memory ---- */

TEST(without_memory) {
  world();
  many *m = mixed();
  end(m);
  long before = fake_blocks();
  int flag = 0, index, count, indices[MANY];
  fake_no_memory(0);
  SAME(z_Waitall(MANY, m->r, m->s), MPI_ERR_NO_MEM);
  fake_no_memory(1);
  SAME(z_Waitall(MANY, m->r, m->s), MPI_ERR_NO_MEM);
  fake_no_memory(0);
  SAME(z_Testall(MANY, m->r, &flag, m->s), MPI_ERR_NO_MEM);
  fake_no_memory(0);
  z_Testany(MANY, m->r, &index, &flag, m->s);
  SAME(fake.raised_code, MPI_ERR_NO_MEM);
  fake_no_memory(0);
  z_Waitsome(MANY, m->r, &count, indices, m->s);
  fake_no_memory(-1);
  SAME(fake.raised, 5);
  SAME(fake_blocks(), before);
  SAME(z_Waitall(MANY, m->r, m->s), MPI_SUCCESS); /* the failed call has lost nothing */
  ended(m);
  free_mixed(m);
}
