/* The native MPI library, as the shim calls it. The shim is compiled once for each MPI library.
 *
 * Native MPI is called through `real` only, never by name: our own symbols would answer. A function
 * z_X has the signature of MPI_X, is named `own` in a policy file and is called by the generated
 * wrapper when the job spans clusters; it handles communicators that do not span, too.
 *
 * Names. z_ or z and a thing (zcomm_, zreq_, ztype_, zmap_) is the shim's; ze_ is the engine's. */
#ifndef ZIPPER_REAL_H
#define ZIPPER_REAL_H
/* generated: struct z_real, one pointer for each function of this mpi.h; Z_HAVE_X; prototypes of
 * z_X */
#include "natives.h"
#include <mpi.h>

/* Of what is only declared, too: so its address is known when the library is linked */
#pragma GCC visibility push(hidden)

/* The standard ABI knows C alone: its functions number handles as int. */
#ifdef Z_STANDARD_ABI
typedef int MPI_Fint;
#define Z_TYPE_OF MPI_Type_fromint /* MPICH's header of that ABI has MPI_Type_f2c too, Open MPI's has not */
#else
#define Z_TYPE_OF MPI_Type_f2c
#endif

/* Whether Open MPI is below: known to the shim of one library, asked by that of the standard
 * ABI. */
#ifdef Z_STANDARD_ABI
int z_on_open_mpi(void);
#elif defined(OPEN_MPI)
static inline int z_on_open_mpi(void) { return 1; }
#else
static inline int z_on_open_mpi(void) { return 0; }
#endif

extern struct z_real real; /* dlsym RTLD_NEXT "PMPI_X", filled when the library is loaded */

/* > 0: this thread is in a native call whose internals may come through our symbols */
extern _Thread_local int z_inside;

/* A native call whose internals may come back through our symbols with handles that are not what
 * they look like: z_enter(); rc = real.X(…); z_leave(); */
static inline void z_enter(void) { z_inside++; }
static inline void z_leave(void) { z_inside--; }

#pragma GCC visibility pop
#endif
