/* The native MPI library, as the shim calls it. The shim is compiled once for each MPI library.
 *
 * Native MPI is called through `real` only, because a call by name would resolve to the shim's own
 * symbols. A function z_X has the signature of MPI_X and, in most cases, the policy `own` in a
 * policy file. The generated wrapper calls it in a process that takes part in a job (z_is_off),
 * also for communicators that do not span clusters.
 *
 * Names that begin with z_, or with z and a noun (zcomm_, zreq_, ztype_, zmap_), are the shim's.
 * Names that begin with ze_ are the engine's. */
#ifndef ZIPPER_REAL_H
#define ZIPPER_REAL_H
/* The generated header: struct z_real, with one pointer for each function of this mpi.h; Z_HAVE_X;
 * prototypes of z_X. */
#include "natives.h"
#include <mpi.h>

/* Hidden visibility also applies to functions that are only declared here, so that their addresses
 * are known at link time. */
#pragma GCC visibility push(hidden)

/* The standard ABI covers C alone; its functions number handles as int. */
#ifdef Z_STANDARD_ABI
typedef int MPI_Fint;
/* The function that converts a Fortran handle of a datatype to a C handle. MPI_Type_f2c is in
 * MPICH's header of the standard ABI, but not in Open MPI's. */
#define Z_TYPE_OF MPI_Type_fromint
#else
#define Z_TYPE_OF MPI_Type_f2c
#endif

/* Returns whether the native library is Open MPI. A shim for one library knows this at compile
 * time; the shim of the standard ABI asks the library. */
#ifdef Z_STANDARD_ABI
int z_on_open_mpi(void);
#elif defined(OPEN_MPI)
static inline int z_on_open_mpi(void) { return 1; }
#else
static inline int z_on_open_mpi(void) { return 0; }
#endif

/* pointers to the native library's PMPI_ functions, looked up by dlsym(RTLD_NEXT) when the shim is
 * loaded */
extern struct z_real real;

/* The number of native calls in which this thread is that may call back through the shim's symbols.
 * While it is greater than 0 the shim passes calls through to native MPI. */
extern _Thread_local int z_inside;

/* Discards the result of a native call on which nothing depends. The compiler rejects a call
 * through `real` whose result is unused (cgo/libmmpi/gen, mustCheck). */
static inline void z_ignore(int rc) { (void)rc; }

/* Enclose a native call that may call back through the shim's symbols with handles that must be
 * passed through: z_enter(); rc = real.X(…); z_leave(); */
static inline void z_enter(void) { z_inside++; }
static inline void z_leave(void) { z_inside--; }

#pragma GCC visibility pop
#endif
