/* Keys of an info object that native libraries cannot take as the program passes them. */
#ifndef ZIPPER_HINTS_H
#define ZIPPER_HINTS_H
#include "core/real.h"
#include <stddef.h>

#pragma GCC visibility push(hidden)

/* Writes to out a comma-separated list of hosts, each optionally followed by ":" and more, as the
 * native library knows them: without the cluster's name that z_Get_processor_name appends, and
 * without the hosts of other clusters that have such a name. own is this host's native name; size
 * is the room in out. */
void zhosts_native(const char *list, const char *own, char *out, size_t size);

/* Sets *out to the info with the values of n keys, which are lists of hosts, converted by
 * zhosts_native. A key whose list becomes empty is deleted. *out is info itself if nothing changes;
 * otherwise the caller frees it. Returns an MPI error code. */
int zhints_native(MPI_Info info, const char *const keys[], int n, MPI_Info *out);

/* Sets *out to the info for a file inside this cluster, with its lists of hosts converted as by
 * zhints_native. *out is info itself if nothing changes; otherwise the caller frees it. Returns an
 * MPI error code. */
int zhints_inside(MPI_Info info, MPI_Info *out);

/* Sets *out to the info for this cluster's part of a file that spans clusters; the caller frees it.
 * Its hints keep native libraries from filling the gaps between a process's writes with data read
 * before, which would undo what another cluster has written meanwhile. ROMIO's list of aggregating
 * hosts is dropped, because a library whose hosts are not in the list fails. Returns an MPI error
 * code. */
int zhints_spanning(MPI_Info info, MPI_Info *out);

#pragma GCC visibility pop
#endif
