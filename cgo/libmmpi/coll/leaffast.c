/* Small collectives in a process that leads nobody: its block goes to local rank 0 of its cluster,
 * the result comes from there, or one of both. Where nothing else is under way these are two native
 * messages and a native wait, without the engine, which would send the same ones (smallstage.c):
 * whether another process, or this one the next time, does it by way of the engine makes no
 * difference to anybody. */
#include "coll/coll.h"
#include "coll/smallstage.h"

/* What ze_coll_leaf is asked about, as far as that depends on more than the kind; -1: do not
 * ask. */
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
  case Z_ALLGATHERV: /* blocks of equal size, the first at the beginning and the second next to it: so are all */
    return a->uniform && !a->recv_displs[0] && (size < 2 || a->recv_displs[1] == a->recv_counts[0]) ? a->recv_counts[0]
                                                                                                    : -1;
  default: return -1;
  }
}

/* Whether the leader's stages are messages, and not in pieces. */
static int as_messages(const zcomm *c, int op, const zleaf *p) {
  const int blocks = op == Z_SCATTERV || op == Z_REDUCE_SCATTER;
  const z_coll gather = {.op = Z_GATHERV}, back = {.op = blocks ? Z_SCATTERV : Z_BCAST, .send_bytes = p->get};
  return zsmall_takes(c, &gather) && zsmall_takes(c, &back) && p->give <= Z_PIECE && (!blocks || p->get <= Z_PIECE);
}

static const zleaf *leaf_of(zcomm *c, const z_coll *a) {
  int64_t key = key_of(a, c->size, c->rank);
  if (key < 0) return NULL;
  /* Numbers of bytes are mostly multiples of 8 */
  zleaf *p = &zcollstate_of(c)->leaves[((uint64_t)key / 16 + (uint64_t)key + (unsigned)a->op) % Z_LEAVES];
  if (!p->known || p->op != a->op || p->key != key) {
    *p = (zleaf){.known = 1, .op = a->op, .key = key};
    p->may = z_eng.ze_coll_leaf(c->id, a, &p->give, &p->get) && as_messages(c, a->op, p);
  }
  return p->may ? p : NULL;
}

int zleaf_try(zcoll *j) {
  zcomm *c = j->comm;
  zcollstate *m = zcollstate_of(c);
  int tag;
  char nothing = 0;
  if (c->native_rank == 0 || j->rc || j->launch || c->inter || !zsmall_tag(c, &tag)) return 0;
  /* Who waits in the engine serves windows at once */
  if (!z_may_block() || m->gate.closed || m->gate.first || z_serving) return 0;
  const zleaf *p = leaf_of(c, &j->args);
  if (!p) return 0;
  m->skipped++;
  int leader = zsmall_leader(c);
  const void *send = j->args.send;
  void *recv = j->args.recv;
  if (j->args.op == Z_BARRIER) send = recv = &nothing;
  if (p->give >= 0) j->rc = real.Send(send, (int)p->give, MPI_BYTE, leader, tag, zsmall_comm);
  if (j->rc || p->get < 0) return 1;
  MPI_Request request;
  j->rc = real.Irecv(recv, (int)p->get, MPI_BYTE, leader, tag, zsmall_comm, &request);
  if (!j->rc) j->rc = z_wait_stage(&request);
  return 1;
}
