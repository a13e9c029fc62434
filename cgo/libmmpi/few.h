/* Native stages among few processes without native collectives (few.c). All processes of a local part decide alike. Owner: comms. */
#ifndef ZIPPER_FEW_H
#define ZIPPER_FEW_H
#include "shim.h"

int zfew_start(int tag_ub, int native_size, int hosts[]); /* the native ones; hosts[i] is that of native rank i, and freed in the end. MPI error code */
void zfew_world(zcomm *c);                             /* gives MPI_COMM_WORLD its lane */
void zfew_stop(void);

typedef struct zfew zfew; /* a stage under way */

int zfew_takes(const zcomm *c, const z_coll *a);              /* whether the stage may be done like this */
int zfew_ready(zcomm *c);                                     /* whether the communicator has, or will have, what that needs; */
int zfew_ask(zcomm *c);                                       /* if not, the stage is done natively, and this beside it */
int zfew_known(zcomm *c, int *known);                         /* until it is known there, or that there is none */
int zfew_begin(zcomm *c, const z_coll *args, zfew **out);     /* MPI error code, as below. *out is to be freed when it is over or has failed */
int zfew_test(zfew *f, int *over);

/* For follow.c, which sends the same messages. */
extern MPI_Comm zfew_stages;
int zfew_tag(zcomm *c, int *tag); /* 0: none is known */
int zfew_leader(const zcomm *c);  /* local rank 0, as a rank of zfew_stages */
#endif
