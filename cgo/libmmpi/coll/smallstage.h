/* Native stages among few processes without native collectives (smallstage.c). All processes of a
 * local part decide alike. */
#ifndef ZIPPER_SMALLSTAGE_H
#define ZIPPER_SMALLSTAGE_H
#include "core/comm.h"

/* the native ones; hosts[i] is that of native rank i, and freed in the end. MPI error code */
int zsmall_start(int tag_ub, int native_size, int hosts[]);
void zsmall_world(zcomm *c); /* gives MPI_COMM_WORLD its channel */
void zsmall_stop(void);

typedef struct zsmall zsmall; /* a stage under way */

int zsmall_takes(const zcomm *c, const z_coll *a); /* whether the stage may be done like this */
/* whether the communicator has, or will have, what that needs; */
int zsmall_ready(zcomm *c);
/* if not, the stage is done natively, and this beside it */
int zsmall_ask(zcomm *c);
int zsmall_known(zcomm *c, int *known); /* until it is known there, or that there is none */
/* MPI error code, as below. *out is to be freed when it is over or has failed */
int zsmall_begin(zcomm *c, const z_coll *args, zsmall **out);
int zsmall_test(zsmall *f, int *over);

/* For leaffast.c, which sends the same messages. */
extern MPI_Comm zsmall_comm;
int zsmall_tag(zcomm *c, int *tag); /* 0: none is known */
int zsmall_leader(const zcomm *c);  /* local rank 0, as a rank of zsmall_comm */
#endif
