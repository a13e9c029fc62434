/* A cluster is lost while all processes repeat the call that the second argument names. Every
 * survivor's call returns the class of a failed process. Then the survivors shrink the communicator
 * and go on. In the phases exit and finalize they end instead. The third argument, if there is one,
 * is the rank of a survivor that makes the call only when it knows of the loss, while the others
 * are in it. */
#include "lost_calls.h"

enum { LAST = 30 };

static int late = -1; /* the rank that makes the call last, or -1 */

/* Returns whether the phase is one of epochs of single targets. */
static int in_epochs(void) { return is("put") || is("get") || is("accumulate"); }

/* Returns whether the phase needs a window. */
static int needs_window(void) { return in_epochs() || begins("pscw") || is("fence") || is("flush") || is("rput"); }

static int once(MPI_Comm comm, int n) {
  MPI_Request request;
  int rc, peer;
  if ((rc = vectors(comm, n % np)) != NOT_HERE || (rc = neighbours()) != NOT_HERE ||
      (rc = start_persistent(comm)) != NOT_HERE || (rc = partitioned()) != NOT_HERE || (rc = epochs()) != NOT_HERE ||
      (rc = files()) != NOT_HERE || (rc = objects(comm)) != NOT_HERE)
    return rc;
  if (is("barrier")) return MPI_Barrier(comm);
  if (is("bcast")) return MPI_Bcast(a, SOME, MPI_INT, n % np, comm);
  if (is("allreduce")) return MPI_Allreduce(a, b, 1, MPI_INT, MPI_SUM, comm);
  if (is("large")) return MPI_Allreduce(a, b, MANY, MPI_INT, MPI_SUM, comm);
  if (is("alltoall")) return MPI_Alltoall(a, SOME, MPI_INT, b, SOME, MPI_INT, comm);
  if (is("allgather")) return MPI_Allgather(a, SOME, MPI_INT, b, SOME, MPI_INT, comm);
  if (is("gather")) return MPI_Gather(a, SOME, MPI_INT, b, SOME, MPI_INT, n % np, comm);
  if (is("scatter")) return MPI_Scatter(a, SOME, MPI_INT, b, SOME, MPI_INT, n % np, comm);
  if (is("reduce")) return MPI_Reduce(a, b, SOME, MPI_INT, MPI_MAX, n % np, comm);
  if (is("scan")) return MPI_Scan(a, b, SOME, MPI_INT, MPI_SUM, comm);
  if (is("exscan")) return MPI_Exscan(a, b, SOME, MPI_INT, MPI_SUM, comm);
  if (is("reduce_scatter")) return MPI_Reduce_scatter_block(a, b, SOME, MPI_INT, MPI_SUM, comm);
  if (is("agree")) return MPIX_Comm_agree(comm, a);
  if (is("fence")) return MPI_Win_fence(0, win);
  if (is("iallreduce")) {
    rc = MPI_Iallreduce(a, b, SOME, MPI_INT, MPI_SUM, comm, &request);
    return rc ? rc : MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  if (begins("ring")) { /* messages of 8 B, 4 KB or 1.2 MB */
    int size = is("ring_small") ? 2 : is("ring_large") ? MANY : SOME;
    peer = (me + 1) % np;
    return MPI_Sendrecv(a, size, MPI_INT, peer, 1, b, size, MPI_INT, (me + np - 1) % np, 1, comm, MPI_STATUS_IGNORE);
  }
  if (in_epochs()) {
    peer = (me + 1) % np;
    if ((rc = MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, win))) return rc;
    if (is("put")) rc = MPI_Put(a, SOME, MPI_INT, peer, 0, SOME, MPI_INT, win);
    if (is("get")) rc = MPI_Get(a, SOME, MPI_INT, peer, 0, SOME, MPI_INT, win);
    if (is("accumulate")) rc = MPI_Accumulate(a, SOME, MPI_INT, peer, 0, SOME, MPI_INT, MPI_SUM, win);
    int rc2 = MPI_Win_unlock(peer, win);
    return rc ? rc : rc2;
  }
  failed(__FILE__, __LINE__, "no phase %s", phase);
  return MPI_ERR_OTHER;
}

/* Repeats the call, in which the ranks to be lost end, until it fails. In a ring and in epochs of
 * single targets a survivor whose neighbours live is never hit, so it ends when it knows. */
static void repeat(MPI_Comm comm) {
  int failing = 0, rc = MPI_SUCCESS;
  for (int n = 0; !rc && !failing; n++) {
    if (n == LAST) perish();
    if (n == LAST && me == late) await_loss(comm);
    rc = once(comm, n);
    MPI_Group group;
    MPIX_Comm_get_failed(comm, &group);
    if (begins("ring") || in_epochs()) MPI_Group_size(group, &failing);
    if (group != MPI_GROUP_EMPTY) MPI_Group_free(&group);
  }
  if (rc) {
    /* a neighbour that has left the ring has revoked the communicator */
    if (!begins("ring") || class_of(rc) != MPIX_ERR_REVOKED) CLASS(rc, MPIX_ERR_PROC_FAILED);
    if (begins("file") && !is("file_open")) SAME(raised, 1, "calls of the file's error handler");
  }
  if (begins("ring")) MPIX_Comm_revoke(comm);
}

int main(int argc, char **argv) {
  begin_lost(&argc, &argv);
  if (argc > 3) late = atoi(argv[3]);
  MPI_Comm comm, alive;
  CLASS(MPI_Comm_dup(MPI_COMM_WORLD, &comm), MPI_SUCCESS);
  prepare(comm);
  if (needs_window()) {
    CLASS(MPI_Win_create(b, MANY * sizeof *b, sizeof *b, MPI_INFO_NULL, comm, &win), MPI_SUCCESS);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    if (is("fence")) CLASS(MPI_Win_fence(0, win), MPI_SUCCESS);
    if (is("flush") || is("rput")) CLASS(MPI_Win_lock_all(0, win), MPI_SUCCESS);
  }
  MPI_Barrier(comm); /* the other ranks may need this long to make what the phase needs */
  int exits = is("exit"), finalizes = is("finalize");
  if (exits || finalizes) {
    usleep(finalizes && dying ? 200000 : 0);
    perish();
    if (exits) await_loss(comm);
  } else {
    repeat(comm);
    tidy();
    if (win != MPI_WIN_NULL) {
      await_loss(comm);
      CLASS(MPI_Win_free(&win), MPI_SUCCESS);
    }
    CLASS(MPIX_Comm_shrink(comm, &alive), MPI_SUCCESS);
    CLASS(MPI_Comm_free(&comm), MPI_SUCCESS);
    int size;
    MPI_Comm_size(alive, &size);
    SAME(size, np - victims, "survivors");
    return finish_lost(alive);
  }
  MPI_Finalize();
  puts("survived");
  return failures != 0;
}
