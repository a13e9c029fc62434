/* Joining the job and leaving it. */
#define _GNU_SOURCE
#include "coll/smallstage.h"
#include "comm/comm.h"
#include "core/error.h"
#include "core/privcomm.h"
#include "io/file.h"
#include "p2p/p2p.h"
#include "request/fault.h"
#include "rma/win.h"
#include "signal/signal.h"
#include "start/start.h"
#include "type/type.h"
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int zjob_finalizing;

/* Ends this process with an exit status and a message about the reason, because the job is lost.
 * Any thread may call it, so it makes no native MPI call. The launcher sees the exit status and
 * ends the other processes. */
static void fail(int32_t code, const char *reason) {
  if (reason && *reason) {
    char line[1024];
    int n = snprintf(line, sizeof line, "MMPI: virtual rank %d: %s\n", z_layout.rank, reason);
    if (n > (int)sizeof line - 1) n = sizeof line - 1;
    if (write(2, line, n) < 0) { /* the error cannot be reported */
    }
  }
  if (!ftrylockfile(stdout)) fflush_unlocked(stdout);
  _exit(code & 0xff ? code & 0xff : 1); /* the exit status of a lost job is never 0 */
}

static const z_native callbacks = {
    .abi = Z_ABI_VERSION,
    .busy = &z_busy,
    .waits = &z_waiting,
    .leave = &z_leaving,
    .improbe = z_cb_improbe,
    .iprobe = z_cb_iprobe,
    .imrecv = z_cb_imrecv,
    .irecv = z_cb_irecv,
    .test = z_cb_test,
    .cancel = z_cb_cancel,
    .coll = z_cb_coll,
    .coll_test = z_cb_coll_test,
    .reduce_local = z_cb_reduce_local,
    .recode = z_cb_recode,
    .recode_numbers = z_cb_recode_numbers,
    .copy = zdevice_cb_copy,
    .fail = fail,
    .access = zfault_access,
};

/* Writes a short name of the native library to out, such as "Open MPI 4.1.4" or "MPICH 4.0.2". */
static void library_name(char out[64]) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int n;
  if (real.Get_library_version(text, &n)) n = 0;
  text[n] = 0;
  char *version = strpbrk(text, "0123456789");
  snprintf(out, 64, "%s %.*s",
           strstr(text, "MPICH")      ? "MPICH"
           : strstr(text, "Open MPI") ? "Open MPI"
                                      : "MPI",
           version ? (int)strcspn(version, " ,\t\n") : 0, version ? version : "");
}

/* ---- leaving: the delete callback of the first attribute of MPI_COMM_SELF, which therefore runs
 * last, while MPI still works ---- */

static int private_barrier(void) { return z_native_barrier(z_private); }

static int leave(MPI_Comm self, int keyval, void *value, void *extra) {
  (void)self, (void)keyval, (void)value, (void)extra;
  if (z_is_off()) return MPI_SUCCESS;
  zreq_finish_released();
  /* After this barrier no process of this cluster needs this process's native progress, so the
   * engine may block. */
  int rc = private_barrier();
  z_wait_count(&z_waiting.begun);
  int failed = Z_ENGINE(ze_finish());
  z_wait_count(&z_waiting.ended);
  if (failed) fprintf(stderr, "MMPI: virtual rank %d: leaving the job: %s\n", z_layout.rank, Z_ENGINE(ze_error()));
  z_own_page.state = Z_OFF, z_joined = 0;
  zfile_stop();
  zcomm_stop();
  zreq_stop();
  ztype_stop();
  zsmall_stop();
  zprivate_stop();
  zjob_finalizing = 1;
  return rc;
}

/* ---- joining ---- */

/* Sets hosts[i] to the first native rank on the host of native rank i, where `rank` is this
 * process's native rank. It uses a communicator of its own and frees it, for the reason given at
 * zprivate_dup. Returns an MPI error code. */
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

/* Returns whether MPI_Comm_spawn has started this process's world, which is then a separate world:
 * settings about the job's ranks do not apply to it. */
static int is_spawned(void) {
  MPI_Comm parent;
  return !real.Comm_get_parent(&parent) && parent != MPI_COMM_NULL;
}

static int begin_beside(const z_local *local) {
  const char *cluster = getenv("ZIPPER_CLUSTER");
  char layout[300];
  snprintf(layout, sizeof layout, "%s=%d", cluster ? cluster : "spawned", local->size);
  setenv("ZIPPER_LAYOUT", layout, 1);
  z_layout.namesake = getenv(ZSPAWN_NAMESAKE);
  if (local->rank == 0)
    z_world_mark = Z_ENGINE(ze_next_context(0)) ^ ((uint64_t)getpid() << 32) ^ (uint64_t)time(NULL) << 16;
  return real.Bcast(&z_world_mark, sizeof z_world_mark, MPI_BYTE, 0, z_private);
}

int zjob_join(void) {
  z_local local = {.spawned = is_spawned()};
  char library[64], host[256] = "";
  int rc, found = 0, level = 0, *ub = NULL, keyval;
  if ((rc = real.Comm_rank(MPI_COMM_WORLD, &local.rank)) || (rc = real.Comm_size(MPI_COMM_WORLD, &local.size)))
    return rc;
  if ((rc = real.Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &ub, &found)) || (rc = real.Query_thread(&level))) return rc;
  local.tag_ub = found ? *ub : 32767;
  local.threads = level == MPI_THREAD_MULTIPLE;
  local.facts = zfacts();
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

  const char *problem = zlauncher_problem();
  zsignal_first()->adopt();
  if (!problem) problem = zengine_open();
  if (!problem && Z_ENGINE(ze_start(&callbacks, &local, &z_layout))) problem = Z_ENGINE(ze_error());
  if (!problem && !z_with_program) zfault_watch();
  if (problem) {
    free(hosts);
    fprintf(stderr, "MMPI: native rank %d on %s: %s\n", local.rank, host, problem);
    fflush(NULL);
    z_drain_stderr();
    return real.Abort(MPI_COMM_WORLD, 1);
  }
  if (!z_layout.runs) {
    free(hosts);
    return MPI_SUCCESS;
  }

  zexchange_start();
  z_threads = local.threads;
  z_native_size = local.size;
  z_poll_start(local.size, zstages_moved);
  if ((rc = real.Comm_create_keyval(MPI_COMM_NULL_COPY_FN, leave, &keyval, NULL))) return rc;
  if ((rc = real.Comm_set_attr(MPI_COMM_SELF, keyval, NULL)) || (rc = real.Comm_free_keyval(&keyval))) return rc;
  if ((rc = zprivate_start()) || (rc = zsmall_start(local.tag_ub, local.size, hosts))) return rc;
  if (local.spawned && (rc = begin_beside(&local))) return rc;
  if ((rc = ztype_start()) || (rc = zcomm_start()) || (rc = zattr_start())) return rc;
  z_switch_on();
  if (z_layout.rank == 0) zwin_check_variable(), zfile_check_variable();
  return MPI_SUCCESS;
}
