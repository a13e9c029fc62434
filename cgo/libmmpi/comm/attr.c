/* Attributes of communicators are the native library's: the user's handle is its handle. Only the
 * predefined ones that speak of the whole job are answered here. */
#include "comm/comm.h"

typedef struct predefined {
  int tag_ub, universe, wtime_is_global;
} predefined;

/* Filled the same by every thread: MPI wants the address of an int that stays. */
static predefined values;

int *zattr_of_job(int keyval) {
  values.tag_ub = z_layout.tag_ub;
  values.universe = z_layout.size;
  values.wtime_is_global = 0; /* every host of every cluster has its own clock */
  switch (keyval) {
  case MPI_TAG_UB: return &values.tag_ub;
  case MPI_UNIVERSE_SIZE: return &values.universe;
  case MPI_WTIME_IS_GLOBAL: return &values.wtime_is_global;
  }
  return NULL;
}

int z_Comm_get_attr(MPI_Comm comm, int keyval, void *value, int *flag) {
  int *own = zattr_of_job(keyval), rc = real.Comm_get_attr(comm, keyval, value, flag);
  if (rc || !own) return rc;
  *(int **)value = own;
  *flag = 1;
  return MPI_SUCCESS;
}

int z_Attr_get(MPI_Comm comm, int keyval, void *value, int *flag) { return z_Comm_get_attr(comm, keyval, value, flag); }
