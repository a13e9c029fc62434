/* Native communicators of the shim's own. */
#ifndef ZIPPER_PRIVCOMM_H
#define ZIPPER_PRIVCOMM_H
#include "core/real.h"

#pragma GCC visibility push(hidden)

extern MPI_Comm z_private, z_self; /* duplicates of native MPI_COMM_WORLD and of MPI_COMM_SELF */

/* Tags on z_private. ZTAG_LEADERS is the first of a range. The lower bits of ZTAG_CONTEXT and
 * ZTAG_MEET tags are those of a tag of the program. */
enum { ZTAG_PLACEHOLDER = 0, ZTAG_NOBODY = 1, ZTAG_LEADERS = 2, ZTAG_CONTEXT = 1 << 13, ZTAG_MEET = 1 << 14 };
/* Returns the tag on z_private for a tag of the program; `use` is ZTAG_CONTEXT or ZTAG_MEET. */
static inline int zprivate_tag(int use, int tag) { return use | (tag & (ZTAG_CONTEXT - 1)); }

/* Makes z_private and z_self, and returns an MPI error code. */
int zprivate_start(void);
void zprivate_stop(void); /* frees z_private and z_self */
/* Duplicates a native communicator by messages alone, and returns an MPI error code. */
int zprivate_dup(MPI_Comm from, MPI_Comm *out);
/* Works around a fault of Open MPI's libnbc. Call it before the program frees a native
 * communicator. */
void zprivate_keep_progressing(void);

#pragma GCC visibility pop
#endif
