/* Native stages among few processes, from or to local rank 0: point-to-point messages on a communicator of ours. A native nonblocking collective makes a schedule
 * each time and notices late what has come; for few bytes both cost more than the messages.
 *
 * Tags. Two processes may be together in several communicators whose stages overlap in time. Local rank 0 of each gives it a number of its own, the lane, and tells the
 * others by a native broadcast beside the first stage, which is done natively. What goes to rank 0 has another tag than what comes from it, so for each pair of
 * processes and each direction a tag belongs to one communicator. Its stages start in the same order everywhere, and messages keep their order.
 *
 * Called with the engine's lock, like collnative.c. Owner: comms. */
#include "few.h"
#include "comm.h"
#include <limits.h>
#include <string.h>

enum {
  FEW = 8,      /* processes; with more, a tree has fewer messages one after the other. = collectives.fewRanks */
  SMALL = 4096, /* bytes of a broadcast: of more, a tree sends less from one process. Gathers and scatters send everything from or to one anyway */
};

static MPI_Comm stages = MPI_COMM_NULL;
static int32_t lanes, most_lanes; /* given by this process */

int zfew_start(int tag_ub) {
  most_lanes = (tag_ub - 1) / 2;
  return real.Comm_dup(z_private, &stages);
}

void zfew_stop(void) { real.Comm_free(&stages); }

int zfew_takes(const zcomm *c, const z_coll *a) {
  if (c->native_size < 2 || c->native_size > FEW || a->root != 0) return 0;
  return a->op == Z_GATHERV || a->op == Z_SCATTERV || (a->op == Z_BCAST && a->send_bytes <= SMALL);
}

int zfew_ready(zcomm *c) { return zcomm_more(c)->lane.asked && zcomm_more(c)->lane.number >= 0; }

int zfew_ask(zcomm *c, MPI_Request *request) {
  zlane *l = &zcomm_more(c)->lane;
  if (l->asked) return MPI_SUCCESS; /* there is none to be had */
  l->asked = 1;
  if (c->native_rank == 0) l->number = lanes < most_lanes ? ++lanes : -1;
  return real.Ibcast(&l->number, 1, MPI_INT32_T, 0, c->native, request);
}

/* One message of a stage. */
typedef struct part {
  void *at;
  int bytes, peer; /* rank in the native world */
  int sends, up;   /* up: to local rank 0 */
  MPI_Request request;
} part;

struct zfew {
  zcomm *comm;
  int n, first, started; /* parts before `first` are over */
  part parts[FEW];
};

static int add(zfew *f, int local, void *at, int64_t bytes, int sends, int up) {
  const zcomm *c = f->comm;
  if (bytes > INT_MAX) return MPI_ERR_COUNT;
  f->parts[f->n++] = (part){at, (int)bytes, c->world[c->rank_of[local]] - z_layout.offset, sends, up, MPI_REQUEST_NULL};
  return MPI_SUCCESS;
}

/* What rank 0 has of local rank i: its block, or all of a broadcast. */
static char *block(const z_coll *a, int i, int64_t *bytes) {
  if (a->op == Z_BCAST) {
    *bytes = a->send_bytes;
    return a->recv;
  }
  int gathers = a->op == Z_GATHERV;
  *bytes = (gathers ? a->recv_counts : a->send_counts)[i];
  return (char *)(uintptr_t)(gathers ? a->recv : a->send) + (gathers ? a->recv_displs : a->send_displs)[i];
}

/* Copies a process's block to itself, unless it is there already. */
static void keep_own(const z_coll *a) {
  int64_t bytes;
  char *own = block(a, 0, &bytes), *to = a->op == Z_GATHERV ? own : a->recv;
  const char *from = a->op == Z_GATHERV ? a->send : own;
  if (a->op != Z_BCAST && bytes > 0 && to != from) memcpy(to, from, (size_t)bytes);
}

int zfew_begin(zcomm *c, const z_coll *a, zfew **out) {
  zfew *f = malloc(sizeof *f);
  if (!f) return MPI_ERR_NO_MEM;
  f->comm = c;
  f->n = f->first = f->started = 0;
  int up = a->op == Z_GATHERV, rc = MPI_SUCCESS;
  if (c->native_rank) {
    rc = add(f, 0, up ? (void *)(uintptr_t)a->send : a->recv, a->send_bytes, up, up);
  } else {
    for (int i = 1; i < c->native_size && !rc; i++) {
      int64_t bytes;
      char *at = block(a, i, &bytes);
      rc = add(f, i, at, bytes, !up, up);
    }
    if (!rc) keep_own(a);
  }
  if (rc) {
    free(f);
    return rc;
  }
  *out = f;
  return MPI_SUCCESS;
}

static int start(zfew *f) {
  int lane = zcomm_more(f->comm)->lane.number, rc = lane < 0 ? MPI_ERR_OTHER : MPI_SUCCESS;
  f->started = 1;
  for (part *p = f->parts; p < f->parts + f->n && !rc; p++) {
    int tag = 2 * lane + p->up;
    rc = p->sends ? real.Isend(p->at, p->bytes, MPI_BYTE, p->peer, tag, stages, &p->request)
                  : real.Irecv(p->at, p->bytes, MPI_BYTE, p->peer, tag, stages, &p->request);
  }
  return rc;
}

int zfew_test(zfew *f, int *over) {
  *over = 0;
  if (!f->started) {
    if (!zcomm_more(f->comm)->lane.number) return MPI_SUCCESS; /* the first stage brings it */
    int rc = start(f);
    if (rc) return rc;
  }
  for (int flag; f->first < f->n; f->first++) {
    int rc = real.Test(&f->parts[f->first].request, &flag, MPI_STATUS_IGNORE);
    if (rc || !flag) return rc;
  }
  *over = 1;
  return MPI_SUCCESS;
}
