/* Hints and other keys of an info object that native libraries cannot take as the program passes
 * them. */
#include "io/hints.h"
#include "comm/comm.h"
#include "core/job.h"
#include "io/file.h"
#include <stdio.h>
#include <string.h>

/* Returns whether name, of `length` bytes, ends in "." and the cluster's name, like the names of
 * MPI_Get_processor_name where hosts of two clusters have the same name. */
static int has_suffix(const char *name, size_t length, const char *cluster) {
  size_t n = strlen(cluster);
  return length > n + 1 && name[length - n - 1] == '.' && !strncmp(name + length - n, cluster, n);
}

/* Returns the number of bytes of the host's name `host` without the cluster's name if the host is
 * in this cluster, or 0 if it is in another one. If `own`, this host's native name, itself ends in
 * the cluster's name, names are kept whole. */
static size_t native_length(const char *host, size_t length, const char *own) {
  for (int i = 0; i < zpset_count(); i++) {
    char set[MPI_MAX_PROCESSOR_NAME + sizeof ZPSET_CLUSTER "/"];
    const size_t prefix = sizeof ZPSET_CLUSTER;
    const char *cluster = set + prefix;
    if (zpset_name(i, set, sizeof set) >= (int)sizeof set || strncmp(set, ZPSET_CLUSTER "/", prefix)) continue;
    if (has_suffix(host, length, cluster) && !has_suffix(own, strlen(own), cluster))
      return zpset_has_me(i) ? length - strlen(cluster) - 1 : 0;
  }
  return length;
}

void zhosts_native(const char *list, const char *own, char *out, size_t size) {
  size_t at = 0;
  *out = 0;
  for (const char *entry = list; *entry; entry += *entry == ',') {
    size_t length = strcspn(entry, ","), host = strcspn(entry, ",:"), keep = native_length(entry, host, own);
    if (keep && at < size)
      at += (size_t)snprintf(out + at, size - at, "%s%.*s%.*s", at ? "," : "", (int)keep, entry, (int)(length - host),
                             entry + host);
    entry += length;
  }
}

int zhints_native(MPI_Info info, const char *const keys[], int n, MPI_Info *out) {
  char own[MPI_MAX_PROCESSOR_NAME + 1] = "", given[MPI_MAX_INFO_VAL + 1], native[MPI_MAX_INFO_VAL + 1];
  int rc = MPI_SUCCESS, length;
  *out = info;
  for (int i = 0; i < n && info != MPI_INFO_NULL && !rc; i++) {
    int flag = 0;
    rc = real.Info_get(info, keys[i], MPI_MAX_INFO_VAL, given, &flag);
    if (rc || !flag) continue;
    if (!*own) rc = real.Get_processor_name(own, &length);
    zhosts_native(given, own, native, sizeof native);
    if (rc || !strcmp(given, native)) continue;
    if (*out == info) rc = real.Info_dup(info, out);
    if (!rc) rc = *native ? real.Info_set(*out, keys[i], native) : real.Info_delete(*out, keys[i]);
  }
  return rc;
}

static const char aggregators[] = "cb_config_list";

int zhints_inside(MPI_Info info, MPI_Info *out) {
  static const char *const keys[] = {aggregators};
  return zhints_native(info, keys, 1, out);
}

int zhints_spanning(MPI_Info info, MPI_Info *out) {
  static const char *const off[] = {"romio_ds_write", "romio_cb_write"}, *const dropped[] = {zfile_shared_key,
                                                                                             aggregators};
  int rc = info == MPI_INFO_NULL ? real.Info_create(out) : real.Info_dup(info, out), flag;
  int length;
  for (int i = 0; i < 2 && !rc; i++) rc = real.Info_set(*out, off[i], "disable");
  for (int i = 0; i < 2 && !rc; i++) {
    rc = real.Info_get_valuelen(*out, dropped[i], &length, &flag);
    if (!rc && flag) rc = real.Info_delete(*out, dropped[i]);
  }
  return rc;
}
