/* Native stages among few processes, as point-to-point messages on a communicator of the shim's. A
 * native nonblocking collective builds a schedule each time, and is slow to notice arrivals. For
 * few bytes that costs more than the messages; for many bytes among few processes its messages
 * would be the same.
 *
 * Tags. Two processes may share several communicators whose stages overlap in time. So local rank 0
 * of each communicator assigns it a number, the channel, and broadcasts the number natively beside
 * the first stage, which still uses a native collective. MPI_COMM_WORLD has channel 1. The tag
 * combines the channel and the native rank of the process that has assigned it, so it belongs to
 * one communicator. The stages of a communicator start in the same order in all processes, and
 * messages keep their order.
 *
 * Stages are begun and tested with the engine's lock held, by the functions z_cb_… of native.c.
 * leaffast.c calls other functions of this file without that lock, only where one thread calls
 * MPI. */
#include "coll/smallstage.h"
#include "coll/coll.h"
#include "core/limits.h"
#include <string.h>

MPI_Comm zsmall_comm = MPI_COMM_NULL;
/* The number of the channel that this process has assigned last, and the greatest that it can
 * assign. */
static int32_t channels, most_channels;
/* the number of processes that assign channels, which is the size of the native world */
static int32_t givers;
/* the first native rank on the host of each native rank */
static int *host_of;

int zsmall_start(int tag_ub, int native_size, int hosts[]) {
  host_of = hosts;
  givers = native_size;
  most_channels = tag_ub / native_size - 1;
  return zprivate_dup(z_private, &zsmall_comm);
}

void zsmall_world(zcomm *c) {
  zchannel *ch = &zcollstate_of(c)->channel;
  ch->asked = 1, ch->number = most_channels > 0 ? 1 : -1;
  /* Channel 1 is that of MPI_COMM_WORLD. In processes that do not assign it the number stays
   * unused. */
  channels = 1;
}

void zsmall_stop(void) {
  real.Comm_free(&zsmall_comm);
  free(host_of);
  host_of = NULL;
}

int zsmall_takes(const zcomm *c, const z_coll *a) {
  if (c->native_size < 2 || c->native_size > Z_FEW_RANKS) return 0;
  switch (a->op) {
  case Z_ALLGATHERV:
  case Z_ALLTOALLV:
  case Z_GATHERV:
  case Z_SCATTERV: return 1;
  default: return a->op == Z_BCAST && a->root == 0 && a->send_bytes <= Z_SMALL_BCAST;
  }
}

int zsmall_ready(zcomm *c) {
  zchannel *ch = &zcollstate_of(c)->channel;
  return ch->asked && (ch->asking || ch->number > 0);
}

int zsmall_ask(zcomm *c) {
  zchannel *ch = &zcollstate_of(c)->channel;
  if (ch->asked) return MPI_SUCCESS; /* no channel was left */
  ch->asked = ch->asking = 1;
  if (c->native_rank == 0) ch->number = channels < most_channels ? ++channels : -1;
  return real.Ibcast(&ch->number, 1, MPI_INT32_T, 0, c->native, &ch->request);
}

int zsmall_known(zcomm *c, int *known) {
  zchannel *ch = &zcollstate_of(c)->channel;
  int rc = MPI_SUCCESS;
  *known = 1;
  if (ch->asking && !(rc = real.Test(&ch->request, known, MPI_STATUS_IGNORE))) ch->asking = !*known;
  return rc;
}

int zsmall_world_rank(const zcomm *c, int local) { return c->world[c->rank_of[local]] - z_layout.offset; }

int zsmall_tag(zcomm *c, int *tag) {
  const zchannel *ch = &zcollstate_of(c)->channel;
  *tag = ch->number * givers + zsmall_world_rank(c, 0);
  return ch->asked && !ch->asking && ch->number > 0;
}

/* The bytes that this process sends to one other process in a stage, or receives from it. */
typedef struct block {
  const char *at; /* the address of the bytes */
  int64_t bytes;  /* the number of bytes */
} block;

/* A message of a stage or, if the message is long and stays inside the host, one of its pieces. */
typedef struct part {
  void *at;      /* the memory that is sent, or into which the message is received */
  int64_t bytes; /* the size of the message in bytes */
  /* the rank of the other process in zsmall_comm */
  int peer;
  int sends;           /* 1 if this process sends it, 0 if this process receives it */
  MPI_Request request; /* the native request of the message */
} part;

struct zsmall {
  zcomm *comm;
  /* the next stage in the channel's list of stages that have not started */
  zsmall *next;
  /* the number of parts, and of those at the front that have completed */
  int n, first;
  /* The index of the first of the parts that are started only when all before it have completed (n
   * if there are none). The communicator's next stage starts only after them. */
  int later;
  int started, rc;
  part parts[2 * (Z_FEW_RANKS - 1) * Z_PIECES];
};

int64_t zsmall_piece(const zcomm *c, int peer, int64_t bytes) {
  return bytes <= Z_PIECES * Z_PIECE && host_of[peer] == host_of[zsmall_world_rank(c, c->native_rank)] ? Z_PIECE
                                                                                                       : bytes;
}

static void add_message(zsmall *f, int local, int sends, block b) {
  int peer = zsmall_world_rank(f->comm, local);
  int64_t most = zsmall_piece(f->comm, peer, b.bytes), done = 0;
  do { /* an empty message is sent too */
    int64_t n = b.bytes - done < most ? b.bytes - done : most;
    f->parts[f->n++] = (part){(char *)(uintptr_t)b.at + done, n, peer, sends, MPI_REQUEST_NULL};
    done += n;
  } while (done < b.bytes);
}

int zsmall_source(const zcomm *c, int i, int64_t bytes) {
  int first = 0; /* the first local rank on the same host */
  if (bytes <= Z_FLAT_BCAST) return 0;
  while (host_of[zsmall_world_rank(c, first)] != host_of[zsmall_world_rank(c, i)]) first++;
  return i == first ? 0 : first;
}

int zsmall_passes_on(const zcomm *c, int64_t bytes) {
  for (int i = 0; i < c->native_size; i++)
    if (i != c->native_rank && zsmall_source(c, i, bytes) == c->native_rank) return 1;
  return 0;
}

/* Sets *b to the block that this process sends to local rank i in the stage *a. Returns 0 if it
 * sends no message to it, otherwise 1. `received` below does so for the block that this process
 * receives from local rank i. */
static int sent(const zcomm *c, const z_coll *a, int i, block *b) {
  int me = c->native_rank;
  *b = (block){a->send, a->send_bytes};
  switch (a->op) {
  case Z_BCAST: b->at = a->recv; return i > 0 && zsmall_source(c, i, a->send_bytes) == me;
  case Z_GATHERV: return i == a->root;
  case Z_ALLGATHERV: return 1;
  case Z_SCATTERV:
    if (me != a->root) return 0;
    break;
  default: break;
  }
  *b = (block){(const char *)a->send + a->send_displs[i], a->send_counts[i]};
  return 1;
}

static int received(const zcomm *c, const z_coll *a, int i, block *b) {
  int me = c->native_rank;
  *b = (block){a->recv, a->send_bytes};
  switch (a->op) {
  case Z_BCAST: return me > 0 && zsmall_source(c, me, a->send_bytes) == i;
  case Z_SCATTERV: return i == a->root;
  case Z_GATHERV:
    if (me != a->root) return 0;
    break;
  default: break;
  }
  *b = (block){(char *)a->recv + a->recv_displs[i], a->recv_counts[i]};
  return 1;
}

/* Copies the block that this process sends to itself in the stage *a from the send buffer to the
 * receive buffer, unless it is in place already. */
static void keep_own(const zcomm *c, const z_coll *a) {
  block from, to;
  int me = c->native_rank;
  if (a->op != Z_BCAST && sent(c, a, me, &from) && received(c, a, me, &to) && from.bytes > 0 && from.at != to.at)
    memcpy((char *)(uintptr_t)to.at, from.at, (size_t)from.bytes);
}

static void start(zsmall *f, int from, int to) {
  int tag;
  f->rc = zsmall_tag(f->comm, &tag) ? MPI_SUCCESS : MPI_ERR_OTHER;
  for (part *p = f->parts + from; p < f->parts + to && !f->rc; p++) {
    zmany m;
    if ((f->rc = zmany_begin(&m, p->bytes, MPI_BYTE))) return;
    f->rc = p->sends ? real.Isend(p->at, m.count, m.type, p->peer, tag, zsmall_comm, &p->request)
                     : real.Irecv(p->at, m.count, m.type, p->peer, tag, zsmall_comm, &p->request);
    zmany_end(&m);
  }
}

/* Starts the stages of c that wait for its channel, once the channel is known. They start in order:
 * all messages of a stage before those of the next. Returns an MPI error code. */
static int start_all(zcomm *c) {
  zchannel *ch = &zcollstate_of(c)->channel;
  int known, rc = zsmall_known(c, &known);
  while (!rc && known && ch->first && !ch->passing_on) {
    zsmall *f = ch->first;
    if (!(ch->first = f->next)) ch->last = NULL;
    f->started = 1;
    ch->passing_on = f->later < f->n;
    start(f, 0, f->later);
  }
  return rc;
}

int zsmall_begin(zcomm *c, const z_coll *a, zsmall **out) {
  zsmall *f = malloc(sizeof *f);
  if (!f) return MPI_ERR_NO_MEM;
  f->comm = c;
  f->next = NULL;
  f->n = f->first = f->started = 0;
  f->rc = MPI_SUCCESS;
  /* In an alltoall ranks with an empty block send no message, because both ends know its size */
  int whole = a->op != Z_ALLTOALLV;
  for (int sends = 0; sends < 2; sends++) {
    f->later = f->n;                           /* a broadcast is passed on after it has arrived */
    for (int k = 1; k < c->native_size; k++) { /* each process begins with another peer */
      int i = (c->native_rank + (sends ? k : c->native_size - k)) % c->native_size;
      block b;
      if ((sends ? sent : received)(c, a, i, &b) && (whole || b.bytes > 0)) add_message(f, i, sends, b);
    }
  }
  if (a->op != Z_BCAST || !f->later) f->later = f->n;
  keep_own(c, a);
  zchannel *ch = &zcollstate_of(c)->channel;
  if (ch->last) ch->last->next = f;
  else ch->first = f;
  ch->last = f;
  *out = f;
  return start_all(c);
}

static int pass_on(zsmall *f) {
  start(f, f->later, f->n);
  f->later = f->n;
  zcollstate_of(f->comm)->channel.passing_on = 0;
  return f->rc ? f->rc : start_all(f->comm);
}

int zsmall_test(zsmall *f, int *over) {
  *over = 0;
  int rc = f->started ? f->rc : start_all(f->comm);
  if (rc || !f->started) return rc;
  for (int flag; f->first < f->n; f->first++) {
    if (f->first == f->later && (rc = pass_on(f))) return rc;
    rc = real.Test(&f->parts[f->first].request, &flag, MPI_STATUS_IGNORE);
    if (rc || !flag) return rc;
  }
  *over = 1;
  return MPI_SUCCESS;
}
