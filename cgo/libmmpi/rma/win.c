/* Windows: creation, release, attributes. */
#include "rma/win.h"
#include "core/privcomm.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

zmap z_windows;
_Thread_local zwin *zwin_dying;

static void enlist(zwin *w) {
  zmap_put(&z_windows, z_key(w->native), w);
  __atomic_add_fetch(&z_serving, 1, __ATOMIC_RELAXED);
}

static void delist(zwin *w) {
  zmap_remove(&z_windows, z_key(w->native));
  __atomic_sub_fetch(&z_serving, 1, __ATOMIC_RELAXED);
}

/* Frees the memory of a window that is in no map, and its communicator. */
static void free_window(zwin *w) {
  if (w->comm) {
    w->comm->freed = 1;
    zcomm_release(w->comm);
  }
  free(w->shapes);
  free(w->rank_of);
  free(w);
}

/* ---- the engine's part ---- */

/* Allocates a window for the processes of comm, with a communicator of its own, and stores it in
 * *out. Raises errors and returns the code for the program. */
static int make_window(MPI_Comm comm, const char *function, zwin **out) {
  zcomm *on = zcomm_find(comm);
  int inter = on ? on->inter : 0, rc = on ? MPI_SUCCESS : real.Comm_test_inter(comm, &inter);
  if (rc) return rc;
  if (inter) return z_raise_on(comm, MPI_ERR_COMM, function, "a window needs an intracommunicator");
  zwin *w = calloc(1, sizeof *w);
  if (!w) return z_raise_on(comm, MPI_ERR_NO_MEM, function, "no memory");
  w->native = MPI_WIN_NULL;
  MPI_Comm own;
  if ((rc = on ? zcomm_split(on, 0, on->rank, function, &own) : zcomm_adopt(comm, function, &own))) {
    free_window(w);
    return rc;
  }
  w->comm = zcomm_find(own);
  *out = w;
  /* the window's handler gets the errors of a window with lost processes, and the communicator's
   * does not */
  return z_layout.on_loss ? real.Comm_set_errhandler(own, MPI_ERRORS_RETURN) : MPI_SUCCESS;
}

/* Returns the kind of a window, Z_WIN_…. */
static int kind_of(const zwin *w) {
  if (w->flavor == MPI_WIN_FLAVOR_DYNAMIC) return Z_WIN_DYNAMIC;
  return w->served && zdevice_of(w->base, w->bytes) ? Z_WIN_DEVICE : 0;
}

/* The size that the shape of a window has if its process could not make its part of the window. */
enum { UNMADE = -1 };

/* Lets the ranks of a window for the processes of comm agree on its context id and exchange the
 * sizes of their memory, and adds the window to the engine. made is the code with which this
 * process has failed to make its part of the window, or MPI_SUCCESS; no process gets the window if
 * one has failed. Raises errors and returns the code for the program. */
static int agree(zwin *w, int made, MPI_Comm comm, const char *function) {
  zcomm *c = w->comm;
  zshape mine = {Z_ENGINE(ze_next_context(c->link)), made ? UNMADE : w->bytes, w->unit};
  w->shapes = malloc((size_t)c->size * sizeof *w->shapes);
  w->known = z_processes();
  w->rank_of = malloc((size_t)w->known * sizeof *w->rank_of);
  if (!w->shapes || !w->rank_of) return z_raise(c, MPI_ERR_NO_MEM, function, "no memory");
  memset(w->rank_of, 0xff, (size_t)w->known * sizeof *w->rank_of);
  for (int i = 0; i < c->size; i++) w->rank_of[c->world[i]] = i;
  int rc = zcomm_allgather(c, &mine, sizeof mine, w->shapes, function);
  if (rc) return rc;
  if (made) return z_raise_on(comm, z_native_class(made), function, "the native library could not create the window");
  for (int i = 0; i < c->size; i++)
    if (w->shapes[i].bytes == UNMADE)
      return z_raise_on(comm, MPI_ERR_OTHER, function, "rank %d could not create its part of the window", i);
  int failed = Z_ENGINE(ze_win_add(c->link, w->shapes[0].context, c->size, c->rank, c->world, w->base, w->bytes,
                                   w->unit, kind_of(w), &w->id));
  return failed ? z_raise_engine(c, failed, function) : MPI_SUCCESS;
}

/* ---- native windows ---- */

/* Prepares a native window for the processes of comm: stores a zwin that the engine knows in *out,
 * and waits until all ranks have called this function, because the native function that follows
 * blocks. Each rank serves the others meanwhile. Raises errors and returns the code for the
 * program. */
static int native_begin(MPI_Comm comm, const char *function, zwin **out) {
  *out = NULL; /* in a job of one cluster the engine has no link, and does not know the window */
  if (z_layout.clusters == 1) return z_native_barrier(comm);
  int rc = make_window(comm, function, out);
  if (rc) return rc;
  (*out)->unit = 1;
  if ((rc = agree(*out, MPI_SUCCESS, comm, function))) free_window(*out);
  return rc;
}

static int native_end(int rc, zwin *w, MPI_Win win) {
  if (!w) return rc;
  if (rc || win == MPI_WIN_NULL) { /* a handler of the program's may have turned the error into MPI_SUCCESS */
    Z_ENGINE(ze_win_drop(w->id));
    free_window(w);
    return rc;
  }
  w->native = win;
  enlist(w);
  return MPI_SUCCESS;
}

#define Z_NATIVE(NAME, comm, win, ...)             \
  do {                                             \
    zwin *w;                                       \
    int rc = native_begin(comm, "MPI_" #NAME, &w); \
    if (rc) return rc;                             \
    *(win) = MPI_WIN_NULL;                         \
    z_enter();                                     \
    rc = real.NAME(__VA_ARGS__);                   \
    z_leave();                                     \
    return native_end(rc, w, *(win));              \
  } while (0)

static const char variable[] = "ZIPPER_SERVED_WINDOWS";

static int among(const char *s, const char *const list[3]) {
  return !strcasecmp(s, list[0]) || !strcasecmp(s, list[1]) || !strcasecmp(s, list[2]);
}

static int is_off(const char *s) { return among(s, (const char *const[]){"0", "false", "no"}); }

void zwin_check_variable(void) {
  const char *s = getenv(variable);
  if (s && *s && !is_off(s) && !among(s, (const char *const[]){"1", "true", "yes"}))
    fprintf(stderr, "MMPI: %s=%s is neither 0 nor 1: windows inside clusters are served, as with 1\n", variable, s);
}

/* Returns whether the engine has to serve a window inside a cluster that is made with this info.
 * Served windows are always correct; native windows have the limits of their libraries
 * (docs/reference/across-clusters.md). */
static int served(MPI_Info info) {
  if (z_layout.clusters == 1) return 0;
  char text[MPI_MAX_INFO_VAL + 1] = "";
  int flag = 0;
  if (info != MPI_INFO_NULL && real.Info_get(info, "zipper_served", sizeof text - 1, text, &flag)) flag = 0;
  const char *s = flag ? text : getenv(variable);
  return !s || !is_off(s);
}

/* ---- served windows ---- */

/* Creates a served window for the processes of comm. *base is the address of this process's memory
 * of `bytes` bytes, or is set to it for MPI_WIN_FLAVOR_ALLOCATE; `unit` is the displacement unit in
 * bytes. Raises errors and returns the code for the program.
 *
 * The native window, which provides the handle and the memory, is on z_self: the handler of
 * MPI_COMM_SELF must not get an error that only this process knows, because it could end the
 * process while others wait for it. */
static int create(MPI_Comm comm, int flavor, void **base, MPI_Aint bytes, int unit, MPI_Info info, const char *function,
                  MPI_Win *out) {
  static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
  if (bytes < 0) return z_raise_on(comm, MPI_ERR_SIZE, function, "a window of %lld bytes", (long long)bytes);
  if (unit <= 0) return z_raise_on(comm, MPI_ERR_DISP, function, "a displacement unit of %d bytes", unit);
  zwin *w;
  int rc = make_window(comm, function, &w), allocates = flavor == MPI_WIN_FLAVOR_ALLOCATE;
  if (rc) return rc;
  w->served = 1, w->flavor = flavor, w->model = MPI_WIN_UNIFIED, w->bytes = bytes, w->unit = unit;
  void *memory = NULL;
  z_lock(&one); /* threads share z_self */
  z_enter();
  rc = real.Win_allocate(allocates ? bytes : 0, allocates ? unit : 1, info, z_self, &memory, &w->native);
  z_leave();
  z_unlock(&one);
  if (rc) w->native = MPI_WIN_NULL;
  w->base = allocates ? memory : *base;
  if ((rc = agree(w, rc, comm, function))) {
    if (w->native != MPI_WIN_NULL) real.Win_free(&w->native);
    free_window(w);
    return rc;
  }
  enlist(w);
  if (allocates) *base = memory;
  *out = w->native;
  return MPI_SUCCESS;
}

int z_Win_create(void *base, MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *win) {
  if (!zcomm_find(comm) && !served(info)) Z_NATIVE(Win_create, comm, win, base, bytes, unit, info, comm, win);
  return create(comm, MPI_WIN_FLAVOR_CREATE, &base, bytes, unit, info, "MPI_Win_create", win);
}

int z_Win_allocate(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win) {
  if (!zcomm_find(comm) && !served(info)) Z_NATIVE(Win_allocate, comm, win, bytes, unit, info, comm, base, win);
  return create(comm, MPI_WIN_FLAVOR_ALLOCATE, base, bytes, unit, info, "MPI_Win_allocate", win);
}

int z_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *win) {
  void *nowhere = MPI_BOTTOM;
  if (!zcomm_find(comm) && !served(info)) Z_NATIVE(Win_create_dynamic, comm, win, info, comm, win);
  return create(comm, MPI_WIN_FLAVOR_DYNAMIC, &nowhere, 0, 1, info, "MPI_Win_create_dynamic", win);
}

int z_Win_allocate_shared(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win) {
  if (zcomm_find(comm))
    return z_raise_on(comm, MPI_ERR_UNSUPPORTED_OPERATION, "MPI_Win_allocate_shared",
                      "clusters share no memory: make the communicator by MPI_Comm_split_type(MPI_COMM_TYPE_SHARED)");
  Z_NATIVE(Win_allocate_shared, comm, win, bytes, unit, info, comm, base, win);
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
  if (w->flavor != MPI_WIN_FLAVOR_DYNAMIC || bytes < 0)
    return zwin_raise(w, MPI_ERR_RMA_ATTACH, "MPI_Win_attach", "the window is not dynamic, or the size negative");
  int failed = Z_ENGINE(ze_win_attach(w->id, base, bytes, zdevice_of(base, bytes) != NULL));
  return failed ? zwin_raise(w, MPI_ERR_RMA_ATTACH, "MPI_Win_attach", Z_ENGINE(ze_error())) : MPI_SUCCESS;
}

int z_Win_detach(MPI_Win win, const void *base) {
  zwin *w = zwin_find(win);
  int failed = Z_ENGINE(ze_win_detach(w->id, (void *)(uintptr_t)base));
  return failed ? zwin_raise(w, MPI_ERR_RMA_ATTACH, "MPI_Win_detach", Z_ENGINE(ze_error())) : MPI_SUCCESS;
}

/* ---- release ---- */

int z_Win_free(MPI_Win *win) {
  zwin *w = zwin_get(*win);
  if (!w) return real.Win_free(win);
  int failed, rc = zcomm_is_hurt(w->comm) ? MPI_SUCCESS : zwin_idle(w, "MPI_Win_free");
  if (!rc) rc = z_Barrier(w->comm->native);
  if (rc && !zcomm_is_hurt(w->comm)) return rc; /* a window with lost processes is freed without them */
  if ((failed = Z_ENGINE(ze_win_drop(w->id)))) return zwin_raise_engine(w, failed, "MPI_Win_free");
  zwin *outer = zwin_dying;
  /* Another thread may get the same handle at once, possibly for a window that is not in
   * z_windows */
  if (z_threads) delist(w);
  zwin_dying = w;
  rc = real.Win_free(win); /* attribute callbacks may still use the window */
  zwin_dying = outer;
  if (rc) {
    if (z_threads) enlist(w);
    return rc;
  }
  if (!z_threads) delist(w);
  free_window(w);
  return MPI_SUCCESS;
}

void zwin_drop(MPI_Win win) {
  zwin *w = zwin_find(win);
  if (!w) return;
  delist(w);
  real.Win_free(&w->native);
  w->comm = NULL; /* the communicator ends with MPI */
  free_window(w);
}

/* ---- inquiry ---- */

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
  MPI_Group native = MPI_GROUP_NULL;
  int rc = w ? zgroup_new(w->comm->world, w->comm->size, out) : real.Win_get_group(win, &native);
  if (!rc && !w) rc = zgroup_wrap(&native, out);
  if (!rc) return MPI_SUCCESS;
  return w ? zwin_raise(w, rc, "MPI_Win_get_group", "the group cannot be created")
           : z_raise(NULL, rc, "MPI_Win_get_group", "the group cannot be created");
}
