/* Start and end: loading, joining in MPI_Init, leaving in MPI_Finalize, MPI_Abort. */
#define _GNU_SOURCE
#include "core/error.h"
#include "core/limits.h"
#include "core/privcomm.h"
#include "coll/smallstage.h"
#include "comm/comm.h"
#include "io/file.h"
#include "p2p/p2p.h"
#include "rma/win.h"
#include "type/type.h"
#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

static uint32_t registered; /* not 0: a Go program brought its own engine, of this Z_ABI_VERSION */
static int finalizing; /* native MPI_Finalize is running and all of this cluster are there */

#define EXPORT __attribute__((visibility("default")))

/* ---- loading: thin, for any program may be preloaded with this ---- */

static int missing(void) {
  fputs("MMPI: this MPI library lacks a function that its mpi.h had when MMPI was built: build MMPI again (scripts/build)\n", stderr);
  abort();
}

/* A child after fork is no MPI process: all it calls is passed through. */
static void forked(void) { z_on = 0; }

__attribute__((constructor)) static void load(void) {
  void **slot = (void **)&real;
  for (int i = 0; i < Z_REAL_COUNT; i++) {
    slot[i] = dlsym(RTLD_NEXT, z_real_names[i]);
    if (!slot[i]) slot[i] = (void *)missing;
  }
  pthread_atfork(NULL, NULL, forked);
}

EXPORT void mmpi_register_engine(uint32_t abi, const z_engine *engine) {
  registered = abi;
  if (abi == Z_ABI_VERSION) z_eng = *engine;
}

/* ---- the engine ---- */

/* Go reserves address space, of which it uses little, and where a limit denies it, as batch systems set for memory, ends the process with a trace
 * of its own that says nothing to a user. */
static int room(void) {
  static const size_t wanted = (size_t)Z_ENGINE_MIB << 20;
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY) return 1;
  void *space = mmap(NULL, wanted, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return space != MAP_FAILED && !munmap(space, wanted);
}

static const char *open_engine(void) {
  if (registered == Z_ABI_VERSION) return NULL;
  if (registered) return "the program was built with another release of MMPI: build it again (after go clean -cache, if it was built in this source tree)";
  if (!room())
    return "the limit of address space (ulimit -v; a batch system's h_vmem, vmem or pvmem) leaves less than the 2 GiB that MMPI reserves beside the program, "
           "of which it uses little: raise it";
  static char path[PATH_MAX];
  Dl_info self;
  if (!dladdr((void *)load, &self) || !self.dli_fname) return "cannot find out where libmmpi lies";
  const char *slash = strrchr(self.dli_fname, '/');
  snprintf(path, sizeof path, "%.*slibmmpi-engine.so", slash ? (int)(slash - self.dli_fname + 1) : 0, self.dli_fname);
  /* Threads inherit this. Go's monitor thread would wake every 20 us while a rank waits, because its thread never comes by the scheduler: on a
   * node whose ranks use all cores that is a tenth of one. */
  int slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
  prctl(PR_SET_TIMERSLACK, Z_MONITOR_SLACK_NS, 0, 0, 0);
  void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  prctl(PR_SET_TIMERSLACK, slack, 0, 0, 0);
  if (!lib) return dlerror();
#define FIND(R, N, A) \
  if (!(z_eng.N = (N##_fn)dlsym(lib, #N))) return "libmmpi-engine.so lacks " #N ": it and this library are of different builds (scripts/build)";
  Z_ENGINE_FUNCTIONS(FIND)
#undef FIND
  return NULL;
}

/* What happens when the program crashes is its own affair, or MPI's: Go's handlers, which the engine brings, would call those that were there
 * before, but no backtrace goes past them to the place of the crash. They may go: the engine does not recover from such signals. */
static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE};
enum { CRASHES = sizeof crashes / sizeof *crashes };

static void crash_handlers(struct sigaction kept[CRASHES], int restore) {
  for (int i = 0; i < CRASHES; i++) sigaction(crashes[i], restore ? &kept[i] : NULL, restore ? NULL : &kept[i]);
}

/* The job is lost. Any thread, so native MPI is not asked; the launcher sees the exit code and ends the rest. */
static void fail(int32_t code, const char *reason) {
  if (reason && *reason) {
    char line[1024];
    int n = snprintf(line, sizeof line, "MMPI: virtual rank %d: %s\n", z_layout.rank, reason);
    if (n > (int)sizeof line - 1) n = sizeof line - 1;
    if (write(2, line, n) < 0) { /* nobody to tell */ }
  }
  if (!ftrylockfile(stdout)) fflush_unlocked(stdout);
  _exit(code & 0xff ? code & 0xff : 1); /* a job that is lost does not end with 0 */
}

static const z_native callbacks = {
    .abi = Z_ABI_VERSION, .busy = &z_busy,
    .improbe = z_cb_improbe, .iprobe = z_cb_iprobe, .imrecv = z_cb_imrecv, .irecv = z_cb_irecv, .test = z_cb_test, .cancel = z_cb_cancel,
    .coll = z_cb_coll, .coll_test = z_cb_coll_test, .reduce_local = z_cb_reduce_local, .fail = fail,
};

/* "Open MPI v4.1.4, package: …" and "MPICH Version:\t4.0.2\n…" in short. */
static void library_name(char out[64]) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int n;
  if (real.Get_library_version(text, &n)) n = 0;
  text[n] = 0;
  char *version = strpbrk(text, "0123456789");
  snprintf(out, 64, "%s %.*s", strstr(text, "MPICH") ? "MPICH" : strstr(text, "Open MPI") ? "Open MPI" : "MPI",
           version ? (int)strcspn(version, " ,\t\n") : 0, version ? version : "");
}

/* Children of the program shall not carry us along. */
static void leave_preload(void) {
  const char *list = getenv("LD_PRELOAD");
  if (!list || !strstr(list, "libmmpi-")) return;
  char *copy = strdup(list), *keep = calloc(1, strlen(list) + 2), *rest = copy;
  if (!copy || !keep) return;
  for (char *s; (s = strsep(&rest, ": "));)
    if (*s && !strstr(s, "libmmpi-")) strcat(*keep ? strcat(keep, ":") : keep, s);
  if (*keep) setenv("LD_PRELOAD", keep, 1);
  else unsetenv("LD_PRELOAD");
  free(copy), free(keep);
}

/* ---- leaving: the delete callback of an attribute of MPI_COMM_SELF that was set first, so it runs last and MPI still works ---- */

static int private_barrier(void) { return z_native_barrier(z_private); }

static int leave(MPI_Comm self, int keyval, void *value, void *extra) {
  (void)self, (void)keyval, (void)value, (void)extra;
  if (!z_on) return MPI_SUCCESS;
  zreq_finish_released();
  /* From here on nobody in this cluster needs our native progress, so the engine may block. */
  int rc = private_barrier();
  if (z_eng.ze_finish()) fprintf(stderr, "MMPI: virtual rank %d: leaving the job: %s\n", z_layout.rank, z_eng.ze_error());
  z_on = 0;
  zcomm_stop();
  zreq_stop();
  ztype_stop();
  zsmall_stop();
  zprivate_stop();
  finalizing = 1;
  return rc;
}

/* ---- joining ---- */

/* hosts[i]: the first native rank on the host of native rank i. On a communicator that goes again, for what zprivate_dup says. */
static int find_hosts(int rank, int hosts[]) {
  MPI_Comm all, host;
  int first = rank, rc = zprivate_dup(MPI_COMM_WORLD, &all);
  if (rc) return rc;
  if ((rc = real.Comm_split_type(all, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host))) return rc;
  if (!(rc = real.Bcast(&first, 1, MPI_INT, 0, host))) rc = real.Allgather(&first, 1, MPI_INT, hosts, 1, MPI_INT, all);
  real.Comm_free(&host);
  real.Comm_free(&all);
  return rc;
}

static int join(void) {
  z_local local = {0};
  char library[64], host[256] = "";
  int rc, found = 0, level = 0, *ub = NULL, keyval;
  if ((rc = real.Comm_rank(MPI_COMM_WORLD, &local.rank)) || (rc = real.Comm_size(MPI_COMM_WORLD, &local.size))) return rc;
  if ((rc = real.Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &ub, &found)) || (rc = real.Query_thread(&level))) return rc;
  local.tag_ub = found ? *ub : 32767;
  library_name(library);
  local.library = library;
  gethostname(host, sizeof host - 1);
  local.host = host;
  int *hosts = calloc((size_t)local.size, sizeof *hosts);
  if (!hosts) return MPI_ERR_NO_MEM;
  local.hosts = hosts;
  if ((rc = find_hosts(local.rank, hosts))) {
    free(hosts);
    return rc;
  }

  struct sigaction kept[CRASHES];
  crash_handlers(kept, 0);
  const char *problem = open_engine();
  if (!problem && z_eng.ze_start(&callbacks, &local, &z_layout)) problem = z_eng.ze_error(); /* the first call: Go's handlers are there now */
  if (!registered) crash_handlers(kept, 1);
  if (problem) {
    free(hosts);
    fprintf(stderr, "MMPI: native rank %d on %s: %s\n", local.rank, host, problem);
    fflush(NULL);
    return real.Abort(MPI_COMM_WORLD, 1);
  }
  if (z_layout.clusters <= 1) {
    free(hosts);
    return MPI_SUCCESS;
  }

  z_threads = level == MPI_THREAD_MULTIPLE;
  z_native_size = local.size;
  z_poll_start(local.size, zstages_moved);
  if ((rc = real.Comm_create_keyval(MPI_COMM_NULL_COPY_FN, leave, &keyval, NULL))) return rc;
  if ((rc = real.Comm_set_attr(MPI_COMM_SELF, keyval, NULL)) || (rc = real.Comm_free_keyval(&keyval))) return rc;
  if ((rc = zprivate_start()) || (rc = zsmall_start(local.tag_ub, local.size, hosts))) return rc;
  if ((rc = ztype_start()) || (rc = zcomm_start())) return rc;
  z_on = 1;
  if (z_layout.rank == 0) zwin_doubt(), zfile_doubt();
  return MPI_SUCCESS;
}

static int zipped(void) {
  const char *job = getenv("ZIPPER_JOB");
  return job && *job;
}

/* Open MPI's own MPI-IO writes small pieces by reading what lies around them and writing it back, without a lock that the other clusters would heed: what
 * they have written meanwhile is undone. Both places that do so, data sieving and the collective component two_phase, heed no hint, unlike ROMIO (file.c), only
 * parameters read at the start, which no user can want otherwise. */
static void before_init(void) {
  static const char variable[] = "OMPI_MCA_fcoll", without[] = "two_phase";
  const char *components = getenv(variable);
  char all_but[256];
  if (!zipped()) return;
  setenv("OMPI_MCA_fbtl_posix_write_datasieving", "0", 1);
  int excluding = components && *components == '^';
  if (components && *components && excluding == !!strstr(components, without)) return;
  snprintf(all_but, sizeof all_but, "^%s%s%s", without, excluding ? "," : "", excluding ? components + 1 : ""); /* what must not be is first, so it is never cut off */
  setenv(variable, all_but, 1);
}

static int after_init(int rc) {
  if (rc) return rc;
  if (zipped()) {
    z_enter();
    rc = join();
    z_leave();
  }
  leave_preload();
  return rc;
}

int z_Init(int *argc, char ***argv) {
  before_init();
  z_enter();
  int rc = real.Init(argc, argv);
  z_leave();
  return after_init(rc);
}

int z_Init_thread(int *argc, char ***argv, int required, int *provided) {
  before_init();
  z_enter();
  int rc = real.Init_thread(argc, argv, required, provided);
  z_leave();
  return after_init(rc);
}

int z_Finalize(void) { return real.Finalize(); }

#ifdef Z_HAVE_Session_init
/* A program of sessions alone would run in its cluster alone, unnoticed. */
int z_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session *session) {
  const char *layout = getenv("ZIPPER_LAYOUT");
  if (!layout || !strchr(layout, ',')) return real.Session_init(info, handler, session);
  fputs("MMPI: MPI_Session_init: sessions do not span clusters: start with MPI_Init or MPI_Init_thread in a zipped job\n", stderr);
  if (handler == MPI_ERRORS_ARE_FATAL || handler == MPI_ERRORS_ABORT) { /* the program will not look at the code, and with no session it crashes */
    if (z_on) z_eng.ze_abort(1);
    exit(1);
  }
  *session = MPI_SESSION_NULL;
  return MPI_ERR_UNSUPPORTED_OPERATION;
}
#endif

int z_Abort(MPI_Comm comm, int code) {
  if (z_on) z_eng.ze_abort(code);
  return real.Abort(comm, code);
}

#if defined(MPICH) && !defined(OPEN_MPI)
/* UCX 1.13.1 below MPICH 4.0.2 (Debian 12) hangs in MPI_Finalize about one run in four over TCP, waiting for a
 * disconnection that the peer has already gone through. All of the cluster have left our barrier by then, so nothing is in flight and
 * the end of the process closes the connection. Only this version, only in a zipped job. */
EXPORT void *ucp_disconnect_nb(void *endpoint);
void *ucp_disconnect_nb(void *endpoint) {
  unsigned major = 0, minor = 0, release = 0;
  void (*version)(unsigned *, unsigned *, unsigned *) = (void (*)(unsigned *, unsigned *, unsigned *))dlsym(RTLD_NEXT, "ucp_get_version");
  void *(*next)(void *) = (void *(*)(void *))dlsym(RTLD_NEXT, "ucp_disconnect_nb");
  if (version) version(&major, &minor, &release);
  if (!next || (finalizing && major == 1 && minor == 13 && release == 1)) return NULL;
  return next(endpoint);
}
#endif
