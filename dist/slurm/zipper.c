/*
 * SPANK plug-in of the Leiden Zipper for Slurm. make -C dist/slurm builds it; a line in
 * plugstack.conf on all nodes loads it:
 *
 *   required /usr/lib/slurm/zipper.so zipper=/usr/local/bin/zipper task=/usr/local/libexec/zipper-task
 *
 *   srun --zipper-cluster=a [--zipper-job-file=FILE] ./prog   each task is wrapped as by zipper exec
 *   sbatch --zipper-forwarder=FILE                            the prolog starts a forwarder for the job
 *
 * FILE has the job, as for zipper exec --env; by default it is the one that ZIPPER_JOB_FILE names.
 */
#include <limits.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SPANK_PLUGIN(zipper, 1)

static const char *cluster, *job_file, *forwarder;

/* Keys of the options' values. */
enum { CLUSTER = 1, JOB_FILE, FORWARDER };

static int take(int val, const char *value, int remote) {
  (void)remote;
  if (!value || !*value) {
    slurm_error("zipper: an option without its value");
    return -1;
  }
  char *copy = strdup(value);
  if (!copy) {
    return -1;
  }
  switch (val) {
  case CLUSTER: cluster = copy; break;
  case JOB_FILE: job_file = copy; break;
  default: forwarder = copy;
  }
  return 0;
}

static struct spank_option options[] = {
    {"zipper-cluster", "NAME", "run the tasks as the cluster NAME of a zipped job", 1, CLUSTER, take},
    {"zipper-job-file", "FILE", "the zipped job, as for zipper exec --env (default: ZIPPER_JOB_FILE)", 1, JOB_FILE,
     take},
    {"zipper-forwarder", "FILE", "start a forwarder for the zipped job of FILE on the job's gateway node", 1, FORWARDER,
     take},
};

int slurm_spank_init(spank_t sp, int ac, char **av) {
  (void)ac;
  (void)av;
  for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
    if (spank_option_register(sp, &options[i]) != ESPANK_SUCCESS) {
      slurm_error("zipper: Slurm does not take the option --%s", options[i].name);
      return -1;
    }
  }
  return 0;
}

/* absolute puts the absolute path of file into path, of n bytes. It returns -1 if that fails. */
static int absolute(char *path, size_t n, const char *file) {
  int length;
  if (*file == '/') {
    length = snprintf(path, n, "%s", file);
  } else {
    char here[PATH_MAX];
    if (!getcwd(here, sizeof here)) {
      return -1;
    }
    length = snprintf(path, n, "%s/%s", here, file);
  }
  return length > 0 && (size_t)length < n ? 0 : -1;
}

/*
 * The prolog finds the file in SPANK_ZIPPER_FORWARDER. It runs in another directory, as root, and
 * hands the name on to a process of the user's, which reads the file.
 */
int slurm_spank_init_post_opt(spank_t sp, int ac, char **av) {
  (void)ac;
  (void)av;
  if (!forwarder || spank_remote(sp) == 1) {
    return 0;
  }
  char file[PATH_MAX];
  if (absolute(file, sizeof file, forwarder)) {
    slurm_error("zipper: --zipper-forwarder=%s: the file's absolute path cannot be found, or is too long", forwarder);
    return -1;
  }
  if (spank_job_control_setenv(sp, "ZIPPER_FORWARDER", file, 1) != ESPANK_SUCCESS) {
    slurm_error("zipper: cannot pass the forwarder to the prolog: give --zipper-forwarder to sbatch or salloc");
    return -1;
  }
  return 0;
}

static const char *argument(int ac, char **av, const char *name, const char *otherwise) {
  size_t n = strlen(name);
  for (int i = 0; i < ac; i++) {
    if (strncmp(av[i], name, n) == 0 && av[i][n] == '=') {
      return av[i] + n + 1;
    }
  }
  return otherwise;
}

/* In the task, before its program: zipper-task gets the program's name in the environment. */
int slurm_spank_task_init(spank_t sp, int ac, char **av) {
  if (!cluster) {
    return 0;
  }
  int argc = 0;
  char **argv = NULL, from_environment[4096];
  if (spank_get_item(sp, S_JOB_ARGV, &argc, &argv) != ESPANK_SUCCESS || argc < 1) {
    slurm_error("zipper: Slurm does not give the task's program");
    return -1;
  }
  const char *file = job_file;
  if (!file && spank_getenv(sp, "ZIPPER_JOB_FILE", from_environment, sizeof from_environment) == ESPANK_SUCCESS) {
    file = from_environment;
  }
  if (!file) {
    slurm_error("zipper: --zipper-cluster=%s without a job: give --zipper-job-file=FILE, or set ZIPPER_JOB_FILE",
                cluster);
    return -1;
  }
  const char *set[][2] = {
      {"ZIPPER_TASK_PROGRAM", argv[0]},
      {"ZIPPER_TASK_ENV", file},
      {"ZIPPER_TASK_CLUSTER", cluster},
      {"ZIPPER_TASK_ZIPPER", argument(ac, av, "zipper", "/usr/local/bin/zipper")},
  };
  for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
    if (spank_setenv(sp, set[i][0], set[i][1], 1) != ESPANK_SUCCESS) {
      slurm_error("zipper: cannot set %s", set[i][0]);
      return -1;
    }
  }
  char *task = strdup(argument(ac, av, "task", "/usr/local/libexec/zipper-task"));
  if (!task) {
    return -1;
  }
  argv[0] = task;
  return 0;
}
