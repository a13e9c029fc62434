/* Native stages among few processes without native collectives (smallstage.c). All processes of a
 * local part decide alike. */
#ifndef ZIPPER_SMALLSTAGE_H
#define ZIPPER_SMALLSTAGE_H
#include "core/comm.h"

/* Makes zsmall_comm. hosts[i] is the host of native rank i; the array is freed in the end. MPI
 * error code */
int zsmall_start(int tag_ub, int native_size, int hosts[]);
void zsmall_world(zcomm *c); /* gives MPI_COMM_WORLD its channel */
void zsmall_stop(void);

typedef struct zsmall zsmall; /* a stage under way */

int zsmall_takes(const zcomm *c, const z_coll *a); /* whether the stage may be done like this */
/* Whether the communicator has the channel that this needs, or will have it. If not, the stage is
 * done natively, with zsmall_ask beside it, until zsmall_known says that there is one, or that
 * there is none left. */
int zsmall_ready(zcomm *c);
int zsmall_ask(zcomm *c); /* MPI error code, as the next two */
int zsmall_known(zcomm *c, int *known);
int zsmall_begin(zcomm *c, const z_coll *args, zsmall **out); /* *out is to be freed when it is over or has failed */
int zsmall_test(zsmall *f, int *over);

/* For leaffast.c, which sends the same messages. */
extern MPI_Comm zsmall_comm;
int zsmall_tag(zcomm *c, int *tag);               /* 0: none is known */
int zsmall_world_rank(const zcomm *c, int local); /* of zsmall_comm */
/* The local rank that sends local rank i a broadcast of local rank 0. Of many bytes only one
 * process on each other host gets them from rank 0, and passes them on. */
int zsmall_source(const zcomm *c, int i, int64_t bytes);
int zsmall_passes_on(const zcomm *c, int64_t bytes); /* whether this process does */
/* How many bytes of a message between this process and another one go at a time. Both ends come to
 * the same number. */
int64_t zsmall_piece(const zcomm *c, int peer, int64_t bytes);
#endif
