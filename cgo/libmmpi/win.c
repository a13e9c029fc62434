/* Windows: creation, end, attributes. */
#include "win.h"
#include <string.h>

zmap z_windows;

static void discard(zwin *w) {
  free(w->shapes);
  free(w->rank_of);
  free(w);
}

/* ---- windows inside this cluster ---- */

/* Before a native function that makes a window: all ranks are there, and each served the others meanwhile. Then, for MPI_Win_fence, MPI_Win_start and
 * MPI_Win_free, the window gets a communicator of its own. */
static int inside_begin(MPI_Comm comm) { return z_native_barrier(comm); }

static int inside_end(int rc, MPI_Comm comm, MPI_Win win) {
  zwin *w = rc ? NULL : calloc(1, sizeof *w);
  if (!w) return rc;
  int rank;
  w->native = win;
  if ((rc = real.Comm_rank(comm, &rank)) || (rc = real.Comm_split(comm, 0, rank, &w->inside))) {
    free(w);
    return rc;
  }
  zmap_put(&z_windows, z_key(win), w);
  return MPI_SUCCESS;
}

#define Z_INSIDE(NAME, comm, win, ...) do {            \
    int rc = inside_begin(comm);                       \
    if (rc) return rc;                                 \
    z_enter();                                         \
    rc = real.NAME(__VA_ARGS__);                       \
    z_leave();                                         \
    return inside_end(rc, comm, *(win));               \
  } while (0)

/* Whether a window inside a cluster is the engine's as well. A native one makes whoever waits for a lock wait natively, so nothing else of this process goes on that the
 * holder of the lock may be waiting for. So only who asks for it gets one, by the environment or the info key, or needs one: for shared memory. */
static int served(MPI_Info info) {
  char text[MPI_MAX_INFO_VAL + 1] = "";
  int flag = 0;
  if (info != MPI_INFO_NULL) real.Info_get(info, "zipper_served", sizeof text - 1, text, &flag);
  const char *s = flag ? text : getenv("ZIPPER_SERVED_WINDOWS");
  return !s || (strcmp(s, "false") && strcmp(s, "0"));
}

/* ---- windows of the engine ---- */

/* Ranks agree on the context and tell each other how large their parts are. */
static int agree(zwin *w, const char *function) {
  zcomm *c = w->comm;
  zshape mine = {z_eng.ze_next_context(), w->bytes, w->unit};
  w->shapes = malloc((size_t)c->size * sizeof *w->shapes);
  w->rank_of = malloc((size_t)z_layout.size * sizeof *w->rank_of);
  if (!w->shapes || !w->rank_of) return z_raise(c, MPI_ERR_NO_MEM, function, "no memory");
  memset(w->rank_of, 0xff, (size_t)z_layout.size * sizeof *w->rank_of);
  for (int i = 0; i < c->size; i++) w->rank_of[c->world[i]] = i;
  int rc = zcomm_allgather(c, &mine, sizeof mine, w->shapes, function);
  if (rc) return rc;
  int failed = z_eng.ze_win_add(w->shapes[0].context, c->size, c->rank, c->world, w->base, w->bytes, w->unit, w->flavor == MPI_WIN_FLAVOR_DYNAMIC, &w->id);
  return failed ? z_raise_engine(c, failed, function) : MPI_SUCCESS;
}

static void end_comm(zcomm *c) {
  c->freed = 1;
  zcomm_release(c);
}

/* *base: where the memory is, or for MPI_WIN_FLAVOR_ALLOCATE will be. */
static int create(MPI_Comm comm, int flavor, void **base, MPI_Aint bytes, int unit, MPI_Info info, const char *function, MPI_Win *out) {
  zcomm *on = zcomm_find(comm);
  int inter = on ? on->inter : 0;
  if (!on) real.Comm_test_inter(comm, &inter);
  if (inter) return z_raise_on(comm, MPI_ERR_COMM, function, "a window needs an intracommunicator");
  if (bytes < 0) return z_raise_on(comm, MPI_ERR_SIZE, function, "a window of %lld bytes", (long long)bytes);
  if (unit <= 0) return z_raise_on(comm, MPI_ERR_DISP, function, "a displacement unit of %d bytes", unit);
  zwin *w = calloc(1, sizeof *w);
  if (!w) return z_raise_on(comm, MPI_ERR_NO_MEM, function, "no memory");
  w->flavor = flavor, w->model = MPI_WIN_UNIFIED, w->bytes = bytes, w->unit = unit, w->inside = MPI_COMM_NULL;
  MPI_Comm own;
  int rc = on ? zcomm_split(on, 0, on->rank, function, &own) : zcomm_adopt(comm, function, &own), allocates = flavor == MPI_WIN_FLAVOR_ALLOCATE;
  if (rc) {
    free(w);
    return rc;
  }
  w->comm = zcomm_find(own);
  void *memory = NULL;
  z_enter();
  rc = real.Win_allocate(allocates ? bytes : 0, allocates ? unit : 1, info, MPI_COMM_SELF, &memory, &w->native);
  z_leave();
  if (rc) {
    rc = z_raise_on(comm, rc, function, "the native library makes no window");
  } else {
    w->base = allocates ? memory : *base;
    if ((rc = agree(w, function))) real.Win_free(&w->native);
  }
  if (rc) {
    end_comm(w->comm);
    discard(w);
    return rc;
  }
  zmap_put(&z_windows, z_key(w->native), w);
  if (allocates) *base = memory;
  *out = w->native;
  return MPI_SUCCESS;
}

int z_Win_create(void *base, MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *win) {
  if (!zcomm_find(comm) && !served(info)) Z_INSIDE(Win_create, comm, win, base, bytes, unit, info, comm, win);
  return create(comm, MPI_WIN_FLAVOR_CREATE, &base, bytes, unit, info, "MPI_Win_create", win);
}

int z_Win_allocate(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win) {
  if (!zcomm_find(comm) && !served(info)) Z_INSIDE(Win_allocate, comm, win, bytes, unit, info, comm, base, win);
  return create(comm, MPI_WIN_FLAVOR_ALLOCATE, base, bytes, unit, info, "MPI_Win_allocate", win);
}

int z_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *win) {
  void *nowhere = MPI_BOTTOM;
  if (!zcomm_find(comm) && !served(info)) Z_INSIDE(Win_create_dynamic, comm, win, info, comm, win);
  return create(comm, MPI_WIN_FLAVOR_DYNAMIC, &nowhere, 0, 1, info, "MPI_Win_create_dynamic", win);
}

int z_Win_allocate_shared(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win) {
  if (zcomm_find(comm))
    return z_raise_on(comm, MPI_ERR_UNSUPPORTED_OPERATION, "MPI_Win_allocate_shared",
                      "clusters share no memory: make the communicator by MPI_Comm_split_type(MPI_COMM_TYPE_SHARED)");
  Z_INSIDE(Win_allocate_shared, comm, win, bytes, unit, info, comm, base, win);
}

int z_Win_shared_query(MPI_Win win, int rank, MPI_Aint *bytes, int *unit, void *base) {
  (void)rank, (void)bytes, (void)unit, (void)base;
  return zwin_raise(zwin_find(win), MPI_ERR_RMA_FLAVOR, "MPI_Win_shared_query", "the window is not of shared memory");
}

#ifdef Z_HAVE_Win_shared_query_c
int z_Win_shared_query_c(MPI_Win win, int rank, MPI_Aint *bytes, MPI_Aint *unit, void *base) {
  (void)unit;
  return z_Win_shared_query(win, rank, bytes, NULL, base);
}
#endif

int z_Win_attach(MPI_Win win, void *base, MPI_Aint bytes) {
  zwin *w = zwin_find(win);
  if (w->flavor != MPI_WIN_FLAVOR_DYNAMIC || bytes < 0) return zwin_raise(w, MPI_ERR_RMA_ATTACH, "MPI_Win_attach", "the window is not dynamic, or the size negative");
  int failed = z_eng.ze_win_attach(w->id, base, bytes);
  return failed ? zwin_raise(w, MPI_ERR_RMA_ATTACH, "MPI_Win_attach", z_eng.ze_error()) : MPI_SUCCESS;
}

int z_Win_detach(MPI_Win win, const void *base) {
  zwin *w = zwin_find(win);
  int failed = z_eng.ze_win_detach(w->id, (void *)(uintptr_t)base);
  return failed ? zwin_raise(w, MPI_ERR_RMA_ATTACH, "MPI_Win_detach", z_eng.ze_error()) : MPI_SUCCESS;
}

/* ---- the end ---- */

static int free_inside(zwin *w, MPI_Win *win) {
  int rc = z_native_barrier(w->inside);
  if (rc) return rc;
  zmap_remove(&z_windows, z_key(*win)); /* before the handle may be used again */
  rc = real.Win_free(win);
  real.Comm_free(&w->inside);
  free(w);
  return rc;
}

int z_Win_free(MPI_Win *win) {
  zwin *w = zmap_get(&z_windows, z_key(*win));
  if (!w) return real.Win_free(win);
  if (!w->comm) return free_inside(w, win);
  int failed = z_eng.ze_win_sync(w->id, Z_SYNC_IDLE, 0, 0, NULL, 0, NULL);
  if (failed) return zwin_raise_engine(w, failed, "MPI_Win_free");
  int rc = z_Barrier(w->comm->native);
  if (rc) return rc;
  if ((failed = z_eng.ze_win_drop(w->id))) return zwin_raise_engine(w, failed, "MPI_Win_free");
  rc = real.Win_free(win); /* attribute callbacks may still ask for the window */
  if (rc) return rc;
  zmap_remove(&z_windows, z_key(w->native));
  end_comm(w->comm);
  discard(w);
  return MPI_SUCCESS;
}

/* ---- what it is ---- */

int z_Win_get_attr(MPI_Win win, int keyval, void *value, int *flag) {
  zwin *w = zwin_find(win);
  *flag = 1;
  switch (keyval) {
  case MPI_WIN_BASE: *(void **)value = w->base; return MPI_SUCCESS;
  case MPI_WIN_SIZE: *(MPI_Aint **)value = &w->bytes; return MPI_SUCCESS;
  case MPI_WIN_DISP_UNIT: *(int **)value = &w->unit; return MPI_SUCCESS;
  case MPI_WIN_CREATE_FLAVOR: *(int **)value = &w->flavor; return MPI_SUCCESS;
  case MPI_WIN_MODEL: *(int **)value = &w->model; return MPI_SUCCESS;
  }
  return real.Win_get_attr(win, keyval, value, flag);
}

int z_Win_get_group(MPI_Win win, MPI_Group *out) {
  zwin *w = zwin_find(win);
  MPI_Group native;
  int rc = w ? zgroup_new(w->comm->world, w->comm->size, out) : real.Win_get_group(win, &native);
  if (!rc && !w) rc = zgroup_wrap(&native, out);
  if (!rc) return MPI_SUCCESS;
  return w ? zwin_raise(w, rc, "MPI_Win_get_group", "no group can be made") : z_raise(NULL, rc, "MPI_Win_get_group", "no group can be made");
}
