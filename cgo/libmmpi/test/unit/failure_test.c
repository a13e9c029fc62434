/* Failed processes: the functions of the program (failure/failure.c), and requests that stay
 * pending (request/request.c). Of the clusters of 2, 3 and 2 ranks the last one is lost. */
#include "../../../../include/mmpi-ft.h"
#include "comm/comm.h"
#include "failure/failure.h"
#include "requests.h"

static void lossy_world(void) {
  FAKE_WORLD(0, 2, 3, 2);
  z_layout.on_loss = 1;
  z_busy = Z_BUSY;
  fake.lost = 2;
}

TEST(header_has_the_classes_of_the_library) {
  SAME(MPIX_ERR_PROC_FAILED, Z_CLASS_PROC_FAILED);
  SAME(MPIX_ERR_PROC_FAILED_PENDING, Z_CLASS_PROC_FAILED_PENDING);
  SAME(MPIX_ERR_REVOKED, Z_CLASS_REVOKED);
}

TEST(classes_have_texts) {
  FAKE_WORLD(0, 2, 1);
  const int classes[] = {Z_CLASS_PROC_FAILED, Z_CLASS_PROC_FAILED_PENDING, Z_CLASS_REVOKED};
  for (int i = 0; i < COUNT(classes); i++) {
    char text[MPI_MAX_ERROR_STRING];
    int length, class_ = -1;
    SAME(z_Error_string(classes[i], text, &length), MPI_SUCCESS);
    CHECK(length == (int)strlen(text) && strstr(text, i < 2 ? "MPI_ERR_PROC_FAILED" : "MPI_ERR_REVOKED"));
    SAME(z_Error_class(classes[i], &class_), MPI_SUCCESS);
    SAME(class_, classes[i]);
  }
}

TEST(functions_are_unsupported_in_a_job_that_ends) {
  FAKE_WORLD(0, 2, 1);
  int flag = 1, n = 0;
  MPI_Group group;
  MPI_Comm comm;
  MPI_Request request;
  zfailure_revoke(MPI_COMM_WORLD, "MPIX_Comm_revoke");
  zfailure_is_revoked(MPI_COMM_WORLD, &flag, "MPIX_Comm_is_revoked");
  zfailure_get_failed(MPI_COMM_WORLD, &group, "MPIX_Comm_get_failed");
  zfailure_ack_failed(MPI_COMM_WORLD, 0, &n, "MPIX_Comm_ack_failed");
  zfailure_ack(MPI_COMM_WORLD, "MPIX_Comm_failure_ack");
  zfailure_get_acked(MPI_COMM_WORLD, &group, "MPIX_Comm_failure_get_acked");
  zfailure_agree(MPI_COMM_WORLD, &flag, &request, "MPIX_Comm_iagree");
  CHECK(zfailure_shrink(MPI_COMM_WORLD, &comm, NULL, "MPIX_Comm_shrink") != MPI_SUCCESS);
  SAME(fake.raised, 8);
}

TEST(loss_while_processes_agree_on_a_communicator_is_a_failed_process) {
  lossy_world();
  MPI_Comm none = MPI_COMM_NULL;
  fake_refuse(Z_ERR_PROC_FAILED);
  SAME(zcomm_agree(z_whole, MPI_SUCCESS, &none, "f"), Z_CLASS_PROC_FAILED);
  SAME(fake.raised, 1);
}

static int size_of(MPI_Group group) {
  const zgroup *g = zgroup_get(group);
  for (int i = 0; i < g->size; i++) SAME(g->rank[i], 5 + i);
  return g->size;
}

TEST(failed_processes_are_acknowledged) {
  lossy_world();
  MPI_Group failed, acked;
  int n = -1;
  SAME(zfailure_get_failed(MPI_COMM_WORLD, &failed, "f"), MPI_SUCCESS);
  SAME(size_of(failed), 2);
  SAME(zfailure_get_acked(MPI_COMM_WORLD, &acked, "f"), MPI_SUCCESS);
  CHECK(acked == MPI_GROUP_EMPTY);
  SAME(zfailure_ack_failed(MPI_COMM_WORLD, -1, &n, "f"), MPI_ERR_ARG);
  SAME(zfailure_ack_failed(MPI_COMM_WORLD, 2, &n, "f"), MPI_SUCCESS);
  SAME(n, 2);
  SAME(zfailure_get_acked(MPI_COMM_WORLD, &acked, "f"), MPI_SUCCESS);
  SAME(size_of(acked), 2);
  z_Group_free(&failed), z_Group_free(&acked);
}

TEST(agreement_has_a_value_although_a_loss_is_not_acknowledged) {
  lossy_world();
  MPI_Request request;
  int flag = 7;
  fake.votes = 5;
  SAME(zfailure_agree(MPI_COMM_WORLD, &flag, &request, "f"), MPI_SUCCESS);
  SAME(flag, 7);
  fake_sent(fake_last_op());
  SAME(z_Wait(&request, MPI_STATUS_IGNORE), Z_CLASS_PROC_FAILED);
  SAME(flag, 5);
  all_over();
}

/* Starts a receive from any source, which a loss makes pending. */
static MPI_Request pending(fake_op **op) {
  MPI_Request r = MPI_REQUEST_NULL;
  buffer[0] = -1;
  SAME(z_Irecv(buffer, 4, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &r), MPI_SUCCESS);
  *op = fake_last_op();
  fake_op_fails(*op, Z_ERR_PROC_FAILED_PENDING);
  return r;
}

TEST(pending_receive_stays_until_the_loss_is_acknowledged) {
  lossy_world();
  fake_op *op;
  MPI_Request r = pending(&op), before = r;
  MPI_Status s[1];
  int flag = 0, index = -1, n = 0;
  SAME(z_Wait(&r, MPI_STATUS_IGNORE), Z_CLASS_PROC_FAILED_PENDING);
  SAME(z_Test(&r, &flag, MPI_STATUS_IGNORE), Z_CLASS_PROC_FAILED_PENDING);
  SAME(z_Request_get_status(r, &flag, MPI_STATUS_IGNORE), Z_CLASS_PROC_FAILED_PENDING);
  SAME(z_Waitany(1, &r, &index, MPI_STATUS_IGNORE), Z_CLASS_PROC_FAILED_PENDING);
  SAME(z_Waitall(1, &r, s), MPI_ERR_IN_STATUS);
  SAME(s[0].MPI_ERROR, Z_CLASS_PROC_FAILED_PENDING);
  SAME(z_Testall(1, &r, &flag, s), MPI_ERR_IN_STATUS);
  SAME(s[0].MPI_ERROR, Z_CLASS_PROC_FAILED_PENDING);
  CHECK(r == before);
  SAME(zfailure_ack_failed(MPI_COMM_WORLD, 2, &n, "f"), MPI_SUCCESS);
  SAME(z_Test(&r, &flag, MPI_STATUS_IGNORE), MPI_SUCCESS);
  SAME(flag, 0);
  arrives(op);
  SAME(z_Wait(&r, s), MPI_SUCCESS);
  CHECK(r == MPI_REQUEST_NULL && buffer[0] == 1);
  is_remote_receive(s);
  all_over();
}

TEST(pending_receive_can_be_freed) {
  lossy_world();
  fake_op *op;
  MPI_Request r = pending(&op);
  SAME(z_Request_free(&r), MPI_SUCCESS);
  zreq_reap();
  CHECK(op->cancelled);
  all_over();
}

static void becomes_pending(void *arg) { (void)arg, fake_op_fails(fake_last_op(), Z_ERR_PROC_FAILED_PENDING); }

TEST(blocking_receive_from_any_source_fails) {
  lossy_world();
  fake_at(100, becomes_pending, NULL);
  SAME(z_Recv(buffer, 4, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE), Z_CLASS_PROC_FAILED);
  CHECK(fake_last_op()->cancelled);
  all_over();
}

TEST(send_inside_the_cluster_ends_when_the_communicator_is_revoked) {
  lossy_world();
  MPI_Request r = MPI_REQUEST_NULL;
  fake.lost = 0;
  int flag = 1;
  SAME(z_Isend(buffer, 4, MPI_INT, 1, 5, MPI_COMM_WORLD, &r), MPI_SUCCESS);
  SAME(z_Test(&r, &flag, MPI_STATUS_IGNORE), MPI_SUCCESS);
  SAME(flag, 0);
  SAME(zfailure_revoke(MPI_COMM_WORLD, "f"), MPI_SUCCESS);
  SAME(zfailure_is_revoked(MPI_COMM_WORLD, &flag, "f"), MPI_SUCCESS);
  SAME(flag, 1);
  SAME(z_Wait(&r, MPI_STATUS_IGNORE), Z_CLASS_REVOKED);
  SAME(z_Send(buffer, 4, MPI_INT, 1, 5, MPI_COMM_WORLD), Z_CLASS_REVOKED);
  SAME(z_whole->refs, 1);
}
