/* Groups of virtual ranks. In a job of more than one cluster every MPI_Group the program holds is
 * one of these behind a native placeholder handle. */
#ifndef ZIPPER_GROUP_H
#define ZIPPER_GROUP_H
#include <mpi.h>
#include <stdint.h>

typedef struct zgroup {
  int size;
  int32_t rank[]; /* virtual rank of each member */
} zgroup;

/* The group behind a handle; NULL if it is none of ours. Stays valid until the program frees the
 * handle. */
const zgroup *zgroup_get(MPI_Group handle);

/* A new handle for these virtual ranks (copied); MPI_GROUP_EMPTY for none. Returns an MPI error
 * code. */
int zgroup_new(const int32_t *rank, int size, MPI_Group *out);

/* Wraps a native group, which is freed. MPI_GROUP_NULL becomes MPI_GROUP_NULL: an error handler of
 * the program's has turned a failure into MPI_SUCCESS. */
int zgroup_wrap(MPI_Group *native, MPI_Group *out);

/* The native group with the same members, to be freed unless MPI_GROUP_EMPTY; MPI_ERR_GROUP if one
 * is in another cluster. */
int zgroup_native(MPI_Group group, MPI_Group *native);

/* Position of a virtual rank in the group, or MPI_UNDEFINED. */
int zgroup_rank(const zgroup *g, int32_t virtual_rank);

int zranks_compare(const int32_t *a, const int32_t *b, int n); /* MPI_IDENT, MPI_SIMILAR or MPI_UNEQUAL */

int zgroup_start(void); /* after the world is known */
#endif
