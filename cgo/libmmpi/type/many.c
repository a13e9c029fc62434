/* Numbers of elements that exceed an int. */
#include "core/real.h"
#include "type/type.h"
#include <limits.h>

#ifndef Z_HAVE_Type_contiguous_c
/* Makes *out a type of n elements of a type, as large pieces and a remainder, and returns an MPI
 * error code. */
static int of_pieces(int64_t n, MPI_Datatype of, MPI_Datatype *out) {
  enum { PIECE = 1 << 20 };
  MPI_Datatype types[2] = {MPI_DATATYPE_NULL, of};
  MPI_Aint lb, extent, at[2];
  int lengths[2] = {(int)(n / PIECE), (int)(n % PIECE)}, rc = MPI_ERR_COUNT;
  if (n / PIECE <= INT_MAX) rc = real.Type_get_extent(of, &lb, &extent);
  if (!rc) rc = real.Type_contiguous(PIECE, of, &types[0]);
  if (rc) return rc;
  at[0] = 0, at[1] = (MPI_Aint)lengths[0] * PIECE * extent;
  rc = real.Type_create_struct(2, lengths, at, types, out);
  real.Type_free(&types[0]);
  return rc;
}
#endif

int zmany_begin(zmany *m, int64_t n, MPI_Datatype of) {
  *m = (zmany){of, (int)n, 0};
  if (n <= INT_MAX) return MPI_SUCCESS;
#ifdef Z_HAVE_Type_contiguous_c
  int rc = real.Type_contiguous_c(n, of, &m->type);
#else
  int rc = of_pieces(n, of, &m->type);
#endif
  if (rc) return rc;
  m->count = m->made = 1;
  return real.Type_commit(&m->type);
}

void zmany_end(zmany *m) {
  if (m->made) real.Type_free(&m->type);
  m->made = 0;
}
