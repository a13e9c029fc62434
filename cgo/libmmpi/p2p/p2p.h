/* Declarations that the point-to-point files share. */
#ifndef ZIPPER_P2P_H
#define ZIPPER_P2P_H
#include "core/error.h"
#include "core/privcomm.h"
#include "core/status.h"
#include "request/record.h"
#include "request/request.h"
#include "request/wait.h"
#include "type/exchange.h"
#include "type/type.h"
#include <string.h>

/* The mode of a send: that of MPI_Send, MPI_Ssend, MPI_Rsend or MPI_Bsend; P2P_COPY is that of
 * MPI_Bsend inside the cluster. */
enum p2p_mode { P2P_STANDARD, P2P_SYNCHRONOUS, P2P_READY, P2P_BUFFERED, P2P_COPY };

/* Counts a message to native rank dest of comm for zipper run --record. comm is a communicator of
 * this cluster or the local part of a spanning one. */
void p2p_record(MPI_Comm comm, int dest, int64_t count, MPI_Datatype type);
/* Counts a message to native rank dest of comm for zipper run --record (p2p_record), if messages
 * are recorded and dest is not MPI_PROC_NULL. */
static inline void p2p_note(MPI_Comm comm, int dest, int64_t count, MPI_Datatype type) {
  if (__builtin_expect(z_layout.recording, 0) && dest >= 0) p2p_record(comm, dest, count, type);
}

/* Sends a message to native rank dest of comm by the native blocking function of a mode, and
 * returns its MPI error code. */
static inline int p2p_native_send(enum p2p_mode mode, const void *buf, int count, MPI_Datatype type, int dest, int tag,
                                  MPI_Comm comm) {
  int rc;
  p2p_note(comm, dest, count, type);
  switch (mode) {
  case P2P_SYNCHRONOUS: Z_WAITS(rc = real.Ssend(buf, count, type, dest, tag, comm)); break;
  case P2P_READY: Z_WAITS(rc = real.Rsend(buf, count, type, dest, tag, comm)); break;
  default: Z_WAITS(rc = real.Send(buf, count, type, dest, tag, comm));
  }
  return rc;
}

/* Starts to send a message to native rank dest of comm by the native nonblocking function of a
 * mode, sets *request, and returns the function's MPI error code. */
static inline int p2p_native_isend(enum p2p_mode mode, const void *buf, int count, MPI_Datatype type, int dest, int tag,
                                   MPI_Comm comm, MPI_Request *request) {
  p2p_note(comm, dest, count, type);
  switch (mode) {
  case P2P_SYNCHRONOUS: return real.Issend(buf, count, type, dest, tag, comm, request);
  case P2P_READY: return real.Irsend(buf, count, type, dest, tag, comm, request);
  default: return real.Isend(buf, count, type, dest, tag, comm, request);
  }
}

/* Returns the rank in c's local part of a peer, or Z_REMOTE if the peer is in another cluster.
 * MPI_PROC_NULL and MPI_ANY_SOURCE are returned unchanged. */
static inline int p2p_native_rank(const zcomm *c, int peer) { return peer >= 0 ? c->native_of[c->base + peer] : peer; }

/* Checks the arguments of a point-to-point call on c: the count, the type, the peer as the program
 * numbers it, and the tag. `receiving` is 1 if wildcards are allowed. Raises an error and returns
 * its code if one is wrong, otherwise returns MPI_SUCCESS. */
int p2p_check(zcomm *c, const char *function, int64_t count, MPI_Datatype type, int peer, int tag, int receiving);

/* Returns whether a receive from `source`, as the program numbers it, can be posted natively at
 * once, because the source is MPI_PROC_NULL, or is in this cluster and no earlier receive in the
 * engine could match the same message. */
int p2p_receives_natively(const zcomm *c, int source, int tag);

/* Stores a datatype in r->type and retains it until r is freed, because the program may free its
 * handle at once. */
void p2p_hold_type(zreq *r, MPI_Datatype type);

/* Unpacks the message that the engine has received for r from r->packed into the program's buffer.
 * Does nothing if native MPI has received the message there, or the receive was cancelled. It
 * serves as r->finish, and returns an MPI error class. */
int p2p_unpack(zreq *r);

/* Start the send or the receive of request r on r->comm, whose arguments have been checked,
 * natively or in the engine. They return an MPI error class; after an error the caller calls
 * p2p_failed. */
int p2p_start_send(zreq *r, const void *buf, int64_t count, MPI_Datatype type, int dest, int tag, enum p2p_mode mode);
int p2p_start_recv(zreq *r, void *buf, int64_t count, MPI_Datatype type, int source, int tag);

/* Marks r as an operation that native MPI does: r is complete once its native request r->native
 * is. */
void p2p_now_native(zreq *r);

/* Starts to send a copy of the program's data to rank `native` of the native communicator comm, by
 * the native function of a mode. r need not have a communicator. Returns an MPI error class. */
int p2p_start_copy(zreq *r, const void *buf, int count, MPI_Datatype type, int native, int tag, MPI_Comm comm,
                   enum p2p_mode mode);

/* Starts the buffered send of a persistent request r to a peer in another cluster. r->raised is set
 * to 1 if an error has been raised. Returns an MPI error class. */
int p2p_start_bsend(zreq *r, const void *buf, int count, MPI_Datatype type, int dest, int tag);

/* Decides whether native MPI or the engine sends a message to dest. Returns NULL if native MPI
 * sends the message, to rank *native of comm, because dest is in this cluster or the communicator
 * does not span clusters. Otherwise returns the spanning communicator, also if it has no rank dest,
 * which p2p_check reports. */
static inline zcomm *p2p_route(MPI_Comm comm, int dest, int *native) {
  *native = dest;
  zcomm *c = dest == MPI_PROC_NULL ? NULL : zcomm_find(comm);
  if (!c || (uint32_t)dest >= (uint32_t)c->peers || p2p_native_rank(c, dest) == Z_REMOTE) return c;
  *native = p2p_native_rank(c, dest);
  return NULL;
}

/* Decides as p2p_route does for a send. In a job that goes on when a cluster is lost, the result is
 * the spanning communicator for every destination, because a send that native MPI does must end too
 * when the communicator is revoked. */
static inline zcomm *p2p_route_send(MPI_Comm comm, int dest, int *native) {
  zcomm *c = p2p_route(comm, dest, native);
  if (__builtin_expect(c || !z_layout.on_loss || dest == MPI_PROC_NULL, 1)) return c;
  return zcomm_find(comm);
}

/* Raises the error class rc of a request r whose operation did not start, unless it has been
 * raised, frees r, and returns the code that the MPI function must return. */
int p2p_failed(zreq *r, int rc);

/* The functions of z_native for point-to-point messages inside a cluster, which the engine calls;
 * abi.h describes them. */
int z_cb_improbe(void *comm, int32_t native_source, int32_t tag, z_probe *out);
int z_cb_iprobe(void *comm, int32_t native_source, int32_t tag, z_probe *out);
int z_cb_imrecv(z_cell *cell, uint64_t message);
int z_cb_irecv(z_cell *cell);
int z_cb_test(z_cell *cell);
int z_cb_cancel(z_cell *cell);
#endif
