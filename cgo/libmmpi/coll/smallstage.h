/* Native stages among few processes without native collectives (smallstage.c). All processes of a
 * local part choose the same way for each stage. */
#ifndef ZIPPER_SMALLSTAGE_H
#define ZIPPER_SMALLSTAGE_H
#include "core/comm.h"

/* Makes zsmall_comm. hosts[i] identifies the host of native rank i; zsmall_stop frees the array.
 * Returns an MPI error code. */
int zsmall_start(int tag_ub, int native_size, int hosts[]);
void zsmall_world(zcomm *c); /* assigns MPI_COMM_WORLD its channel */
void zsmall_stop(void);      /* frees zsmall_comm and the array of hosts */

typedef struct zsmall zsmall; /* a stage in progress */

/* Returns whether a native stage of a collective can be done by messages among few processes. */
int zsmall_takes(const zcomm *c, const z_coll *a);
/* Returns whether the communicator has a channel or will get one. If the result is 0 the stage is
 * done natively, and the caller also calls zsmall_ask, and then zsmall_known until *known is set:
 * the communicator has a channel then, or no channel was left. */
int zsmall_ready(zcomm *c);
/* Requests a channel for the communicator, without waiting for the answer. Returns an MPI error
 * code. */
int zsmall_ask(zcomm *c);
/* Sets *known to 1 once the request of zsmall_ask has been answered, otherwise to 0. Returns an MPI
 * error code. */
int zsmall_known(zcomm *c, int *known);
/* Starts a stage, which *out represents. The caller frees *out once the stage has completed or
 * failed. Returns an MPI error code. */
int zsmall_begin(zcomm *c, const z_coll *args, zsmall **out);
/* Advances a stage, and sets *over to 1 once the stage has completed, otherwise to 0. Returns an
 * MPI error code. */
int zsmall_test(zsmall *f, int *over);

/* The rest of this file is used by leaffast.c too, which sends the same messages. */

/* The native communicator of the stages' messages. */
extern MPI_Comm zsmall_comm;
/* Sets *tag to the tag of the communicator's messages. Returns 1, or 0 if the communicator has no
 * known channel. */
int zsmall_tag(zcomm *c, int *tag);
int zsmall_world_rank(const zcomm *c, int local); /* returns the rank in zsmall_comm of a local rank */
/* Returns the local rank from which local rank i receives a broadcast of local rank 0. A large
 * broadcast is sent to only one process on each other host, which passes it on. */
int zsmall_source(const zcomm *c, int i, int64_t bytes);
int zsmall_passes_on(const zcomm *c, int64_t bytes); /* returns whether this process passes such a broadcast on */
/* Returns the size in bytes of the pieces of a message between this process and a peer. Both ends
 * compute the same size. */
int64_t zsmall_piece(const zcomm *c, int peer, int64_t bytes);
#endif
