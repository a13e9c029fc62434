/* MPI_Get_processor_name. A program is to tell by the name which processes are on one host, but
 * hosts of two clusters may have the same name. */
#include "core/job.h"
#include <stdio.h>
#include <string.h>

int z_Get_processor_name(char *name, int *length) {
  int rc = real.Get_processor_name(name, length);
  const char *cluster = z_layout.namesake;
  if (rc || !cluster || *length >= MPI_MAX_PROCESSOR_NAME) return rc;
  size_t room = MPI_MAX_PROCESSOR_NAME - (size_t)*length;
  if (strlen(cluster) + 2 > room) return rc; /* half a name would tell nothing */
  *length += snprintf(name + *length, room, ".%s", cluster);
  return MPI_SUCCESS;
}
