/* Native communicators that the shim uses itself and the program does not see. */
#ifndef ZIPPER_PRIVCOMM_H
#define ZIPPER_PRIVCOMM_H
#include "core/real.h"

#pragma GCC visibility push(hidden)

extern MPI_Comm z_private, z_self; /* duplicates of native MPI_COMM_WORLD and of MPI_COMM_SELF */

/* The tags of messages on z_private. ZTAG_LEADERS is the first of a range. Those after it are
 * combined with the lower bits of a tag of the program (zprivate_tag). ZTAG_NATIVE is for the
 * communicators that native MPI makes of z_private: Open MPI's messages for MPI_Comm_create_group
 * have the tag that it is passed. */
enum {
  ZTAG_PLACEHOLDER = 0,
  ZTAG_NOBODY = 1,
  ZTAG_BALLOT = 2,
  ZTAG_LEADERS = 3,
  ZTAG_CONTEXT = 1 << 13,
  ZTAG_MEET = 1 << 14,
  ZTAG_NATIVE = 3 << 13
};
/* Returns the tag of a message on z_private for a call to which the program has passed `tag`; `use`
 * is ZTAG_CONTEXT, ZTAG_MEET or ZTAG_NATIVE. */
static inline int zprivate_tag(int use, int tag) { return use | (tag & (ZTAG_CONTEXT - 1)); }

/* Makes the native communicators z_private and z_self. Returns an MPI error code. */
int zprivate_start(void);
void zprivate_stop(void); /* frees z_private and z_self */
/* Makes *out a duplicate of a native communicator, by messages and without a collective. All ranks
 * call it. Returns an MPI error code. */
int zprivate_dup(MPI_Comm from, MPI_Comm *out);
/* Runs a native nonblocking collective on z_self once, if the library is Open MPI, so that its
 * other nonblocking collectives go on after a communicator has been freed (privcomm.c). It must be
 * called before the program frees a native communicator. */
void zprivate_keep_progressing(void);

#pragma GCC visibility pop
#endif
