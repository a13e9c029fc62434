/* Processes that the program spawns. The native library spawns them, from a communicator inside the
 * cluster. MMPI is loaded into them too, and they form a world of their own beside the job, without
 * links. Communication between parents and children is native, so both sides must use the same form
 * of each call: a blocking collective is a nonblocking one followed by a wait. A parent that waits
 * for its children serves the job meanwhile.
 *
 * A communicator that spans clusters is refused, because the children would be in one cluster,
 * without a connection to the ranks of the others. */
#define _GNU_SOURCE
#include "comm/comm.h"
#include "io/hints.h"
#include "start/start.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int refuse(MPI_Comm comm, const char *function) {
  return z_raise_on(
      comm, MPI_ERR_UNSUPPORTED_OPERATION, function,
      "the communicator spans clusters, and the new processes would be in one cluster: call it on one inside a "
      "cluster, as MPI_COMM_SELF is");
}

/* Returns whether the info names another cluster than this one by the key zipper_cluster. Processes
 * can be spawned in this cluster only. The key counts at the root alone. */
static int elsewhere(MPI_Info info) {
  char set[MPI_MAX_INFO_VAL + sizeof ZPSET_CLUSTER "/"] = ZPSET_CLUSTER "/", *name = set + sizeof ZPSET_CLUSTER;
  int found = 0, of;
  if (info == MPI_INFO_NULL || real.Info_get(info, "zipper_cluster", MPI_MAX_INFO_VAL, name, &found) || !found)
    return 0;
  return (of = zpset_find(set)) < 0 || !zpset_has_me(of);
}

/* Raises an error in all processes of comm if the root passes mine = 1, because its info names
 * another cluster. Returns the code for the program, or MPI_SUCCESS. */
static int refuse_elsewhere(MPI_Comm comm, int mine, const char *function) {
  int any = 0, rc = zcomm_most(comm, mine, &any, function);
  if (rc || !any) return rc;
  return z_raise_on(comm, MPI_ERR_UNSUPPORTED_OPERATION, function,
                    "zipper_cluster names a cluster other than the caller's: processes there must be started by a "
                    "process of that cluster, or be a job that connects (MPI_Comm_accept, MPI_Comm_connect)");
}

/* ---- the environment of spawned processes ---- */

/* The greatest number of environment variables that are carried to spawned processes. Native
 * libraries pass on the launcher's environment, without the variables that zipper exec sets. So
 * these are passed on here, by env(1), because MPICH's own way to pass variables has little
 * room. */
enum { CARRIED = 6 };
static char *carried[CARRIED + 1];

static char *assignment(const char *name, const char *value) {
  char *text;
  return asprintf(&text, "%s=%s", name, value) < 0 ? NULL : text;
}

void zspawn_note(void) {
  static const char *const names[CARRIED] = {"LD_PRELOAD", "LD_AUDIT",       "ZIPPER_ABI_LIBRARY",
                                             "ZIPPER_JOB", "ZIPPER_CLUSTER", ZSPAWN_NAMESAKE};
  const char *preload = getenv("LD_PRELOAD"), *audit = getenv("LD_AUDIT");
  char *list = NULL;
  Dl_info self;
  /* If MMPI is linked to the program, other programs that it spawns need it preloaded */
  if (!(audit && strstr(audit, "libmmpi-audit")) && dladdr((void *)zspawn_note, &self) && self.dli_fname &&
      !(preload && strstr(preload, self.dli_fname)) &&
      asprintf(&list, "%s%s%s", self.dli_fname, preload ? ":" : "", preload ? preload : "") < 0)
    list = NULL;
  for (int i = 0, n = 0; i < CARRIED; i++) {
    const char *value = i == 0 && list ? list : i == CARRIED - 1 ? z_layout.namesake : getenv(names[i]);
    if (value && *value && (carried[n] = assignment(names[i], value))) n++;
  }
  free(list);
}

static const char env[] = "/usr/bin/env";

/* Returns the arguments of env(1) by which a command is started with the carried variables: the
 * variables, the command and its arguments argv. The caller frees the array. Returns NULL if memory
 * is exhausted. */
static char **arguments(char *command, char **argv) {
  int n = 0, given = 0;
  while (carried[n]) n++;
  while (argv && argv[given]) given++; /* MPI_ARGV_NULL is NULL */
  char **all = calloc((size_t)(n + given + 2), sizeof *all);
  if (!all) return NULL;
  memcpy(all, carried, (size_t)n * sizeof *all);
  all[n] = command;
  for (int i = 0; i < given; i++) all[n + 1 + i] = argv[i];
  return all;
}

/* Returns whether a command can be executed, if its path is absolute; otherwise returns 1. If it
 * cannot, the native call fails, as it must, whereas env(1) would fail only later. */
static int found(const char *command) { return *command != '/' || !access(command, X_OK); }

/* Sets *out to the info with its host names converted from the form of MPI_Get_processor_name to
 * the native one, as zhints_native does. Returns an MPI error code. */
static int native_hosts(MPI_Info info, MPI_Info *out) {
  static const char *const keys[] = {"host", "add-host"};
  return zhints_native(info, keys, 2, out);
}

/* ---- the calls ---- */

static int is_root(MPI_Comm comm, int root) {
  int rank;
  return !real.Comm_rank(comm, &rank) && rank == root;
}

int z_Comm_spawn(const char *command, char *argv[], int n, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *inter,
                 int codes[]) {
  static const char function[] = "MPI_Comm_spawn";
  char **all = NULL;
  MPI_Info hosts = info;
  if (zcomm_find(comm)) return refuse(comm, function);
  int at_root = is_root(comm, root), rc = refuse_elsewhere(comm, at_root && elsewhere(info), function);
  if (rc || (rc = zcomm_meet(comm))) return rc;
  if (at_root && native_hosts(info, &hosts)) z_no_memory("the hosts of the processes to be spawned");
  if (at_root && found(command) && !(all = arguments((char *)(uintptr_t)command, argv)))
    z_no_memory("the processes to be spawned");
  z_wait_outside();
  z_enter();
  rc = real.Comm_spawn(all ? env : command, all ? all : argv, n, hosts, root, comm, inter, codes);
  z_leave();
  if (hosts != info) real.Info_free(&hosts);
  free(all);
  return rc;
}

int z_Comm_spawn_multiple(int count, char *commands[], char **argvs[], const int n[], const MPI_Info infos[], int root,
                          MPI_Comm comm, MPI_Comm *inter, int codes[]) {
  static const char function[] = "MPI_Comm_spawn_multiple";
  if (zcomm_find(comm)) return refuse(comm, function);
  int at_root = is_root(comm, root) && count > 0, away = 0;
  for (int i = 0; i < count && at_root && infos; i++) away |= elsewhere(infos[i]);
  int rc = refuse_elsewhere(comm, away, function);
  if (rc || (rc = zcomm_meet(comm))) return rc;
  char **names = NULL, ***all = NULL;
  MPI_Info *hosts = NULL;
  if (at_root) {
    names = calloc((size_t)count, sizeof *names), all = calloc((size_t)count, sizeof *all);
    hosts = calloc((size_t)count, sizeof *hosts);
    for (int i = 0; i < count && names && all && hosts; i++) {
      if (infos && native_hosts(infos[i], &hosts[i])) z_no_memory("the hosts of the processes to be spawned");
      char **argv = argvs == MPI_ARGVS_NULL ? NULL : argvs[i];
      names[i] = found(commands[i]) ? (char *)(uintptr_t)env : commands[i];
      all[i] = names[i] == commands[i] ? argv : arguments(commands[i], argv);
    }
    if (!names || !all || !hosts) z_no_memory("the processes to be spawned");
  }
  z_wait_outside();
  z_enter();
  rc = real.Comm_spawn_multiple(count, at_root ? names : commands, at_root ? all : argvs, n,
                                at_root && infos ? hosts : infos, root, comm, inter, codes);
  z_leave();
  for (int i = 0; i < count && at_root; i++) {
    if (names[i] != commands[i]) free(all[i]);
    if (infos && hosts[i] != infos[i]) real.Info_free(&hosts[i]);
  }
  free(names), free(all), free(hosts);
  return rc;
}

int z_Comm_join(int socket, MPI_Comm *out) {
  (void)socket, (void)out;
  return z_raise_on(MPI_COMM_SELF, MPI_ERR_UNSUPPORTED_OPERATION, "MPI_Comm_join",
                    "jobs connect by MPI_Comm_accept and MPI_Comm_connect");
}
