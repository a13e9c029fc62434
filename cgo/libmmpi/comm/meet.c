/* Meeting before a blocking native call that makes a communicator.
 *
 * Native libraries make communicators one after the other, in an order of their own. Suppose other
 * processes of comm have started the native part of a duplication (idup.c) and this process has
 * not. A blocking function would wait here for that duplication, which this process could then not
 * start. So all processes meet first, and repeat the meeting until none of them has a duplication
 * in its native part. Such a duplication has been called in all processes, so it completes. */
#include "comm/comm.h"
#include "core/privcomm.h"

/* The number of this process's nonblocking duplications whose native part is in progress. */
static int32_t copies;
/* the number of calls in this process that forbid duplications to start their native part */
static int32_t held;

int zmeet_held(void) { return __atomic_load_n(&held, __ATOMIC_SEQ_CST) > 0; }
void zmeet_copying(int by) { __atomic_add_fetch(&copies, by, __ATOMIC_SEQ_CST); }

/* Forbids the nonblocking duplications of this process to start their native part, until go_on is
 * called. Returns whether the native part of one is in progress. */
static int hold_duplications(void) {
  __atomic_add_fetch(&held, 1, __ATOMIC_SEQ_CST);
  return __atomic_load_n(&copies, __ATOMIC_SEQ_CST) > 0;
}

static void go_on(int again) {
  __atomic_sub_fetch(&held, 1, __ATOMIC_SEQ_CST);
  if (again) z_poll(); /* otherwise the native call comes next, and nothing may be started before it */
}

int zcomm_meet(MPI_Comm comm) {
  int inter, any = 1, rc = real.Comm_test_inter(comm, &inter);
  while (!rc && any) {
    any = hold_duplications();
    /* On an intercommunicator the first round tells each group about the other one, and the second
     * about itself */
    for (int round = 0; round <= inter && !rc; round++) {
      MPI_Request request = MPI_REQUEST_NULL;
      int mine = any, others;
      if (!(rc = real.Iallreduce(&mine, &others, 1, MPI_INT, MPI_MAX, comm, &request)))
        rc = z_wait_native(&request, MPI_STATUS_IGNORE);
      any = mine | others;
    }
    go_on(any && !rc);
  }
  return rc;
}

/* ---- the same among some processes, by messages ---- */

/* Combines a flag of several processes by OR. They are those of the `size` virtual ranks world[i]
 * that are in this cluster. *any is the flag of this process, which says that the native part of a
 * duplication is in progress (zcomm_meet), and becomes the result. The first process collects the
 * flags and sends the result to all. Returns an MPI error code. */
static int meet_once(const int32_t *world, int size, int tag, int *any) {
  int n = 0, first = -1, rc = MPI_SUCCESS, mine = *any;
  MPI_Request *requests = malloc((size_t)size * sizeof *requests);
  int *flags = calloc((size_t)size, sizeof *flags);
  if (!requests || !flags) rc = MPI_ERR_NO_MEM;
  for (int round = 0; round < 2 && !rc; round++) { /* to the first process, and back */
    n = 0, first = -1;
    for (int i = 0; i < size && !rc; i++) {
      if (!zcluster_has(world[i])) continue;
      if (first < 0) first = world[i];
      int is_first = z_layout.rank == first, peer = zcluster_rank(is_first ? world[i] : first);
      if (world[i] == first || (!is_first && world[i] != z_layout.rank)) continue;
      if (is_first == (round == 0))
        rc = real.Irecv(&flags[i], 1, MPI_INT, peer, zprivate_tag(ZTAG_MEET, tag), z_private, &requests[n++]);
      else
        rc = real.Isend(is_first ? any : &mine, 1, MPI_INT, peer, zprivate_tag(ZTAG_MEET, tag), z_private,
                        &requests[n++]);
    }
    if (!rc) rc = z_wait_each(n, requests);
    for (int i = 0; i < size && !rc; i++) *any |= flags[i];
  }
  free(requests);
  free(flags);
  return rc;
}

int zcomm_meet_members(const int32_t *world, int size, int tag) {
  int any, rc;
  do {
    any = hold_duplications();
    rc = meet_once(world, size, tag, &any);
    go_on(any && !rc);
  } while (any && !rc);
  return rc;
}
