/* Groups of virtual ranks. In a process that takes part in a job (z_is_off) every MPI_Group of the
 * program is a native placeholder handle, which stands for a zgroup. */
#ifndef ZIPPER_GROUP_H
#define ZIPPER_GROUP_H
#include <mpi.h>
#include <stdint.h>

typedef struct zgroup {
  /* the z_key of the session from which the group is derived, or 0 */
  uint64_t session;
  int size;       /* the number of members */
  int32_t rank[]; /* the virtual rank of each member */
} zgroup;

/* Returns the group behind a handle, which is valid until the program frees the handle, or NULL if
 * the handle is not that of a zgroup. */
const zgroup *zgroup_get(MPI_Group handle);

/* Makes a handle for a group of `size` virtual ranks, which are copied. The handle of an empty
 * group is MPI_GROUP_EMPTY. Returns an MPI error code. */
int zgroup_new(const int32_t *rank, int size, MPI_Group *out);

/* Makes a handle for a zgroup with the members of a native group, and frees the native group.
 * MPI_GROUP_NULL, which a native call leaves if an error handler of the program's has hidden its
 * error, becomes MPI_GROUP_NULL. Returns an MPI error code: MPI_ERR_UNSUPPORTED_OPERATION if a
 * member is not of this process's native world, because the program has spawned it or connected to
 * it. */
int zgroup_wrap(MPI_Group *native, MPI_Group *out);

/* Makes the native group with the same members, which the caller frees unless it is
 * MPI_GROUP_EMPTY. Returns MPI_ERR_GROUP if a member is in another cluster. */
int zgroup_native(MPI_Group group, MPI_Group *native);

/* Records that a new group is derived from a session, whose z_key is given. */
void zgroup_derive(MPI_Group group, uint64_t session);

/* Returns the index of a virtual rank in the group, or MPI_UNDEFINED. */
int zgroup_rank(const zgroup *g, int32_t virtual_rank);

/* Compares two lists of n ranks. Returns MPI_IDENT if they are equal, MPI_SIMILAR if they have the
 * same ranks in another order, otherwise MPI_UNEQUAL. */
int zranks_compare(const int32_t *a, const int32_t *b, int n);

/* makes what groups need; must be called once z_layout is known; returns an MPI error code */
int zgroup_start(void);
#endif
