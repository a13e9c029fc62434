/* Synchronization of windows. The engine keeps the epochs of the windows that it serves, and the
 * locks of all windows. A call that waits has a cell. */
#include "rma/win.h"

#define NATIVELY(NAME, ...) (z_enter(), natively(real.NAME(__VA_ARGS__)))
static int natively(int rc) {
  z_leave();
  return rc;
}

static int sync_to(zwin *w, const char *function, int what, int target, int flag, const int32_t *group, int n) {
  z_cell cell = {0};
  int failed = Z_GUARDED(ze_win_sync(w->id, what, target, flag, group, n, &cell));
  if (failed) return zwin_raise_engine(w, failed, function);
  if (!cell.done) z_wait_cell(&cell);
  else if (what != Z_SYNC_LOCK) z_poll(); /* a program may poll its own memory until something changes there */
  return cell.error ? zwin_raise_engine(w, cell.error, function) : MPI_SUCCESS;
}

int zwin_idle(zwin *w, const char *function) { return sync_to(w, function, Z_SYNC_IDLE, 0, 0, NULL, 0); }

static int simple(MPI_Win win, const char *function, int what) {
  return sync_to(zwin_find(win), function, what, 0, 0, NULL, 0);
}

/* Waits in a barrier for the processes of the native window w of this cluster, if w is not NULL. A
 * rank that waits natively would not receive messages that others of its cluster send it, and they
 * may need these received to make the same call. Returns an MPI error code. */
static int meet(zwin *w) { return w ? z_native_barrier(w->comm->native) : MPI_SUCCESS; }

int z_Win_fence(int assert, MPI_Win win) {
  zwin *w = zwin_get(win);
  if (w && w->served) {
    int rc = sync_to(w, "MPI_Win_fence", Z_SYNC_FENCE, 0, !(assert &MPI_MODE_NOSUCCEED), NULL, 0);
    if (!rc && (rc = z_Barrier(w->comm->native)) && z_layout.on_loss)
      rc = zwin_raise(w, z_native_class(rc), "MPI_Win_fence", "not all processes of the window have come");
    return rc;
  }
  int rc = meet(w);
  return rc ? rc : NATIVELY(Win_fence, assert, win);
}

int z_Win_set_info(MPI_Win win, MPI_Info info) {
  zwin *w = zwin_get(win);
  int rc = w && w->served ? MPI_SUCCESS : meet(w);
  return rc ? rc : NATIVELY(Win_set_info, win, info);
}

/* The arguments of a wait for the end of an exposure epoch of a native window (MPI_Win_wait), and
 * its result. */
typedef struct exposure {
  MPI_Win win; /* the native window */
  int rc;      /* the MPI error code of MPI_Win_test */
} exposure;

static int exposure_over(void *arg) {
  exposure *x = arg;
  int flag = 0;
  x->rc = NATIVELY(Win_test, x->win, &flag);
  return flag || x->rc;
}

int z_Win_wait(MPI_Win win) {
  if (zwin_find(win)) return simple(win, "MPI_Win_wait", Z_SYNC_WAIT);
  exposure x = {win, MPI_SUCCESS};
  z_wait(exposure_over, &x);
  return x.rc;
}

int z_Win_test(MPI_Win win, int *flag) {
  zwin *w = zwin_find(win);
  int32_t over = 0;
  z_poll();
  int failed = Z_ENGINE(ze_win_test(w->id, &over));
  *flag = over;
  return failed ? zwin_raise_engine(w, failed, "MPI_Win_test") : MPI_SUCCESS;
}

/* Begins an exposure epoch (Z_SYNC_POST) or an access epoch (Z_SYNC_START) of a served window for
 * the members of a group, as MPI_Win_post and MPI_Win_start do. Raises errors and returns the code
 * for the program. */
static int with_group(MPI_Group group, zwin *w, const char *function, int what) {
  const zgroup *g = zgroup_get(group);
  if (!g) return zwin_raise(w, MPI_ERR_GROUP, function, "the group is not valid");
  int32_t *ranks = malloc(((size_t)g->size + 1) * sizeof *ranks);
  int rc = ranks ? MPI_SUCCESS : MPI_ERR_NO_MEM;
  for (int i = 0; i < g->size && !rc; i++)
    if ((ranks[i] = g->rank[i] < w->known ? w->rank_of[g->rank[i]] : -1) < 0) rc = MPI_ERR_GROUP;
  if (rc) {
    rc = zwin_raise(w, rc, function, "the group has members that are not in the window");
  } else if (what == Z_SYNC_POST) {
    int failed = Z_ENGINE(ze_win_sync(w->id, what, 0, 0, ranks, g->size, NULL));
    if (failed) rc = zwin_raise_engine(w, failed, function);
  } else {
    rc = sync_to(w, function, what, 0, 0, ranks, g->size);
  }
  free(ranks);
  return rc;
}

/* Orders the calls of a native window. MPI_Win_start or MPI_Win_complete waits natively until the
 * targets have called MPI_Win_post, and the targets may need this process to receive something
 * before. So each MPI_Win_post sends the origins a message (posts = 1), and MPI_Win_start first
 * waits for these messages (posts = 0), serving others. */
static int meet_posts(MPI_Group native, zwin *w, int posts) {
  int n, rc = real.Group_size(native, &n);
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Request *requests = malloc(((size_t)n + 1) * sizeof *requests);
  int *ranks = malloc(2 * ((size_t)n + 1) * sizeof *ranks), *places = ranks + n;
  if (!rc && (!requests || !ranks)) rc = MPI_ERR_NO_MEM;
  if (!rc) rc = real.Comm_group(w->comm->native, &all);
  for (int i = 0; i < n && !rc; i++) places[i] = i;
  if (!rc) rc = real.Group_translate_ranks(native, n, places, all, ranks);
  for (int i = 0; i < n && !rc; i++)
    rc = posts ? real.Isend(NULL, 0, MPI_BYTE, ranks[i], 0, w->comm->native, &requests[i])
               : real.Irecv(NULL, 0, MPI_BYTE, ranks[i], 0, w->comm->native, &requests[i]);
  for (int i = 0; i < n && !rc; i++)
    rc = posts ? real.Request_free(&requests[i]) : z_wait_native(&requests[i], MPI_STATUS_IGNORE);
  if (all != MPI_GROUP_NULL) real.Group_free(&all);
  free(requests);
  free(ranks);
  return rc;
}

static int native_group(MPI_Group group, int assert, MPI_Win win, zwin *w, int posts) {
  MPI_Group native;
  int rc = zgroup_native(group, &native);
  if (rc) return z_raise(NULL, rc, posts ? "MPI_Win_post" : "MPI_Win_start", "the group has members in other clusters");
  if (w && !posts) rc = meet_posts(native, w, 0);
  if (!rc) rc = posts ? NATIVELY(Win_post, native, assert, win) : NATIVELY(Win_start, native, assert, win);
  if (w && !rc && posts) rc = meet_posts(native, w, 1);
  if (native != MPI_GROUP_EMPTY) real.Group_free(&native);
  return rc;
}

int z_Win_post(MPI_Group group, int assert, MPI_Win win) {
  zwin *w = zwin_get(win);
  if (w && w->served) return with_group(group, w, "MPI_Win_post", Z_SYNC_POST);
  return native_group(group, assert, win, w, 1);
}

int z_Win_start(MPI_Group group, int assert, MPI_Win win) {
  zwin *w = zwin_get(win);
  if (w && w->served) return with_group(group, w, "MPI_Win_start", Z_SYNC_START);
  return native_group(group, assert, win, w, 0);
}

int z_Win_complete(MPI_Win win) { return simple(win, "MPI_Win_complete", Z_SYNC_COMPLETE); }

/* ---- locks: the engine's, then those of native windows ---- */

static int unchecked(int assert) { return assert &MPI_MODE_NOCHECK ? Z_LOCK_UNCHECKED : 0; }

int z_Win_lock(int type, int rank, int assert, MPI_Win win) {
  zwin *w = zwin_get(win);
  int rc = w ? zwin_check_target(w, rank, "MPI_Win_lock") : MPI_SUCCESS;
  if (rc) return rc;
  if (w && type != MPI_LOCK_EXCLUSIVE && type != MPI_LOCK_SHARED)
    return zwin_raise(w, MPI_ERR_LOCKTYPE, "MPI_Win_lock", "the type of the lock is not valid");
  int how = (type == MPI_LOCK_EXCLUSIVE ? Z_LOCK_EXCLUSIVE : 0) | unchecked(assert);
  if (w && rank != MPI_PROC_NULL)
    rc = sync_to(w, "MPI_Win_lock", Z_SYNC_LOCK, rank, w->served ? how : how | Z_LOCK_AWAITED, NULL, 0);
  return rc || (w && w->served) ? rc : NATIVELY(Win_lock, type, rank, assert, win);
}

int z_Win_unlock(int rank, MPI_Win win) {
  zwin *w = zwin_get(win);
  int rc = w ? zwin_check_target(w, rank, "MPI_Win_unlock") : MPI_SUCCESS;
  if (!rc && !(w && w->served)) rc = NATIVELY(Win_unlock, rank, win);
  return rc || !w || rank == MPI_PROC_NULL ? rc : sync_to(w, "MPI_Win_unlock", Z_SYNC_UNLOCK, rank, 0, NULL, 0);
}

/* Takes (Z_SYNC_LOCK) or releases (Z_SYNC_UNLOCK) the engine's locks of all targets of a native
 * window one by one. For served windows the engine does so with the first operation to a target,
 * but it does not know the operations of a native window. Raises errors and returns the code for
 * the program. */
static int every(zwin *w, const char *function, int what, int flag) {
  int n = w->comm->size, failed = Z_OK, rc = MPI_SUCCESS, begun = 0;
  z_cell *cells = calloc((size_t)n, sizeof *cells);
  if (!cells) return zwin_raise(w, MPI_ERR_NO_MEM, function, "no memory");
  for (; begun < n && !failed; begun++)
    failed = Z_ENGINE(ze_win_sync(w->id, what, begun, flag, NULL, 0, &cells[begun]));
  if (failed) rc = zwin_raise_engine(w, failed, function), begun--;
  for (int i = 0; i < begun; i++) {
    z_wait_cell(&cells[i]);
    if (cells[i].error && !rc) rc = zwin_raise_engine(w, cells[i].error, function);
  }
  free(cells);
  return rc;
}

int z_Win_lock_all(int assert, MPI_Win win) {
  zwin *w = zwin_get(win);
  if (w && w->served) return sync_to(w, "MPI_Win_lock_all", Z_SYNC_LOCK_ALL, 0, unchecked(assert), NULL, 0);
  int rc = w ? every(w, "MPI_Win_lock_all", Z_SYNC_LOCK, unchecked(assert) | Z_LOCK_AWAITED) : MPI_SUCCESS;
  return rc ? rc : NATIVELY(Win_lock_all, assert, win);
}

int z_Win_unlock_all(MPI_Win win) {
  zwin *w = zwin_get(win);
  if (w && w->served) return sync_to(w, "MPI_Win_unlock_all", Z_SYNC_UNLOCK_ALL, 0, 0, NULL, 0);
  int rc = NATIVELY(Win_unlock_all, win);
  return rc || !w ? rc : every(w, "MPI_Win_unlock_all", Z_SYNC_UNLOCK, 0);
}

static int flush(int rank, MPI_Win win, const char *function) {
  zwin *w = zwin_find(win);
  int rc = zwin_check_target(w, rank, function);
  return rc || rank == MPI_PROC_NULL ? rc : sync_to(w, function, Z_SYNC_FLUSH, rank, 0, NULL, 0);
}

int z_Win_flush(int rank, MPI_Win win) { return flush(rank, win, "MPI_Win_flush"); }
int z_Win_flush_all(MPI_Win win) { return sync_to(zwin_find(win), "MPI_Win_flush_all", Z_SYNC_FLUSH, -1, 0, NULL, 0); }
/* Waits as MPI_Win_flush does: the data to be sent have been copied, but results may be
 * outstanding, and the results of a target have arrived once it has answered. */
int z_Win_flush_local(int rank, MPI_Win win) { return flush(rank, win, "MPI_Win_flush_local"); }
int z_Win_flush_local_all(MPI_Win win) {
  return sync_to(zwin_find(win), "MPI_Win_flush_local_all", Z_SYNC_FLUSH, -1, 0, NULL, 0);
}

int z_Win_sync(MPI_Win win) {
  (void)win;
  z_poll();
  __sync_synchronize();
  return MPI_SUCCESS;
}
