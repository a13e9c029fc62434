/* Native stages among few processes without native collectives (smallstage.c). All processes of a
 * local part choose the same way for each stage. */
#ifndef ZIPPER_SMALLSTAGE_H
#define ZIPPER_SMALLSTAGE_H
#include "core/comm.h"

/* Makes zsmall_comm. hosts[i] identifies the host of native rank i; zsmall_stop frees the array.
 * Returns an MPI error code. */
int zsmall_start(int tag_ub, int native_size, int hosts[]);
void zsmall_world(zcomm *c); /* assigns MPI_COMM_WORLD its channel */
void zsmall_stop(void);

typedef struct zsmall zsmall; /* a stage in progress */

/* Whether a stage may be done this way. */
int zsmall_takes(const zcomm *c, const z_coll *a);
/* Whether the communicator has a channel or will get one. If not, the stage is done natively, with
 * zsmall_ask beside it, until zsmall_known reports that there is a channel, or that none was
 * left. */
int zsmall_ready(zcomm *c);
int zsmall_ask(zcomm *c); /* returns an MPI error code, like the next three */
int zsmall_known(zcomm *c, int *known);
/* Starts a stage. The caller frees *out once it has completed or failed. */
int zsmall_begin(zcomm *c, const z_coll *args, zsmall **out);
int zsmall_test(zsmall *f, int *over);

/* The part that leaffast.c uses to send the same messages. */
extern MPI_Comm zsmall_comm;
int zsmall_tag(zcomm *c, int *tag);               /* returns 0 if the communicator has no known channel */
int zsmall_world_rank(const zcomm *c, int local); /* the rank in zsmall_comm of a local rank */
/* Returns the local rank that sends local rank i a broadcast of local rank 0. A large broadcast is
 * sent to only one process on each other host, which passes it on. */
int zsmall_source(const zcomm *c, int i, int64_t bytes);
int zsmall_passes_on(const zcomm *c, int64_t bytes); /* whether this process passes it on */
/* Returns the size in bytes of the pieces of a message between this process and a peer. Both ends
 * compute the same size. */
int64_t zsmall_piece(const zcomm *c, int peer, int64_t bytes);
#endif
