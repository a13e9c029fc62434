/* Point to point: the way of a message and its arguments (p2p/p2p.c). This process is
 * rank 3 of clusters of 2 and 3: ranks 0 and 1 are remote, ranks 2, 3, 4 are native ranks 0, 1,
 * 2. */
#include "p2p/p2p.h"
#include "requests.h"

static int data[8] = {1, 2, 3, 4, 5, 6, 7, 8};

static void sent_at(double us) { fake_at(fake.now + us, (void (*)(void *))fake_sent, fake_last_op()); }

/* isend is the fake's ze_isend. isend_and_end stands in front of it, and completes each send 30 us
 * later, so that blocking sends return. */
static int (*isend)(int32_t, int32_t, const void *, int64_t, int32_t, int32_t, int32_t, z_cell *);
static int isend_and_end(int32_t comm, int32_t kind, const void *buf, int64_t n, int32_t to, int32_t tag, int32_t mode,
                         z_cell *cell) {
  int rc = isend(comm, kind, buf, n, to, tag, mode, cell);
  if (!rc) sent_at(30);
  return rc;
}

static void begin(void) {
  world();
  isend = z_eng.ze_isend;
  z_eng.ze_isend = isend_and_end;
}

static MPI_Datatype every_other(void) {
  return fake_type(MPI_COMBINER_VECTOR, FAKE_INTS(2, 1, 2), FAKE_NONE, FAKE_TYPES(MPI_INT));
}

/* ---- the way of a message ---- */

TEST(local_messages_are_native) {
  begin();
  SAME(z_Send(data, 2, MPI_INT, 4, 9, MPI_COMM_WORLD), MPI_SUCCESS);
  CHECK(fake.calls.send == 1 && fake.peer == 2 && fake.tag == 9);
  z_busy = Z_BUSY; /* the call may not block then */
  MPI_Request r;
  SAME(z_Isend(data, 2, MPI_INT, 2, 8, MPI_COMM_WORLD, &r), MPI_SUCCESS);
  CHECK(fake.calls.isend == 1 && fake.peer == 0 && fake.tag == 8 && !zreq_find(r));
  SAME(fake_ops(), 0);
}

static void last_is_done(void *arg) { (void)arg, fake_done(fake_last_request(), 0, 0, 0); }

TEST(a_native_send_does_not_block_while_the_engine_is_busy) {
  begin();
  z_busy = Z_BUSY;
  fake_at(50, last_is_done, NULL);
  SAME(z_Send(data, 2, MPI_INT, 4, 9, MPI_COMM_WORLD), MPI_SUCCESS);
  CHECK(fake.calls.send == 0 && fake.calls.isend == 1 && fake.calls.progress > 5);
  SAME(fake_requests(), 0);
}

TEST(remote_messages_use_the_engine) {
  begin();
  SAME(z_Send(data, 2, MPI_INT, 1, 9, MPI_COMM_WORLD), MPI_SUCCESS);
  const fake_op *op = fake_last_op();
  CHECK(op->data == data && op->bytes == 8 && op->peer == 1 && op->tag == 9 && op->mode == Z_STANDARD);
  SAME(z_Ssend(data, 2, MPI_INT, 1, 9, MPI_COMM_WORLD), MPI_SUCCESS);
  SAME(fake_last_op()->mode, Z_SYNCHRONOUS);
  SAME(z_Rsend(data, 2, MPI_INT, 1, 9, MPI_COMM_WORLD), MPI_SUCCESS);
  SAME(fake_last_op()->mode, Z_STANDARD);
  CHECK(fake.calls.isend == 0 && fake.calls.send == 0);
  all_over();
}

TEST(what_has_gaps_is_packed) {
  begin();
  long before = fake_blocks();
  MPI_Datatype type = every_other();
  ztype_get(type);
  SAME(z_Send(data, 1, type, 1, 9, MPI_COMM_WORLD), MPI_SUCCESS);
  CHECK(fake_last_op()->bytes == 8 && fake_last_op()->data != data);
  SAME(fake.calls.pack, 1);
  fake_type_free(type);
  CHECK(fake_blocks() <= before + 2); /* the request and the table of types stay, the packed copy is freed */
}

TEST(receives_go_where_their_message_can_come_from) {
  world();
  MPI_Request r;
  SAME(z_Irecv(buffer, 2, MPI_INT, 2, MPI_ANY_TAG, MPI_COMM_WORLD, &r), MPI_SUCCESS);
  CHECK(fake.calls.irecv == 1 && fake.peer == 0 && fake.tag == MPI_ANY_TAG);
  SAME(z_Irecv(buffer, 2, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &r), MPI_SUCCESS);
  SAME(fake.calls.irecv, 2);
  SAME(z_Irecv(buffer, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &r), MPI_SUCCESS);
  CHECK(fake_last_op()->peer == Z_ANY_SOURCE && fake_last_op()->tag == Z_ANY_TAG);
  /* an earlier wildcard may match the same message, but the engine is idle, so the shim does not
   * ask */
  fake.shadowed = 1;
  SAME(z_Irecv(buffer, 2, MPI_INT, 2, 7, MPI_COMM_WORLD, &r), MPI_SUCCESS);
  SAME(fake.calls.irecv, 3);
  z_busy = Z_BUSY;
  SAME(z_Irecv(buffer, 2, MPI_INT, 2, 7, MPI_COMM_WORLD, &r), MPI_SUCCESS);
  CHECK(fake.calls.irecv == 3 && fake_last_op()->peer == 2);
  fake.shadowed = 0;
  SAME(z_Irecv(buffer, 2, MPI_INT, 2, 7, MPI_COMM_WORLD, &r), MPI_SUCCESS);
  SAME(fake.calls.irecv, 4);
}

/* ---- arguments ---- */

TEST(wrong_arguments) {
  begin();
  MPI_Request r = MPI_REQUEST_NULL;
  SAME(z_Send(data, -1, MPI_INT, 1, 0, MPI_COMM_WORLD), MPI_ERR_COUNT);
  SAME(z_Send(data, 1, MPI_DATATYPE_NULL, 1, 0, MPI_COMM_WORLD), MPI_ERR_TYPE);
  SAME(z_Send(data, 1, MPI_INT, 1, -1, MPI_COMM_WORLD), MPI_ERR_TAG);
  SAME(z_Send(data, 1, MPI_INT, 1, MPI_ANY_TAG, MPI_COMM_WORLD), MPI_ERR_TAG);
  SAME(z_Send(data, 1, MPI_INT, 1, 32768, MPI_COMM_WORLD), MPI_ERR_TAG);
  SAME(z_Send(data, 1, MPI_INT, 5, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
  SAME(z_Send(data, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
  SAME(z_Send(NULL, 1, MPI_INT, 1, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
  SAME(z_Irecv(data, 1, MPI_INT, 5, 0, MPI_COMM_WORLD, &r), MPI_ERR_RANK);
  SAME(z_Irecv(NULL, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &r), MPI_ERR_BUFFER);
  MPI_Datatype type = every_other();
  fake_uncommit(type);
  SAME(z_Isend(data, 1, type, 1, 0, MPI_COMM_WORLD, &r), MPI_ERR_TYPE);
  SAME(z_Irecv(data, 1, type, 1, 0, MPI_COMM_WORLD, &r), MPI_ERR_TYPE);
  SAME(fake.raised, 12);
  CHECK(r == MPI_REQUEST_NULL && fake.raised_on == MPI_COMM_WORLD);
  SAME(z_Send(data, 1, MPI_INT, 1, 32767, MPI_COMM_WORLD), MPI_SUCCESS);
  SAME(z_Send(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD), MPI_SUCCESS);
  all_over();
}

TEST(what_the_engine_refuses_is_raised) {
  begin();
  MPI_Request r = MPI_REQUEST_NULL;
  fake_refuse(Z_ERR_LINK);
  SAME(z_Send(data, 1, MPI_INT, 1, 0, MPI_COMM_WORLD), MPI_ERR_OTHER);
  fake_refuse(Z_ERR_INTERNAL);
  SAME(z_Irecv(data, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &r), MPI_ERR_INTERN);
  SAME(fake.raised, 2);
  all_over();
}

TEST(without_memory_for_a_packed_copy) {
  begin();
  MPI_Request r = MPI_REQUEST_NULL;
  MPI_Datatype type = every_other();
  /* makes the library allocate type and request before the blocks are counted */
  z_Send(data, 1, type, 1, 0, MPI_COMM_WORLD);
  SAME(z_Irecv(buffer, 2, MPI_INT, 1, 0, MPI_COMM_WORLD, &r), MPI_SUCCESS);
  arrives(fake_last_op());
  z_Wait(&r, MPI_STATUS_IGNORE);
  long before = fake_blocks();
  fake_no_memory(0);
  SAME(z_Send(data, 1, type, 1, 0, MPI_COMM_WORLD), MPI_ERR_NO_MEM);
  fake_no_memory(0);
  SAME(z_Irecv(buffer, 1, type, 1, 0, MPI_COMM_WORLD, &r), MPI_ERR_NO_MEM);
  fake_no_memory(-1);
  SAME(fake_blocks(), before);
  SAME(fake.raised, 2);
  all_over();
}

/* ---- receives of the engine that native MPI does after all ---- */

TEST(engine_passes_a_receive_to_native_mpi) {
  world();
  MPI_Request r;
  MPI_Status s;
  SAME(z_Irecv(buffer, 2, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &r), MPI_SUCCESS);
  z_cell *cell = fake_last_op()->cell;
  SAME(z_cb_imrecv(cell, 5), Z_OK);
  SAME(fake.calls.imrecv, 1);
  SAME(z_cb_test(cell), 0);
  fake_done(fake_last_request(), 2, 7, 8);
  SAME(z_cb_test(cell), 1);
  CHECK(cell->source == 4 && cell->tag == 7 && cell->bytes == 8 && !cell->cancelled && !cell->error);
  fake_sent(fake_last_op()); /* the engine reports completion */
  SAME(z_Wait(&r, &s), MPI_SUCCESS);
  CHECK(s.MPI_SOURCE == 4 && s.MPI_TAG == 7 && fake_bytes(&s) == 8);
  all_over();
}

TEST(passed_receive_may_fail_or_be_cancelled) {
  world();
  z_busy = Z_BUSY, fake.shadowed = 1;
  MPI_Request r;
  for (int round = 0; round < 2; round++) {
    SAME(z_Irecv(buffer, 2, MPI_INT, 2, 7, MPI_COMM_WORLD, &r), MPI_SUCCESS);
    z_cell *cell = fake_last_op()->cell;
    SAME(z_cb_irecv(cell), Z_OK);
    CHECK(fake.calls.irecv == round + 1 && fake.peer == 0);
    SAME(z_cb_cancel(cell), Z_OK);
    if (round) fake_fails(fake_last_request(), MPI_ERR_TRUNCATE);
    else fake_cancelled(fake_last_request());
    SAME(z_cb_test(cell), 1);
    SAME(cell->cancelled, !round);
    fake_sent(fake_last_op());
    SAME(z_Wait(&r, MPI_STATUS_IGNORE), round ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
  }
  SAME(fake.raised, 0); /* native MPI has raised the error */
  all_over();
}

/* ---- recording ---- */

TEST(messages_inside_the_cluster_are_counted) {
  begin();
  z_layout.recording = 1;
  z_Send(data, 3, MPI_INT, 4, 9, MPI_COMM_WORLD);
  CHECK(fake.recorded_rank == 4 && fake.recorded_bytes == 12);
  MPI_Request r;
  z_Isend(data, 1, MPI_DOUBLE, 2, 9, MPI_COMM_WORLD, &r);
  CHECK(fake.recorded_rank == 2 && fake.recorded_bytes == 8);
  fake.recorded_rank = -1;
  z_Send(data, 3, MPI_INT, 1, 9, MPI_COMM_WORLD); /* the engine counts this message itself */
  SAME(fake.recorded_rank, -1);
  CHECK(fake.waits_begun > 0 && !fake.waits_deep);
  SAME(fake.groups, 0);
}
