/* Native communicators of the shim's own. */
#ifndef ZIPPER_PRIVCOMM_H
#define ZIPPER_PRIVCOMM_H
#include "core/real.h"

#pragma GCC visibility push(hidden)

extern MPI_Comm z_private, z_self; /* dups of the native world and of MPI_COMM_SELF */

/* Tags of z_private. ZTAG_LEADERS begins a range. The lower bits of ZTAG_CONTEXT and ZTAG_MEET are
 * those of a tag of the program. */
enum { ZTAG_PLACEHOLDER = 0, ZTAG_NOBODY = 1, ZTAG_LEADERS = 2, ZTAG_CONTEXT = 1 << 13, ZTAG_MEET = 1 << 14 };
static inline int zprivate_tag(int use, int tag) { return use | (tag & (ZTAG_CONTEXT - 1)); }

int zprivate_start(void); /* makes both. MPI error code */
void zprivate_stop(void);
int zprivate_dup(MPI_Comm from, MPI_Comm *out); /* MPI error code */
void zprivate_keep_progressing(void);           /* before the program frees a communicator of the native library */

#pragma GCC visibility pop
#endif
