/* Meeting before a blocking native call that makes a communicator.
 *
 * Native libraries make communicators one after the other, in an order of their own. Suppose others
 * of comm have started a duplication (idup.c) and this process has not. A function that blocks here
 * would wait for that duplication, which this process could then not start. So all meet first, and
 * go round until no process has a duplication under way: each has been called everywhere, so it
 * comes to an end. */
#include "comm/comm.h"
#include "core/privcomm.h"

static int32_t copies; /* that the native library is at, in this process */
static int32_t held;   /* > 0: no other is started */

int zmeet_held(void) { return __atomic_load_n(&held, __ATOMIC_SEQ_CST) > 0; }
void zmeet_copying(int by) { __atomic_add_fetch(&copies, by, __ATOMIC_SEQ_CST); }

/* From here on no duplication starts its native part in this process. Returns whether one is at
 * it. */
static int hold_duplications(void) {
  __atomic_add_fetch(&held, 1, __ATOMIC_SEQ_CST);
  return __atomic_load_n(&copies, __ATOMIC_SEQ_CST) > 0;
}

static void go_on(int again) {
  __atomic_sub_fetch(&held, 1, __ATOMIC_SEQ_CST);
  if (again) z_poll(); /* else the native call comes next, and nothing may be started before */
}

int zcomm_meet(MPI_Comm comm) {
  int inter, any = 1, rc = real.Comm_test_inter(comm, &inter);
  while (!rc && any) {
    any = hold_duplications();
    /* Between two groups each hears of the other group in the first round, and then of its own */
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

/* The first collects who has a duplication under way (zcomm_meet), and answers. */
static int meet_once(const int32_t *world, int size, int tag, int *any) {
  int n = 0, first = -1, rc = MPI_SUCCESS, mine = *any;
  MPI_Request *requests = malloc((size_t)size * sizeof *requests);
  int *said = calloc((size_t)size, sizeof *said);
  if (!requests || !said) rc = MPI_ERR_NO_MEM;
  for (int round = 0; round < 2 && !rc; round++) { /* to the first, and back */
    n = 0, first = -1;
    for (int i = 0; i < size && !rc; i++) {
      if (!zcluster_has(world[i])) continue;
      if (first < 0) first = world[i];
      int is_first = z_layout.rank == first, peer = zcluster_rank(is_first ? world[i] : first);
      if (world[i] == first || (!is_first && world[i] != z_layout.rank)) continue;
      if (is_first == (round == 0))
        rc = real.Irecv(&said[i], 1, MPI_INT, peer, zprivate_tag(ZTAG_MEET, tag), z_private, &requests[n++]);
      else
        rc = real.Isend(is_first ? any : &mine, 1, MPI_INT, peer, zprivate_tag(ZTAG_MEET, tag), z_private,
                        &requests[n++]);
    }
    if (!rc) rc = z_wait_each(n, requests);
    for (int i = 0; i < size && !rc; i++) *any |= said[i];
  }
  free(requests);
  free(said);
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
