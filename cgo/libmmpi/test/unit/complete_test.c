/* Wait and Test of one request, Request_free, Request_get_status and Cancel (request/single.c), for
 * native requests, the shim's, persistent ones and MPI_REQUEST_NULL. */
#include "requests.h"

/* ---- one ---- */

TEST(wait_returns_at_once_for_a_completed_request) {
  world();
  fake_op *op;
  MPI_Request r = remote_receive(&op);
  MPI_Status s = untouched_status;
  arrives(op);
  SAME(z_Wait(&r, &s), MPI_SUCCESS);
  CHECK(r == MPI_REQUEST_NULL);
  is_remote_receive(&s);
  SAME(s.MPI_ERROR, 77); /* calls for one request leave MPI_ERROR unchanged */
  CHECK(buffer[0] == 1 && buffer[1] == 2);
  all_over();
}

TEST(wait_serves_until_it_is_over) {
  world();
  fake_op *op;
  MPI_Request r = remote_receive(&op);
  fake_at(300, (void (*)(void *))arrives, op);
  z_busy = Z_BUSY;
  SAME(z_Wait(&r, MPI_STATUS_IGNORE), MPI_SUCCESS);
  CHECK(fake.now >= 300 && fake.now < 320);
  all_over();
}

TEST(test_completes_a_request) {
  world();
  fake_op *op;
  MPI_Request r = remote_receive(&op), before = r;
  MPI_Status s = untouched_status;
  int flag = 77;
  SAME(z_Test(&r, &flag, &s), MPI_SUCCESS);
  SAME(flag, 0);
  CHECK(r == before);
  SAME(s.MPI_SOURCE, 77);
  SAME(fake.calls.progress, 1); /* a program that only tests is served too */
  arrives(op);
  SAME(z_Test(&r, &flag, &s), MPI_SUCCESS);
  SAME(flag, 1);
  CHECK(r == MPI_REQUEST_NULL);
  is_remote_receive(&s);
  all_over();
}

TEST(a_test_may_find_what_its_own_progress_brings) {
  world();
  fake_op *op;
  MPI_Request r = remote_receive(&op);
  int flag = 0;
  fake_at(0.5, (void (*)(void *))arrives, op);
  SAME(z_Test(&r, &flag, MPI_STATUS_IGNORE), MPI_SUCCESS);
  SAME(flag, 1);
  all_over();
}

TEST(a_receive_inside_the_cluster_tells_the_rank_in_the_communicator) {
  world();
  MPI_Status s = untouched_status;
  int flag = 0;
  MPI_Request r = native_receive();
  fake_done(r, 2, 5, 8);
  SAME(z_Test(&r, &flag, &s), MPI_SUCCESS);
  CHECK(flag && r == MPI_REQUEST_NULL);
  SAME(s.MPI_SOURCE, 4);
  r = native_receive();
  fake_done(r, 0, 5, 8);
  SAME(z_Wait(&r, &s), MPI_SUCCESS);
  SAME(s.MPI_SOURCE, 2);
  SAME(fake.calls.wait, 1); /* nothing else is in progress: a native blocking call */
  all_over();
}

/* The request's entry stays until a test has completed it; with MPI_THREAD_MULTIPLE it is removed
 * during the test, and put back. */
TEST(a_test_that_finds_nothing_keeps_the_translation) {
  for (int threads = 0; threads < 2; threads++) {
    if (!threads) world();
    z_threads = threads;
    MPI_Request r = native_receive();
    MPI_Status s = untouched_status;
    int flag = 1;
    SAME(z_Test(&r, &flag, &s), MPI_SUCCESS);
    SAME(flag, 0);
    fake_done(r, 2, 5, 8);
    SAME(z_Test(&r, &flag, &s), MPI_SUCCESS);
    SAME(s.MPI_SOURCE, 4);
    all_over();
  }
}

TEST(null_requests_are_complete) {
  world();
  MPI_Request r = MPI_REQUEST_NULL;
  MPI_Status s = untouched_status;
  int flag = 0;
  SAME(z_Wait(&r, &s), MPI_SUCCESS);
  CHECK(fake_is_empty(&s));
  s = untouched_status;
  SAME(z_Test(&r, &flag, &s), MPI_SUCCESS);
  CHECK(flag && fake_is_empty(&s));
}

TEST(failed_request_raises_its_error) {
  world();
  fake_op *op;
  MPI_Request r = remote_receive(&op);
  fake_op_fails(op, Z_ERR_LINK);
  SAME(z_Wait(&r, MPI_STATUS_IGNORE), MPI_ERR_OTHER);
  CHECK(r == MPI_REQUEST_NULL);
  SAME(fake.raised, 1);
  CHECK(fake.raised_on == MPI_COMM_WORLD);
  r = remote_receive(&op);
  fake_arrive(op, 1, 5, (int[]){1, 2, 3, 4, 5}, 20); /* the buffer has room for four */
  MPI_Status s = untouched_status;
  int flag = 0;
  SAME(z_Test(&r, &flag, &s), MPI_ERR_TRUNCATE);
  CHECK(flag && r == MPI_REQUEST_NULL);
  SAME(fake.raised, 2);
  all_over();
}

TEST(a_native_one_that_fails_has_been_raised_natively) {
  world();
  MPI_Request r = native_receive();
  int flag = 0;
  fake_fails(r, MPI_ERR_TRUNCATE);
  SAME(z_Test(&r, &flag, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
  SAME(fake.raised, 0);
  all_over();
}

/* ---- persistent ---- */

TEST(persistent_request_restarts) {
  world();
  MPI_Request r = persistent(), before = r;
  MPI_Status s = untouched_status;
  int flag = 0;
  SAME(z_Wait(&r, &s), MPI_SUCCESS); /* the request is inactive */
  CHECK(fake_is_empty(&s) && r == before);
  for (int round = 0; round < 3; round++) {
    SAME(z_Start(&r), MPI_SUCCESS);
    SAME(z_Test(&r, &flag, &s), MPI_SUCCESS);
    SAME(flag, 0);
    arrives(fake_last_op());
    SAME(z_Wait(&r, &s), MPI_SUCCESS);
    is_remote_receive(&s);
    CHECK(r == before);
    SAME(z_Test(&r, &flag, &s), MPI_SUCCESS);
    CHECK(flag && fake_is_empty(&s));
  }
  SAME(z_Request_free(&r), MPI_SUCCESS);
  CHECK(r == MPI_REQUEST_NULL);
  all_over();
}

TEST(start_rejects_active_and_ordinary_requests) {
  world();
  MPI_Request r = persistent();
  fake_op *op;
  SAME(z_Start(&r), MPI_SUCCESS);
  op = fake_last_op();
  SAME(z_Start(&r), MPI_ERR_REQUEST);
  arrives(op);
  z_Wait(&r, MPI_STATUS_IGNORE);
  MPI_Request once = remote_receive(&op);
  SAME(z_Start(&once), MPI_ERR_REQUEST);
  arrives(op);
  z_Wait(&once, MPI_STATUS_IGNORE);
  fake_refuse(Z_ERR_LINK);
  SAME(z_Start(&r), MPI_ERR_OTHER);
  int flag = 0;
  z_Test(&r, &flag, MPI_STATUS_IGNORE);
  SAME(flag, 1); /* the request has stayed inactive */
  z_Request_free(&r);
  all_over();
}

TEST(active_persistent_request_can_be_freed) {
  world();
  MPI_Request r = persistent();
  z_Start(&r);
  fake_op *op = fake_last_op();
  SAME(z_Request_free(&r), MPI_SUCCESS);
  SAME(fake_ops(), 1);
  arrives(op);
  zreq_finish_released();
  SAME(buffer[1], 2);
  all_over();
}

/* ---- other functions ---- */

TEST(get_status_does_not_complete_a_request) {
  world();
  fake_op *op;
  MPI_Request remote = remote_receive(&op), native = native_receive(), again = persistent(), null = MPI_REQUEST_NULL;
  MPI_Status s = untouched_status;
  int flag = 1;
  SAME(z_Request_get_status(remote, &flag, &s), MPI_SUCCESS);
  SAME(flag, 0);
  arrives(op);
  fake_done(native, 2, 5, 8);
  for (int i = 0; i < 2; i++) {
    SAME(z_Request_get_status(remote, &flag, &s), MPI_SUCCESS);
    SAME(flag, 1);
    is_remote_receive(&s);
    SAME(z_Request_get_status(native, &flag, &s), MPI_SUCCESS);
    SAME(s.MPI_SOURCE, 4);
  }
  SAME(z_Request_get_status(again, &flag, &s), MPI_SUCCESS);
  CHECK(flag && fake_is_empty(&s));
  SAME(z_Request_get_status(null, &flag, &s), MPI_SUCCESS);
  CHECK(flag && fake_is_empty(&s));
  SAME(z_Wait(&remote, &s), MPI_SUCCESS);
  is_remote_receive(&s);
  SAME(z_Wait(&native, &s), MPI_SUCCESS);
  SAME(s.MPI_SOURCE, 4);
  z_Request_free(&again);
  all_over();
}

/* The program may write to its buffer once it has seen that the message has arrived. */
TEST(data_are_put_into_the_buffer_once) {
  world();
  MPI_Datatype sparse = fake_type(MPI_COMBINER_VECTOR, FAKE_INTS(2, 1, 2), FAKE_NONE, FAKE_TYPES(MPI_INT));
  MPI_Request r = MPI_REQUEST_NULL;
  int flag = 0, data[3] = {0, 0, 0};
  SAME(z_Irecv(data, 1, sparse, 1, 5, MPI_COMM_WORLD, &r), MPI_SUCCESS);
  fake_op *op = fake_last_op();
  fake_type_free(sparse); /* the request retains the type */
  arrives(op);
  SAME(z_Request_get_status(r, &flag, MPI_STATUS_IGNORE), MPI_SUCCESS);
  CHECK(flag && data[0] == 1 && data[1] == 0 && data[2] == 2);
  data[0] = 7;
  SAME(z_Wait(&r, MPI_STATUS_IGNORE), MPI_SUCCESS);
  SAME(data[0], 7);
  SAME(fake_types(), 0);
  all_over();
}

TEST(freed_requests_end_by_themselves) {
  world();
  fake_op *op;
  MPI_Request remote = remote_receive(&op), native = native_receive();
  SAME(z_Request_free(&remote), MPI_SUCCESS);
  SAME(z_Request_free(&native), MPI_SUCCESS);
  CHECK(remote == MPI_REQUEST_NULL && native == MPI_REQUEST_NULL);
  SAME(z_whole->refs, 2); /* the first request has not completed */
  arrives(op);
  z_poll();
  all_over();
}

TEST(status_reports_cancellation) {
  world();
  fake_op *op;
  MPI_Request r = remote_receive(&op), again = persistent();
  MPI_Status s;
  int flag = 0;
  SAME(z_Cancel(&r), MPI_SUCCESS);
  SAME(op->cancelled, 1);
  op->cell->cancelled = 1;
  fake_sent(op);
  SAME(z_Wait(&r, &s), MPI_SUCCESS);
  z_ignore(real.Test_cancelled(&s, &flag));
  SAME(flag, 1);
  SAME(z_Cancel(&again), MPI_SUCCESS); /* no operation is in progress */
  z_Request_free(&again);
  MPI_Request native = fake_request();
  SAME(z_Cancel(&native), MPI_SUCCESS);
  SAME(fake.calls.cancel, 1);
  fake_cancelled(native);
  z_Wait(&native, &s);
  all_over();
}

/* Placeholders are made once and reused. */
TEST(request_objects_are_reused) {
  world();
  fake_op *op;
  MPI_Request first = remote_receive(&op), r = first;
  arrives(op);
  z_Wait(&r, MPI_STATUS_IGNORE);
  for (int i = 0; i < 10; i++) {
    r = remote_receive(&op);
    CHECK(r == first);
    arrives(op);
    z_Wait(&r, MPI_STATUS_IGNORE);
  }
  SAME(fake_placeholders(), 1);
  zreq_stop();
  SAME(fake_placeholders(), 0);
}
