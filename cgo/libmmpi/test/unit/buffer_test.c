/* Buffered sends and their buffers (p2p/bsend.c, p2p/buffer.c). This process is rank 3 of clusters
 * of 2 and 3: ranks 0 and 1 are remote, ranks 2, 3, 4 are native ranks 0, 1, 2. */
#include "p2p/buffer.h"
#include "requests.h"

static int data[8] = {1, 2, 3, 4, 5, 6, 7, 8};

static void sent_at(double us) { fake_at(fake.now + us, (void (*)(void *))fake_sent, fake_last_op()); }

TEST(a_buffered_send_needs_room) {
  world();
  SAME(z_Bsend(data, 1, MPI_INT, 1, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
  int room = 2 * (MPI_BSEND_OVERHEAD + 8);
  z_Buffer_attach(NULL, room);
  SAME(z_Bsend(data, 2, MPI_INT, 1, 0, MPI_COMM_WORLD), MPI_SUCCESS);
  CHECK(fake_last_op()->data != data); /* a copy */
  fake_op *first = fake_last_op();
  /* a message inside the cluster counts too */
  SAME(z_Bsend(data, 2, MPI_INT, 4, 0, MPI_COMM_WORLD), MPI_SUCCESS);
  MPI_Request native = fake_last_request();
  SAME(z_Bsend(data, 0, MPI_INT, 1, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
  fake_sent(first);
  SAME(z_Bsend(data, 2, MPI_INT, 1, 0, MPI_COMM_WORLD), MPI_SUCCESS);
  sent_at(100);
  fake_done(native, 0, 0, 0);
  int size;
  void *old;
  SAME(z_Buffer_detach(&old, &size), MPI_SUCCESS); /* waits for all buffered sends */
  CHECK(fake.now >= 100);
  SAME(z_Bsend(data, 0, MPI_INT, 1, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
  all_over();
}

TEST(a_buffered_request_is_over_at_once) {
  world();
  z_Buffer_attach(NULL, 1000);
  MPI_Request r;
  int flag = 0;
  SAME(z_Ibsend(data, 2, MPI_INT, 1, 0, MPI_COMM_WORLD, &r), MPI_SUCCESS);
  z_Test(&r, &flag, MPI_STATUS_IGNORE);
  CHECK(flag && fake_ops() == 1);
  fake_sent(fake_last_op());
  SAME(z_Bsend_init(data, 2, MPI_INT, 1, 0, MPI_COMM_WORLD, &r), MPI_SUCCESS);
  for (int i = 0; i < 2; i++) {
    SAME(z_Start(&r), MPI_SUCCESS);
    SAME(z_Wait(&r, MPI_STATUS_IGNORE), MPI_SUCCESS);
    fake_sent(fake_last_op());
  }
  z_Request_free(&r);
  zreq_finish_released();
  all_over();
}

#ifdef Z_HAVE_Buffer_attach_c
TEST(a_buffer_may_be_larger_than_an_int_counts) {
  world();
  SAME(z_Buffer_attach_c(NULL, (MPI_Count)3 << 30), MPI_SUCCESS);
  SAME(z_Bsend(data, 2, MPI_INT, 1, 0, MPI_COMM_WORLD), MPI_SUCCESS);
  fake_sent(fake_last_op());
  zreq_finish_released();
  all_over();
}
#endif

#ifdef Z_HAVE_Buffer_iflush
enum { ONE = MPI_BSEND_OVERHEAD + 8 }; /* the room for a message of two ints */

static int bsend(int dest, MPI_Comm comm) { return z_Bsend(data, 2, MPI_INT, dest, 0, comm); }

TEST(an_automatic_buffer_has_no_limit) {
  world();
  int size;
  void *old;
  SAME(z_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0), MPI_SUCCESS);
  fake_op *ops[100];
  for (int i = 0; i < 100; i++) {
    SAME(bsend(1, MPI_COMM_WORLD), MPI_SUCCESS);
    ops[i] = fake_last_op();
  }
  for (int i = 0; i < 100; i++) fake_at(100, (void (*)(void *))fake_sent, ops[i]);
  SAME(z_Buffer_detach(&old, &size), MPI_SUCCESS);
  CHECK(fake.now >= 100);
  SAME(bsend(1, MPI_COMM_WORLD), MPI_ERR_BUFFER);
  all_over();
}

TEST(a_message_uses_the_buffer_of_its_communicator) {
  world();
  int size;
  void *old;
  SAME(z_Buffer_attach(NULL, ONE), MPI_SUCCESS);
  SAME(z_Comm_attach_buffer(MPI_COMM_WORLD, NULL, 2 * ONE), MPI_SUCCESS);
  for (int i = 0; i < 2; i++) {
    SAME(bsend(1, MPI_COMM_WORLD), MPI_SUCCESS);
    sent_at(50);
  }
  SAME(bsend(1, MPI_COMM_WORLD), MPI_ERR_BUFFER);
  MPI_Comm lent = z_self; /* inside the cluster */
  SAME(bsend(0, lent), MPI_SUCCESS);
  fake_done(fake_last_request(), 0, 0, 0);
  SAME(z_Comm_detach_buffer(MPI_COMM_WORLD, &old, &size), MPI_SUCCESS);
  SAME(bsend(1, MPI_COMM_WORLD), MPI_SUCCESS); /* the process's */
  sent_at(50);
  SAME(bsend(1, MPI_COMM_WORLD), MPI_ERR_BUFFER);
  zreq_finish_released();
  all_over();
}

/* A communicator that gets the handle of a freed one does not get its buffer. */
TEST(a_freed_communicator_loses_its_buffer) {
  world();
  SAME(z_Comm_attach_buffer(MPI_COMM_WORLD, NULL, ONE), MPI_SUCCESS);
  SAME(bsend(1, MPI_COMM_WORLD), MPI_SUCCESS);
  fake_op *op = fake_last_op();
  zbuffer_forget(z_key(MPI_COMM_WORLD));
  SAME(bsend(1, MPI_COMM_WORLD), MPI_ERR_BUFFER);
  fake_sent(op);
  zreq_finish_released();
  all_over();
}

TEST(a_derived_communicator_uses_the_buffer_of_its_session) {
  world();
  MPI_Session session = (MPI_Session)(uintptr_t)0x770000;
  SAME(z_Session_attach_buffer(session, NULL, ONE), MPI_SUCCESS);
  SAME(bsend(1, MPI_COMM_WORLD), MPI_ERR_BUFFER);
  zbuffer_derive(z_self, z_key(session));
  zbuffer_inherit(z_self, MPI_COMM_WORLD);
  SAME(bsend(1, MPI_COMM_WORLD), MPI_SUCCESS);
  sent_at(10);
  zreq_finish_released();
  zbuffer_forget(z_key(MPI_COMM_WORLD));
  SAME(bsend(1, MPI_COMM_WORLD), MPI_ERR_BUFFER);
  all_over();
}

TEST(a_flush_waits_for_the_messages_of_its_buffer) {
  world();
  z_Buffer_attach(NULL, ONE);
  z_Comm_attach_buffer(MPI_COMM_WORLD, NULL, ONE);
  SAME(bsend(1, MPI_COMM_WORLD), MPI_SUCCESS);
  fake_op *op = fake_last_op();
  SAME(z_Buffer_flush(), MPI_SUCCESS); /* the process's buffer has no messages */
  fake_at(fake.now + 100, (void (*)(void *))fake_sent, op);
  double begin = fake.now;
  SAME(z_Comm_flush_buffer(MPI_COMM_WORLD), MPI_SUCCESS);
  CHECK(fake.now >= begin + 100);
  SAME(z_Comm_flush_buffer(MPI_COMM_WORLD), MPI_SUCCESS);
  all_over();
}

/* A message that is sent later may be received only after the wait for the flush. */
TEST(a_flush_does_not_wait_for_later_messages) {
  world();
  MPI_Request r;
  MPI_Status s;
  int flag = 1;
  z_Buffer_attach(NULL, 2 * ONE);
  SAME(bsend(1, MPI_COMM_WORLD), MPI_SUCCESS);
  fake_op *first = fake_last_op();
  SAME(z_Buffer_iflush(&r), MPI_SUCCESS);
  SAME(bsend(1, MPI_COMM_WORLD), MPI_SUCCESS);
  fake_op *later = fake_last_op();
  SAME(z_Test(&r, &flag, &s), MPI_SUCCESS);
  SAME(flag, 0);
  SAME(z_Cancel(&r), MPI_ERR_REQUEST);
  fake_sent(first);
  SAME(z_Wait(&r, &s), MPI_SUCCESS);
  CHECK(r == MPI_REQUEST_NULL && fake_is_empty(&s));
  SAME(z_Buffer_iflush(&r), MPI_SUCCESS);
  SAME(z_Request_free(&r), MPI_SUCCESS);
  fake_sent(later);
  zreq_finish_released();
  all_over();
}
#endif
