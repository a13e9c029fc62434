/* MPI_Alltoallw and MPI_Ialltoallw in Fortran. Open MPI's make C handles of as many types as the
 * native communicator has ranks, which is only a part of one that spans clusters; all else that
 * they do to the arguments is right. So the program's own types are kept at hand. */
#define _GNU_SOURCE
#include "coll/coll.h"
#include <dlfcn.h>

#ifdef OPEN_MPI
#define BUFFERS                                                                                              \
  void *in, MPI_Fint *sc, MPI_Fint *sd, MPI_Fint *from, void *out, MPI_Fint *rc, MPI_Fint *rd, MPI_Fint *to, \
      MPI_Fint *comm
#define FORTRAN(NAME, LAST, ...)                                                                                  \
  typedef void NAME##type(BUFFERS, Z_LIST LAST);                                                                  \
  __attribute__((visibility("default"))) NAME##type NAME;                                                         \
  void NAME(BUFFERS, Z_LIST LAST) {                                                                               \
    NAME##type *native = (NAME##type *)dlsym(RTLD_NEXT, #NAME);                                                   \
    if (z_on && !z_inside && zcomm_find(MPI_Comm_f2c(*comm))) zfortran_types = (struct zfortran_types){from, to}; \
    native(in, sc, sd, from, out, rc, rd, to, comm, __VA_ARGS__);                                                 \
  }
FORTRAN(mpi_alltoallw_, (MPI_Fint * ierr), ierr)
FORTRAN(mpi_ialltoallw_, (MPI_Fint * request, MPI_Fint *ierr), request, ierr)
FORTRAN(ompi_alltoallw_f, (MPI_Fint * ierr), ierr) /* what mpi_f08 calls */
FORTRAN(ompi_ialltoallw_f, (MPI_Fint * request, MPI_Fint *ierr), request, ierr)
/* and since Open MPI 6, with descriptors of the buffers */
FORTRAN(ompi_alltoallw_wrapper_f08, (MPI_Fint * ierr), ierr)
FORTRAN(ompi_ialltoallw_wrapper_f08, (MPI_Fint * request, MPI_Fint *ierr), request, ierr)
FORTRAN(ompi_alltoallw_wrapper_f08_c, (MPI_Fint * ierr), ierr)
FORTRAN(ompi_ialltoallw_wrapper_f08_c, (MPI_Fint * request, MPI_Fint *ierr), request, ierr)
#endif
