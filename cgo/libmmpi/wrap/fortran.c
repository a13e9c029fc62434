/* MPI_Alltoallw, MPI_Ialltoallw, MPI_Comm_idup and MPI_Comm_idup_with_info in Fortran.
 *
 * MPI_Alltoallw and MPI_Ialltoallw: Open MPI's functions convert as many types to C handles as the
 * native communicator has ranks, which are only a part of those of a spanning communicator. All
 * other arguments are converted correctly. So the program's own types are kept for coll/data.c.
 *
 * Since Open MPI 6 these functions also store in the returned request what is to be freed with it,
 * as if it were one of the native library's collectives. So they get such a request, which has
 * completed by then (coll/run.c), and the program gets the shim's.
 *
 * Duplications: Open MPI's functions let C store the new communicator in a variable of their own,
 * and convert it before they return. The shim has it later, when the request completes, and stores
 * it in the program's variable. */
#define _GNU_SOURCE
#include "coll/coll.h"
#include "comm/comm.h"
#include <dlfcn.h>

#ifdef OPEN_MPI
#define BUFFERS                                                                                              \
  void *in, MPI_Fint *sc, MPI_Fint *sd, MPI_Fint *from, void *out, MPI_Fint *rc, MPI_Fint *rd, MPI_Fint *to, \
      MPI_Fint *comm
#define BLOCKING(NAME)                                               \
  typedef void NAME##type(BUFFERS, MPI_Fint *ierr);                  \
  __attribute__((visibility("default"))) NAME##type NAME;            \
  void NAME(BUFFERS, MPI_Fint *ierr) {                               \
    NAME##type *native = (NAME##type *)dlsym(RTLD_NEXT, #NAME);      \
    if (!z_is_off() && !z_inside && zcomm_find(MPI_Comm_f2c(*comm))) \
      zfortran_types = (struct zfortran_types){from, to};            \
    native(in, sc, sd, from, out, rc, rd, to, comm, ierr);           \
  }
#define NONBLOCKING(NAME)                                              \
  typedef void NAME##type(BUFFERS, MPI_Fint *request, MPI_Fint *ierr); \
  __attribute__((visibility("default"))) NAME##type NAME;              \
  void NAME(BUFFERS, MPI_Fint *request, MPI_Fint *ierr) {              \
    NAME##type *native = (NAME##type *)dlsym(RTLD_NEXT, #NAME);        \
    MPI_Request mine = MPI_REQUEST_NULL;                               \
    if (!z_is_off() && !z_inside && zcomm_find(MPI_Comm_f2c(*comm))) { \
      zfortran_types = (struct zfortran_types){from, to};              \
      zfortran_request = &mine;                                        \
    }                                                                  \
    native(in, sc, sd, from, out, rc, rd, to, comm, request, ierr);    \
    zfortran_request = NULL;                                           \
    if (mine == MPI_REQUEST_NULL) return;                              \
    MPI_Request other = MPI_Request_f2c(*request);                     \
    int failed = real.Wait(&other, MPI_STATUS_IGNORE);                 \
    if (failed && ierr) *ierr = failed;                                \
    *request = MPI_Request_c2f(mine);                                  \
  }
BLOCKING(mpi_alltoallw_)
NONBLOCKING(mpi_ialltoallw_)
/* the function that Fortran's module mpi_f08 calls */
BLOCKING(ompi_alltoallw_f)
NONBLOCKING(ompi_ialltoallw_f)
/* The functions that Fortran's module mpi_f08 calls since Open MPI 6, with descriptors of the
 * buffers. */
BLOCKING(ompi_alltoallw_wrapper_f08)
NONBLOCKING(ompi_ialltoallw_wrapper_f08)
BLOCKING(ompi_alltoallw_wrapper_f08_c)
NONBLOCKING(ompi_ialltoallw_wrapper_f08_c)

/* Defines a Fortran function with these parameters, `out` among them; the further arguments are
 * those of the native function, where `place` stands for out. */
#define DUPLICATING(NAME, PARAMETERS, ...)                                                                  \
  typedef void NAME##type PARAMETERS;                                                                       \
  __attribute__((visibility("default"))) NAME##type NAME;                                                   \
  void NAME PARAMETERS {                                                                                    \
    NAME##type *native = (NAME##type *)dlsym(RTLD_NEXT, #NAME);                                             \
    MPI_Fint ignored, *place = out;                                                                         \
    if (!z_is_off() && !z_inside && zcomm_find(MPI_Comm_f2c(*comm))) place = &ignored, zcomm_fortran = out; \
    native(__VA_ARGS__);                                                                                    \
    zcomm_fortran = NULL;                                                                                   \
  }
#define IDUP(NAME) \
  DUPLICATING(NAME, (MPI_Fint * comm, MPI_Fint * out, MPI_Fint * request, MPI_Fint * ierr), comm, place, request, ierr)
IDUP(mpi_comm_idup_)
IDUP(ompi_comm_idup_f)
#ifdef Z_HAVE_Comm_idup_with_info
#define IDUP_WITH_INFO(NAME)                                                                                       \
  DUPLICATING(NAME, (MPI_Fint * comm, MPI_Fint * info, MPI_Fint * out, MPI_Fint * request, MPI_Fint * ierr), comm, \
              info, place, request, ierr)
IDUP_WITH_INFO(mpi_comm_idup_with_info_)
IDUP_WITH_INFO(ompi_comm_idup_with_info_f)
#endif
#endif
