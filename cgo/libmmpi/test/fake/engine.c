/* The fake engine: it records the operations that it is asked to start, and the test completes
 * them. */
#include "core/comm.h"
#include "fake_install.h"
#include <string.h>

enum { OPS = 256 };

static fake_op ops[OPS];
static int made, refuse, next_comm;
fake_others_fn *fake_others;

fake_op *fake_last_op(void) {
  FAKE_ASSERT(made, "the engine was asked for nothing");
  return &ops[made - 1];
}

int fake_ops(void) {
  int n = 0;
  for (int i = 0; i < made; i++) n += ops[i].cell != NULL;
  return n;
}

void fake_refuse(int z_error) { refuse = z_error; }

static int start(fake_op op) {
  int error = refuse;
  refuse = Z_OK;
  if (error) return error;
  FAKE_ASSERT(made < OPS, "the fake has room for %d operations", OPS);
  FAKE_ASSERT(op.cell && !op.cell->done && !op.cell->request,
              "a cell in use, or of a request that is over, is given to the engine");
  ops[made++] = op;
  return Z_OK;
}

static void done(fake_op *op) {
  z_cell *cell = op->cell;
  FAKE_ASSERT(cell, "the operation is over already");
  op->cell = NULL;
  __atomic_store_n(&cell->done, 1, __ATOMIC_RELEASE);
}

void fake_sent(fake_op *op) { done(op); }

void fake_arrive(fake_op *op, int source, int tag, const void *data, int64_t bytes) {
  FAKE_ASSERT(op->what == 'r', "only for a receive something arrives");
  int64_t room = bytes < op->bytes ? bytes : op->bytes;
  if (room) memcpy((void *)(uintptr_t)op->data, data, (size_t)room);
  op->cell->source = source, op->cell->tag = tag, op->cell->bytes = room;
  if (bytes > op->bytes) op->cell->error = Z_ERR_TRUNCATE;
  done(op);
}

void fake_op_fails(fake_op *op, int z_error) {
  if (z_error == Z_ERR_PROC_FAILED_PENDING) op->pending = op->cell;
  op->cell->error = z_error;
  done(op);
}

/* ---- its functions ---- */

static int ze_isend(int32_t comm, int32_t kind, const void *buf, int64_t bytes, int32_t dest, int32_t tag, int32_t mode,
                    z_cell *cell) {
  (void)kind;
  return start((fake_op){
      .what = 's', .cell = cell, .data = buf, .bytes = bytes, .peer = dest, .tag = tag, .mode = mode, .comm = comm});
}

static int ze_irecv(int32_t comm, int32_t kind, void *buf, int64_t bytes, int32_t source, int32_t tag, z_cell *cell) {
  (void)kind;
  return start(
      (fake_op){.what = 'r', .cell = cell, .data = buf, .bytes = bytes, .peer = source, .tag = tag, .comm = comm});
}

static int ze_shadowed(int32_t comm, int32_t source, int32_t tag) {
  (void)comm, (void)source, (void)tag;
  return fake.shadowed;
}

static int ze_cancel(int32_t comm, z_cell *cell) {
  (void)comm;
  for (int i = 0; i < made; i++)
    if (ops[i].cell == cell || ops[i].pending == cell) ops[i].cancelled = 1, ops[i].pending = NULL;
  return Z_OK;
}

static int ze_progress(int32_t block_us) {
  FAKE_ASSERT(!z_inside, "a native call of the shim's came back into the engine");
  fake.calls.progress++;
  fake.last_block = block_us;
  fake_pass(fake.progress_us + (block_us > 0 ? block_us : block_us == Z_GIVE_WAY ? fake.yield_us : 0));
  return fake.engine_moves > 0 ? fake.engine_moves-- : 0;
}

static int ze_comm_add(int32_t link, void *comm, uint64_t context, int32_t size, int32_t rank, const int32_t *world,
                       const int32_t *native, int32_t n, int32_t *id) {
  (void)link, (void)comm, (void)context, (void)size, (void)rank, (void)world, (void)native, (void)n;
  int error = refuse;
  refuse = Z_OK;
  if (error) return error;
  fake.calls.comm_add++;
  *id = ++next_comm;
  return Z_OK;
}

static int ze_comm_drop(int32_t id) {
  FAKE_ASSERT(id > 0 && id <= next_comm, "ze_comm_drop got no communicator");
  fake.calls.comm_drop++;
  return Z_OK;
}

/* Completes at once, with the blocks that the test provides for the other ranks. */
static int ze_coll(int32_t comm, const z_coll *a, z_cell *cell) {
  int rc = start((fake_op){.what = 'c', .cell = cell, .comm = comm});
  if (rc) return rc;
  const zcomm *c = z_whole;
  if (a->op == Z_ALLGATHERV) {
    for (int i = 0; i < c->size; i++) {
      char *block = (char *)a->recv + a->recv_displs[i];
      if (i == c->rank) memcpy(block, a->send, (size_t)a->send_bytes);
      else if (memset(block, 0, (size_t)a->recv_counts[i]), fake_others) fake_others(i, block, a->recv_counts[i]);
    }
  } else if (a->op == Z_ALLREDUCE) { /* the operands of the others change nothing */
    memcpy(a->recv, a->send, (size_t)(a->count * a->extent));
  } else {
    FAKE_ASSERT(a->op == Z_BARRIER || a->op == Z_BCAST, "the fake has no collective %d", a->op);
  }
  done(fake_last_op());
  return Z_OK;
}

static int ze_coll_leaf(int32_t comm, const z_coll *args, int64_t *give, int64_t *get) {
  (void)comm, (void)args, (void)give, (void)get;
  return 0;
}

static uint64_t ze_next_context(int32_t link) {
  (void)link;
  static uint64_t last = 1000;
  return ++last;
}

/* ---- failed processes ---- */

static int ze_failed(int32_t comm, int32_t *ranks, int32_t room, int32_t *n) {
  (void)comm;
  for (int i = 0; i < fake.lost && i < room; i++) ranks[i] = z_layout.size - fake.lost + i;
  *n = fake.lost;
  return Z_OK;
}

static int ze_ack_failed(int32_t comm, int32_t n, int32_t *acked) {
  (void)comm;
  if (n > fake.acked) fake.acked = n < fake.lost ? n : fake.lost;
  *acked = fake.acked;
  return Z_OK;
}

static int ze_revoke(int32_t comm) { return (void)comm, fake.revoked = 1, Z_OK; }
static int ze_revoked(int32_t comm) { return (void)comm, fake.revoked; }

static int ze_agree(int32_t comm, int32_t flag, z_cell *cell) {
  int rc = start((fake_op){.what = 'c', .cell = cell, .comm = comm});
  if (rc) return rc;
  cell->tag = flag & fake.votes;
  if (fake.acked < fake.lost) cell->error = Z_ERR_PROC_FAILED;
  return Z_OK;
}

static int ze_resume(int32_t comm, z_cell *cell) {
  (void)comm;
  for (int i = 0; i < made && fake.acked == fake.lost; i++) {
    if (ops[i].pending != cell) continue;
    ops[i].cell = cell, ops[i].pending = NULL;
    cell->error = Z_OK, cell->done = 0;
  }
  return Z_OK;
}

static const char *ze_error(void) { return "the fake engine says no"; }
static void ze_abort(int32_t code) { fake.aborted = code; }
static void ze_record(int32_t rank, int64_t bytes) { fake.recorded_rank = rank, fake.recorded_bytes = bytes; }
static void ze_record_taken(int32_t rank) { fake.taken_from = rank; }
static void ze_record_wait(int32_t begins) {
  fake.waits_begun += begins, fake.waits_deep += begins ? 1 : -1;
  FAKE_ASSERT(fake.waits_deep >= 0, "a wait ends that has not begun");
}

void fake_install_engine(void) {
#define ENGINE(NAME) z_eng.NAME = NAME
  ENGINE(ze_isend), ENGINE(ze_irecv), ENGINE(ze_shadowed), ENGINE(ze_cancel), ENGINE(ze_progress);
  ENGINE(ze_comm_add), ENGINE(ze_comm_drop), ENGINE(ze_coll), ENGINE(ze_coll_leaf), ENGINE(ze_next_context);
  ENGINE(ze_error), ENGINE(ze_abort), ENGINE(ze_record);
  ENGINE(ze_record_taken), ENGINE(ze_record_wait);
  ENGINE(ze_failed), ENGINE(ze_ack_failed), ENGINE(ze_revoke), ENGINE(ze_revoked), ENGINE(ze_agree), ENGINE(ze_resume);
}
