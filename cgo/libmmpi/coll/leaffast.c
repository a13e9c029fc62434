/* Small collectives in a leaf, a process that leads no other: it sends its block to local rank 0 of
 * its cluster, or receives the result from it or from a process of its own host that passes it on
 * (zsmall_source), or both. While nothing else is in progress that takes two native messages (or
 * the pieces of two) and a native wait. They are the messages that
 * the engine would send (smallstage.c), but they are sent here, without the engine. Other processes
 * cannot distinguish the two ways, and each call may use either. */
#include "coll/coll.h"
#include "coll/smallstage.h"

/* Returns whether blocks of equal sizes are consecutive from displacement 0 on. Only the first two
 * are compared, because then all are consecutive. */
static int together(const int64_t *counts, const int64_t *displs, int size) {
  return !displs[0] && (size < 2 || displs[1] == counts[0]);
}

/* Returns a number that stands for everything but the kind of the collective on which the answer of
 * ze_coll_leaf depends, or -1 if a leaf's answer is not to be requested. */
static int64_t key_of(const z_coll *a, int size, int rank) {
  int64_t own;
  switch (a->op) {
  case Z_GATHERV:
  case Z_SCATTERV: return (a->send_bytes * 2 + !!a->uniform) * size + a->root;
  case Z_REDUCE: return (a->count * a->extent * 2 + !!a->commutative) * size + a->root;
  case Z_REDUCE_SCATTER:
    own = a->recv_counts[rank] * a->extent;
    return own >> 20 || a->count * a->extent >> 20 ? -1 : (a->count * a->extent * 2 + !!a->commutative) << 20 | own;
  case Z_BARRIER: return 0;
  case Z_ALLREDUCE: return a->count * a->extent * 2 + !!a->commutative;
  case Z_BCAST: return a->send_bytes * size + a->root;
  case Z_ALLTOALLV:
    if (!a->uniform || !together(a->send_counts, a->send_displs, size)) return -1;
    /* fall through */
  case Z_ALLGATHERV: return a->uniform && together(a->recv_counts, a->recv_displs, size) ? a->recv_counts[0] : -1;
  default: return -1;
  }
}

/* Returns whether local rank 0, in the last step of a collective of this kind, sends each process
 * of its cluster a block of its own. Otherwise it sends all processes the same bytes. */
static int in_blocks(int op) { return op == Z_SCATTERV || op == Z_REDUCE_SCATTER || op == Z_ALLTOALLV; }

/* Returns whether local rank 0 exchanges the data of a collective inside the cluster by messages
 * (smallstage.c), none of which this process has to pass on to others. */
static int as_messages(const zcomm *c, int op, const zleaf *p) {
  const z_coll gather = {.op = Z_GATHERV}, back = {.op = in_blocks(op) ? Z_SCATTERV : Z_BCAST, .send_bytes = p->get};
  return zsmall_takes(c, &gather) && zsmall_takes(c, &back) && p->give <= Z_SMALL_BCAST && p->get <= Z_SMALL_BCAST &&
         (in_blocks(op) || !zsmall_passes_on(c, p->get));
}

/* Returns the sizes of the messages that this process sends and receives in the collective *a on c
 * if it may be a leaf in it, otherwise NULL. The answer is taken from the communicator's cache or,
 * if it is not there, from ze_coll_leaf. */
static const zleaf *leaf_of(zcomm *c, const z_coll *a) {
  int64_t key = key_of(a, c->size, c->rank);
  if (key < 0) return NULL;
  /* sizes in bytes are mostly multiples of 8 */
  zleaf *p = &zcollstate_of(c)->leaves[((uint64_t)key / 16 + (uint64_t)key + (unsigned)a->op) % Z_LEAVES];
  if (!p->known || p->op != a->op || p->key != key) {
    *p = (zleaf){.known = 1, .op = a->op, .key = key};
    p->may = Z_ENGINE(ze_coll_leaf(c->id, a, &p->give, &p->get)) && as_messages(c, a->op, p);
  }
  return p->may ? p : NULL;
}

/* The messages of this process in one collective, `n` in all, of which those before `first` have
 * completed. rc is the first MPI error code. */
typedef struct talk {
  int tag, n, first, rc;
  MPI_Request requests[2 * Z_PIECES];
} talk;

/* Starts to send `bytes` bytes at `at` to local rank `local` (sends = 1), or to receive them from
 * there (0), and adds the requests to t. Long messages are cut into the same pieces as in
 * smallstage.c. */
static void start(talk *t, const zcomm *c, int local, int sends, char *at, int64_t bytes) {
  int peer = zsmall_world_rank(c, local);
  int64_t most = zsmall_piece(c, peer, bytes), done = 0;
  do {
    int n = (int)(bytes - done < most ? bytes - done : most);
    MPI_Request *q = &t->requests[t->n++];
    t->rc = sends ? real.Isend(at + done, n, MPI_BYTE, peer, t->tag, zsmall_comm, q)
                  : real.Irecv(at + done, n, MPI_BYTE, peer, t->tag, zsmall_comm, q);
    done += n;
  } while (done < bytes && !t->rc);
}

/* Starts this process's messages of the collective j, and stores them in t. Returns 1, or 0 without
 * having started anything if the engine has to do the collective. */
static int start_all(talk *t, zcoll *j) {
  static char nothing; /* the buffer of a barrier's messages */
  zcomm *c = j->comm;
  zcollstate *m = zcollstate_of(c);
  if (c->native_rank == 0 || j->rc || j->launch || c->inter || !zsmall_tag(c, &t->tag)) return 0;
  /* A process that waits in the engine serves windows at once */
  if (!z_may_block() || m->gate.closed || m->gate.first || z_serving) return 0;
  const zleaf *p = leaf_of(c, &j->args);
  if (!p) return 0;
  int barrier = j->args.op == Z_BARRIER, source = in_blocks(p->op) ? 0 : zsmall_source(c, c->native_rank, p->get);
  const char *send = barrier ? &nothing : j->args.send;
  char *recv = barrier ? &nothing : j->args.recv;
  m->skipped++;
  t->n = t->first = t->rc = 0;
  if (p->give >= 0) start(t, c, 0, 1, (char *)(uintptr_t)send, p->give);
  if (!t->rc && p->get >= 0) start(t, c, source, 0, recv, p->get);
  return 1;
}

int zleaf_try(zcoll *j) {
  talk t;
  if (!start_all(&t, j)) return 0;
  for (; t.first < t.n && !t.rc; t.first++) t.rc = z_wait_stage(&t.requests[t.first]);
  j->rc = t.rc;
  return 1;
}

/* Tests the messages of a nonblocking collective. Returns 1 if all have completed or one has
 * failed, otherwise 0. It serves as r->poll. */
static int moved(zreq *r) {
  zcoll *j = r->extra;
  talk *t = j->leaf;
  for (int flag; t->first < t->n && !t->rc; t->first++) {
    t->rc = real.Test(&t->requests[t->first], &flag, MPI_STATUS_IGNORE);
    if (!t->rc && !flag) return z_looks++, 0;
  }
  j->rc = t->rc;
  r->poll = NULL;
  r->cell.done = 1;
  __atomic_sub_fetch(&z_leaves, 1, __ATOMIC_RELAXED);
  return 1;
}

int zleaf_start(zreq *r) {
  zcoll *j = r->extra;
  talk t;
  if (!start_all(&t, j)) return 0;
  if (!(j->leaf = zcoll_grab(j, sizeof t))) z_no_memory("a collective");
  *(talk *)j->leaf = t;
  r->poll = moved;
  __atomic_add_fetch(&z_leaves, 1, __ATOMIC_RELAXED);
  return 1;
}
