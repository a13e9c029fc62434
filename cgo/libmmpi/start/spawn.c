/* Processes that the program starts itself. The native library starts them, from a communicator
 * inside the cluster. They get MMPI too, and are a world of their own beside the job, without
 * links. What they share with their parents is native, so both sides must use the same forms of
 * calls: a blocking collective is a nonblocking one that is waited for. A parent that waits for
 * them serves the job.
 *
 * On a communicator that spans clusters this is refused: the processes would be in one cluster, and
 * the ranks of the others would have no way to them. */
#define _GNU_SOURCE
#include "comm/comm.h"
#include "io/hints.h"
#include "start/start.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int refuse(MPI_Comm comm, const char *function) {
  return z_raise_on(comm, MPI_ERR_UNSUPPORTED_OPERATION, function,
                    "the communicator spans clusters, and those processes would be in one: call it on one inside a "
                    "cluster, as MPI_COMM_SELF is");
}

/* Whether the program wants the processes in another cluster; they can be in this one only. A key
 * of the info says so, which counts at the root alone. */
static int elsewhere(MPI_Info info) {
  char set[MPI_MAX_INFO_VAL + sizeof ZPSET_CLUSTER "/"] = ZPSET_CLUSTER "/", *name = set + sizeof ZPSET_CLUSTER;
  int found = 0, of;
  if (info == MPI_INFO_NULL || real.Info_get(info, "zipper_cluster", MPI_MAX_INFO_VAL, name, &found) || !found)
    return 0;
  return (of = zpset_find(set)) < 0 || !zpset_has_me(of);
}

/* All of comm hear of it. */
static int refuse_elsewhere(MPI_Comm comm, int mine, const char *function) {
  int any = 0, rc = zcomm_most(comm, mine, &any, function);
  if (rc || !any) return rc;
  return z_raise_on(comm, MPI_ERR_UNSUPPORTED_OPERATION, function,
                    "zipper_cluster names another cluster than the caller's: processes in that one are started by a "
                    "process that is there, or are a job that connects (MPI_Comm_accept, MPI_Comm_connect)");
}

/* ---- what they need of our environment ---- */

/* Native libraries hand down the launcher's environment. It lacks what zipper exec sets, so that is
 * carried along. MPICH's own way has little room. */
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
  /* Linked to the program: other programs are to have us all the same */
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

/* The arguments of env(1) that sets what is carried and starts the command. To be freed. */
static char **arguments(char *command, char **argv) {
  int n = 0, given = 0;
  while (carried[n]) n++;
  while (argv && argv[given]) given++; /* MPI_ARGV_NULL has none */
  char **all = calloc((size_t)(n + given + 2), sizeof *all);
  if (!all) return NULL;
  memcpy(all, carried, (size_t)n * sizeof *all);
  all[n] = command;
  for (int i = 0; i < given; i++) all[n + 1 + i] = argv[i];
  return all;
}

/* Natively this is an error of the call; env would find out too late. */
static int found(const char *command) { return *command != '/' || !access(command, X_OK); }

/* What names hosts for the processes, as MPI_Get_processor_name gives them. */
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
