/* Small collectives in a process that leads nobody: its block goes to local rank 0 of its cluster,
 * and the result comes from there. Where nothing else is under way these are two native messages
 * and a native wait, without the engine, which would send the same ones (smallstage.c): whether
 * another process, or this one the next time, does it by way of the engine makes no difference to
 * anybody. */
#include "coll/coll.h"
#include "coll/smallstage.h"

/* What ze_coll_leaf is asked about, as far as that depends on more than the kind; -1: do not
 * ask. */
static int64_t key_of(const z_coll *a, int size) {
  switch (a->op) {
  case Z_BARRIER: return 0;
  case Z_ALLREDUCE: return a->count * a->extent * 2 + !!a->commutative;
  case Z_ALLGATHERV: /* blocks of equal size, the first at the beginning and the second next to it: so are all */
    return a->uniform && !a->recv_displs[0] && (size < 2 || a->recv_displs[1] == a->recv_counts[0]) ? a->recv_counts[0]
                                                                                                    : -1;
  default: return -1;
  }
}

static const zleaf *leaf_of(zcomm *c, const z_coll *a) {
  int64_t key = key_of(a, c->size);
  if (key < 0) return NULL;
  /* Numbers of bytes are mostly multiples of 8 */
  zleaf *p = &zcollstate_of(c)->leaves[((uint64_t)key / 16 + (uint64_t)key + (unsigned)a->op) % Z_LEAVES];
  if (!p->known || p->op != a->op || p->key != key) {
    *p = (zleaf){.known = 1, .op = a->op, .key = key};
    p->may = z_eng.ze_coll_leaf(c->id, a, &p->give, &p->get) && zsmall_takes(c, &(z_coll){.op = Z_GATHERV}) &&
             /* else the leader's stages are native collectives */
             zsmall_takes(c, &(z_coll){.op = Z_BCAST, .send_bytes = p->get});
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
  int barrier = j->args.op == Z_BARRIER, leader = zsmall_leader(c);
  m->skipped++;
  j->rc = real.Send(barrier ? &nothing : j->args.send, (int)p->give, MPI_BYTE, leader, tag, zsmall_comm);
  MPI_Request request;
  if (!j->rc)
    j->rc = real.Irecv(barrier ? &nothing : j->args.recv, (int)p->get, MPI_BYTE, leader, tag, zsmall_comm, &request);
  if (!j->rc) j->rc = z_wait_stage(&request);
  return 1;
}
