#include "native.h"

zn_probe zn_improbe(const z_native *n, uintptr_t comm, int32_t source, int32_t tag) {
  zn_probe r = {0};
  r.found = n->improbe((void *)comm, source, tag, &r.probe);
  return r;
}

zn_probe zn_iprobe(const z_native *n, uintptr_t comm, int32_t source, int32_t tag) {
  zn_probe r = {0};
  r.found = n->iprobe((void *)comm, source, tag, &r.probe);
  return r;
}

int zn_imrecv(const z_native *n, uintptr_t cell, uint64_t message) { return n->imrecv((z_cell *)cell, message); }
int zn_irecv(const z_native *n, uintptr_t cell) { return n->irecv((z_cell *)cell); }
int zn_test(const z_native *n, uintptr_t cell) { return n->test((z_cell *)cell); }
int zn_cancel(const z_native *n, uintptr_t cell) { return n->cancel((z_cell *)cell); }

zn_token zn_coll(const z_native *n, uintptr_t comm, int32_t op, int32_t root, uintptr_t send, uintptr_t recv, int64_t send_bytes,
                 const int64_t *send_counts, const int64_t *send_displs, const int64_t *recv_counts, const int64_t *recv_displs,
                 int64_t count, int64_t extent, uint64_t type, uint64_t mpi_op, int32_t commutative) {
  z_coll c = {.op = op, .root = root, .send = (const void *)send, .recv = (void *)recv, .send_bytes = send_bytes,
              .send_counts = send_counts, .send_displs = send_displs, .recv_counts = recv_counts, .recv_displs = recv_displs,
              .count = count, .extent = extent, .type = type, .mpi_op = mpi_op, .commutative = commutative};
  zn_token r = {0};
  r.error = n->coll((void *)comm, &c, &r.token);
  return r;
}

int zn_coll_test(const z_native *n, uint64_t token) { return n->coll_test(token); }
int zn_reduce_local(const z_native *n, uintptr_t in, uintptr_t inout, int64_t count, uint64_t type, uint64_t op) {
  return n->reduce_local((const void *)in, (void *)inout, count, type, op);
}
void zn_fail(const z_native *n, int32_t code, const char *reason) { n->fail(code, reason); }
