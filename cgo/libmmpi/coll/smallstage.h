/* Native stages among few processes without native collectives (smallstage.c). All processes of a
 * local part choose the same way for each stage. */
#ifndef ZIPPER_SMALLSTAGE_H
#define ZIPPER_SMALLSTAGE_H
#include "core/comm.h"

/* Makes zsmall_comm, a duplicate of native MPI_COMM_WORLD, whose size is native_size and whose
 * MPI_TAG_UB is tag_ub. hosts[i] is the first native rank on the host of native rank i; zsmall_stop
 * frees the array. Returns an MPI error code. */
int zsmall_start(int tag_ub, int native_size, int hosts[]);
/* assigns channel 1 to c, the spanning communicator of MPI_COMM_WORLD */
void zsmall_world(zcomm *c);
void zsmall_stop(void); /* frees zsmall_comm and the array of hosts */

/* a stage in progress: the part of a collective that the processes of one cluster do by messages */
typedef struct zsmall zsmall;

/* Returns whether the native collective *a on the local part of c can be done by messages, which
 * depends on its kind, its size, and the number of processes. */
int zsmall_takes(const zcomm *c, const z_coll *a);
/* Returns whether c has a channel or has requested one, so that zsmall_begin may be called. If the
 * result is 0 the stage is done by a native collective. The caller then also calls zsmall_ask, and
 * zsmall_known until *known is set: c has a channel then, or no channel was left. */
int zsmall_ready(zcomm *c);
/* Starts to request a channel for c from local rank 0, if none has been requested. All processes of
 * the local part call it. Returns an MPI error code. */
int zsmall_ask(zcomm *c);
/* Sets *known to 1 if the channel that zsmall_ask has requested for c is known, or if none is being
 * requested, otherwise to 0. Returns an MPI error code. */
int zsmall_known(zcomm *c, int *known);
/* Starts the native collective *args on the local part of c by messages, and sets *out to the
 * stage. The caller frees *out once the stage has completed or failed. Returns an MPI error
 * code. */
int zsmall_begin(zcomm *c, const z_coll *args, zsmall **out);
/* Advances the stage f, and sets *over to 1 once it has completed, otherwise to 0. Returns an MPI
 * error code. */
int zsmall_test(zsmall *f, int *over);

/* The rest of this file is used by leaffast.c too, which sends the same messages. */

/* The native communicator on which the messages of all stages are sent, a duplicate of
 * MPI_COMM_WORLD. */
extern MPI_Comm zsmall_comm;
/* Sets *tag to the tag on zsmall_comm of the messages of c's stages. Returns 1, or 0 if c has no
 * channel or its channel is not known yet. */
int zsmall_tag(zcomm *c, int *tag);
/* returns the rank in zsmall_comm of local rank `local` of c */
int zsmall_world_rank(const zcomm *c, int local);
/* Returns the local rank of c from which local rank i receives a broadcast of `bytes` bytes from
 * local rank 0. A large broadcast is sent to only one process on each other host, which passes it
 * on. */
int zsmall_source(const zcomm *c, int i, int64_t bytes);
/* returns whether this process passes on a broadcast of `bytes` bytes from local rank 0 of c */
int zsmall_passes_on(const zcomm *c, int64_t bytes);
/* Returns the size in bytes of the pieces into which a message of `bytes` bytes between this
 * process and rank `peer` of zsmall_comm is cut. Both ends compute the same size. */
int64_t zsmall_piece(const zcomm *c, int peer, int64_t bytes);
#endif
