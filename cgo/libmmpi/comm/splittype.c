/* MPI_Comm_split_type. Every piece of hardware is inside one cluster, so the native library splits
 * by hardware. This file splits by cluster, which a program requests by MPI 4's hardware resource
 * types, and by process set. */
#include "comm/comm.h"
#include "core/error.h"
#include <string.h>

static const char function[] = "MPI_Comm_split_type";

/* The kinds of splits that this file does, and NOT_OURS for those of the native library. */
enum { NOT_OURS, BY_CLUSTER, BY_SET };

/* Open MPI 5 reports MPI 3.1 but has these types. */
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
static int value_of(MPI_Info info, const char *key, char *value, int size) {
  int flag = 0;
  return info != MPI_INFO_NULL && !real.Info_get(info, key, size - 1, value, &flag) && flag;
}

static int wanted(int type, MPI_Info info, int *set) {
  char value[MPI_MAX_INFO_VAL + 1];
  int guided = type == MPI_COMM_TYPE_HW_GUIDED;
  *set = -1;
#if MPI_VERSION >= 5 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
  if (type == MPI_COMM_TYPE_RESOURCE_GUIDED) {
    guided = 1;
    if (value_of(info, "mpi_pset_name", value, sizeof value) && (*set = zpset_find(value)) >= 0) return BY_SET;
  }
#endif
  if (!guided || !value_of(info, "mpi_hw_resource_type", value, sizeof value)) return NOT_OURS;
  return strcasecmp(value, ZPSET_CLUSTER) ? NOT_OURS : BY_CLUSTER;
}
#else
static int wanted(int type, MPI_Info info, int *set) { return (void)type, (void)info, (void)set, NOT_OURS; }
#endif

int z_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *out) {
  zcomm *c = zcomm_find(comm);
  int set = -1, mine = wanted(type, info, &set), what = mine, color = MPI_UNDEFINED;
  if (c && c->inter) return z_raise(c, MPI_ERR_COMM, function, "not supported on an intercommunicator");
  /* A process that passes MPI_UNDEFINED does not know the type of the others, and has to take part
   * in the same calls. The reduction also completes what was started before on a spanning
   * communicator. */
  int rc = zcomm_most(comm, mine, &what, function);
  if (c && what == NOT_OURS) rc = zcomm_vote(c, rc, function);
  if (rc) return rc;
  if (what == NOT_OURS) { /* ranks that share hardware are in one cluster */
    MPI_Comm made = MPI_COMM_NULL;
    if ((rc = zcomm_meet(comm))) return rc;
    rc = real.Comm_split_type(comm, type, key, info, &made);
    if (type != MPI_UNDEFINED) rc = zcomm_made(rc, made);
    if (c) rc = zcomm_agree(c, rc, &made, function);
    *out = rc ? MPI_COMM_NULL : made;
    return rc;
  }
  if (type != MPI_UNDEFINED && what == BY_CLUSTER) color = zcomm_cluster(c);
  if (type != MPI_UNDEFINED && what == BY_SET) color = set == 1 ? z_layout.rank : zpset_has_me(set) ? 0 : MPI_UNDEFINED;
  return z_Comm_split(comm, color, key, out);
}
