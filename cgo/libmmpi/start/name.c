/* MPI_Get_processor_name. Programs tell by this name which processes share a host. Hosts of two
 * clusters may have the same name, so the cluster's name is appended to such a name. */
#include "core/job.h"
#include <stdio.h>
#include <string.h>

int z_Get_processor_name(char *name, int *length) {
  int rc = real.Get_processor_name(name, length);
  const char *cluster = z_layout.namesake;
  if (rc || !cluster || *length >= MPI_MAX_PROCESSOR_NAME) return rc;
  size_t room = MPI_MAX_PROCESSOR_NAME - (size_t)*length;
  if (strlen(cluster) + 2 > room) return rc; /* part of the cluster's name would not tell the hosts apart */
  *length += snprintf(name + *length, room, ".%s", cluster);
  return MPI_SUCCESS;
}
