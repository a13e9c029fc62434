/* Predefined operators. */
#include "type/op.h"
#include "abi.h"

int zop_fn(MPI_Op op) {
  if (op == MPI_REPLACE) return Z_REPLACE;
  if (op == MPI_NO_OP) return Z_NO_OP;
  if (op == MPI_MAX) return Z_MAX;
  if (op == MPI_MIN) return Z_MIN;
  if (op == MPI_SUM) return Z_SUM;
  if (op == MPI_PROD) return Z_PROD;
  if (op == MPI_LAND) return Z_LAND;
  if (op == MPI_BAND) return Z_BAND;
  if (op == MPI_LOR) return Z_LOR;
  if (op == MPI_BOR) return Z_BOR;
  if (op == MPI_LXOR) return Z_LXOR;
  if (op == MPI_BXOR) return Z_BXOR;
  if (op == MPI_MAXLOC) return Z_MAXLOC;
  if (op == MPI_MINLOC) return Z_MINLOC;
  return 0;
}
