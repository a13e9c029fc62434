#include "native.h"
#include <pthread.h>
#include <stdlib.h>

/* The text of the error of each thread's last failed call. A library that is opened late has only a
 * few hundred bytes of _Thread_local memory. So each thread has a pointer, and its text is freed
 * when the thread ends. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t why;
static int kept;

static void make_key(void) { kept = !pthread_key_create(&why, free); }

void zn_set_error(char *text) {
  pthread_once(&once, make_key);
  char *last = kept ? pthread_getspecific(why) : NULL;
  if (!kept || pthread_setspecific(why, text)) free(text);
  else free(last);
}

const char *zn_error(void) {
  pthread_once(&once, make_key);
  const char *text = kept ? pthread_getspecific(why) : NULL;
  return text ? text : "no error";
}

/* The number of callbacks in which this thread is, for zn_within. A call that fails may run the
 * program's error handler, which may call MPI_Abort while this thread holds the engine's lock. */
static _Thread_local int within;

int zn_within(void) { return within; }

static int back(int rc) {
  within--;
  return rc;
}

zn_probe zn_improbe(const z_native *n, uintptr_t comm, int32_t source, int32_t tag) {
  zn_probe r = {0};
  within++;
  r.found = back(n->improbe((void *)comm, source, tag, &r.probe));
  return r;
}

zn_probe zn_iprobe(const z_native *n, uintptr_t comm, int32_t source, int32_t tag) {
  zn_probe r = {0};
  within++;
  r.found = back(n->iprobe((void *)comm, source, tag, &r.probe));
  return r;
}

int zn_imrecv(const z_native *n, uintptr_t cell, uint64_t message) {
  within++;
  return back(n->imrecv((z_cell *)cell, message));
}
int zn_irecv(const z_native *n, uintptr_t cell) {
  within++;
  return back(n->irecv((z_cell *)cell));
}
int zn_test(const z_native *n, uintptr_t cell) {
  within++;
  return back(n->test((z_cell *)cell));
}
int zn_cancel(const z_native *n, uintptr_t cell) {
  within++;
  return back(n->cancel((z_cell *)cell));
}

zn_token zn_coll(const z_native *n, uintptr_t comm, int32_t op, int32_t root, uintptr_t send, uintptr_t recv,
                 int64_t send_bytes, const int64_t *send_counts, const int64_t *send_displs, const int64_t *recv_counts,
                 const int64_t *recv_displs, int64_t count, int64_t extent, uint64_t type, uint64_t mpi_op,
                 int32_t commutative) {
  z_coll c = {.op = op,
              .root = root,
              .send = (const void *)send,
              .recv = (void *)recv,
              .send_bytes = send_bytes,
              .send_counts = send_counts,
              .send_displs = send_displs,
              .recv_counts = recv_counts,
              .recv_displs = recv_displs,
              .count = count,
              .extent = extent,
              .type = type,
              .mpi_op = mpi_op,
              .commutative = commutative};
  zn_token r = {0};
  within++;
  r.error = back(n->coll((void *)comm, &c, &r.token));
  return r;
}

int zn_coll_test(const z_native *n, uint64_t token) {
  within++;
  return back(n->coll_test(token));
}
int zn_recode(const z_native *n, uint64_t type, uintptr_t at, int64_t count, int32_t way) {
  within++;
  return back(n->recode(type, (void *)at, count, way));
}
void zn_recode_numbers(const z_native *n, int32_t number, uintptr_t at, int64_t bytes, int32_t way) {
  n->recode_numbers(number, (void *)at, bytes, way);
}
int zn_reduce_local(const z_native *n, uintptr_t in, uintptr_t inout, int64_t count, uint64_t type, uint64_t op) {
  within++;
  return back(n->reduce_local((const void *)in, (void *)inout, count, type, op));
}
zn_copied zn_copy(const z_native *n, uintptr_t to, uintptr_t from, int64_t bytes) {
  zn_copied r;
  within++;
  r.error = back(n->copy((void *)to, (const void *)from, bytes, r.why, sizeof r.why));
  return r;
}
void zn_access(const z_native *n, uintptr_t fault) { n->access((const z_fault *)fault); }
void zn_fail(const z_native *n, int32_t code, const char *reason) { n->fail(code, reason); }
