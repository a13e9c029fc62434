/* The native MPI library, as the shim calls it. The shim is compiled once for each MPI library.
 *
 * Native MPI is called through `real` only: a call by name would come back to our own symbols. A
 * function z_X has the signature of MPI_X and is named `own` in a policy file. The generated
 * wrapper calls it when the job spans clusters, also for communicators that do not span.
 *
 * Names: what begins with z_, or with z and a thing (zcomm_, zreq_, ztype_, zmap_), is the shim's.
 * What begins with ze_ is the engine's. */
#ifndef ZIPPER_REAL_H
#define ZIPPER_REAL_H
/* generated: struct z_real, one pointer for each function of this mpi.h; Z_HAVE_X; prototypes of
 * z_X */
#include "natives.h"
#include <mpi.h>

/* Also for what is only declared here, so that its address is known when the library is linked. */
#pragma GCC visibility push(hidden)

/* The standard ABI knows C alone: its functions number handles as int. */
#ifdef Z_STANDARD_ABI
typedef int MPI_Fint;
#define Z_TYPE_OF MPI_Type_fromint /* MPICH's header of that ABI has MPI_Type_f2c too, Open MPI's has not */
#else
#define Z_TYPE_OF MPI_Type_f2c
#endif

/* Whether the native library is Open MPI. The shim of one library knows it, that of the standard
 * ABI has to ask. */
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

/* Takes the result of a native call that nothing depends on. The compiler rejects a call of `real`
 * whose result is not used (cgo/libmmpi/gen, mustCheck). */
static inline void z_ignore(int rc) { (void)rc; }

/* Put around a native call that may come back through our symbols, with handles that are not what
 * they look like there: z_enter(); rc = real.X(…); z_leave(); */
static inline void z_enter(void) { z_inside++; }
static inline void z_leave(void) { z_inside--; }

#pragma GCC visibility pop
#endif
