/* Named process sets: all processes, this process alone, and each cluster. */
#include "comm/comm.h"
#include <stdio.h>
#include <string.h>

static const char of_cluster[] = ZPSET_CLUSTER "/";

static struct {
  char *name;
  /* the virtual rank of the first process of the cluster, and the number of its processes */
  int32_t first, size;
} * clusters;
static int known;

/* Reads the names and sizes of the clusters from a layout such as "a=4,b=2". The engine has
 * rejected layouts of any other form. Returns an MPI error code. */
int zpset_start(const char *layout) {
  clusters = calloc((size_t)z_layout.clusters, sizeof *clusters);
  if (!clusters) return MPI_ERR_NO_MEM;
  int32_t first = 0;
  for (const char *s = layout; s && known < z_layout.clusters; known++) {
    size_t n = strcspn(s, "=");
    clusters[known].name = strndup(s, n);
    if (!clusters[known].name) return MPI_ERR_NO_MEM;
    clusters[known].first = first;
    clusters[known].size = s[n] ? (int32_t)strtol(s + n + 1, NULL, 10) : 0;
    first += clusters[known].size;
    s = strchr(s, ',');
    if (s) s++;
  }
  return known == z_layout.clusters && first == z_layout.size ? MPI_SUCCESS : MPI_ERR_OTHER;
}

void zpset_stop(void) {
  for (int i = 0; i < known; i++) free(clusters[i].name);
  free(clusters);
  clusters = NULL;
  known = 0;
}

int zpset_count(void) { return 2 + known; }

int zpset_name(int i, char *out, int size) {
  if (i == 0) return snprintf(out, (size_t)size, "mpi://WORLD");
  if (i == 1) return snprintf(out, (size_t)size, "mpi://SELF");
  return snprintf(out, (size_t)size, "%s%s", of_cluster, clusters[i - 2].name);
}

/* Returns the number of the process set with this name, or -1. The names of MPI's own sets are
 * compared without regard to case, as URIs are compared. */
int zpset_find(const char *name) {
  if (!strcasecmp(name, "mpi://WORLD")) return 0;
  if (!strcasecmp(name, "mpi://SELF")) return 1;
  size_t n = strlen(of_cluster);
  for (int i = 0; i < known && !strncmp(name, of_cluster, n); i++)
    if (!strcmp(name + n, clusters[i].name)) return 2 + i;
  return -1;
}

int zpset_size(int i) { return i == 0 ? z_layout.size : i == 1 ? 1 : clusters[i - 2].size; }

int32_t zpset_member(int i, int rank) {
  if (i == 0) return z_layout.order ? z_layout.order[rank] : rank;
  return i == 1 ? z_layout.rank : clusters[i - 2].first + rank;
}

int zpset_has_me(int i) { return i < 2 || i - 2 == z_layout.cluster; }
