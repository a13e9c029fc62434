/* The changes that MPI_Init makes to the process. Each change is a line of the report, so the lines
 * are the same natively. With the argument "pipe" a rank then writes to a pipe without a reader,
 * which ends the process by SIGPIPE. */
#define _GNU_SOURCE
#include "check.h"
#include <fenv.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
  struct rlimit limit[RLIM_NLIMITS];
  struct sigaction action[NSIG];
  sigset_t mask;
  cpu_set_t cpus;
  int exceptions, rounding, nice, dumpable, subreaper, no_new_privileges, parent_death;
  mode_t umask;
  char name[17], locale[128], directory[4096];
} state;

static void get(state *s) {
  for (int i = 0; i < RLIM_NLIMITS; i++) getrlimit(i, &s->limit[i]);
  for (int i = 1; i < NSIG; i++) sigaction(i, NULL, &s->action[i]);
  sigprocmask(SIG_SETMASK, NULL, &s->mask);
  sched_getaffinity(0, sizeof s->cpus, &s->cpus);
  s->exceptions = fegetexcept();
  s->rounding = fegetround();
  s->nice = getpriority(PRIO_PROCESS, 0);
  s->dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
  prctl(PR_GET_CHILD_SUBREAPER, &s->subreaper);
  s->no_new_privileges = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
  prctl(PR_GET_PDEATHSIG, &s->parent_death);
  umask(s->umask = umask(0));
  prctl(PR_GET_NAME, s->name);
  snprintf(s->locale, sizeof s->locale, "%s", setlocale(LC_ALL, NULL));
  if (!getcwd(s->directory, sizeof s->directory)) s->directory[0] = 0;
}

#define SAY(F, FORMAT) \
  if (a->F != b->F) line(#F " " FORMAT " became " FORMAT, a->F, b->F)
#define SAY_TEXT(F) \
  if (strcmp(a->F, b->F)) line(#F " %s became %s", a->F, b->F)

static void compare(const state *a, const state *b) {
  /* The C library adds the first flag when an action is set, also to the action that was there. The
   * second changes the stack on which a handler runs, which the handler does not notice. */
  enum { ours = 0x04000000 | SA_ONSTACK };
  for (int i = 0; i < RLIM_NLIMITS; i++) {
    if (a->limit[i].rlim_cur != b->limit[i].rlim_cur)
      line("limit %d: %lu became %lu", i, (unsigned long)a->limit[i].rlim_cur, (unsigned long)b->limit[i].rlim_cur);
    if (a->limit[i].rlim_max != b->limit[i].rlim_max) line("hard limit %d", i);
  }
  for (int i = 1; i < NSIG; i++) {
    if (a->action[i].sa_handler != b->action[i].sa_handler) line("another handler for signal %d", i);
    else if ((a->action[i].sa_flags ^ b->action[i].sa_flags) & ~ours)
      line("other flags for signal %d: %x became %x", i, a->action[i].sa_flags, b->action[i].sa_flags);
    if (sigismember(&a->mask, i) != sigismember(&b->mask, i)) line("signal %d in the mask", i);
  }
  if (!CPU_EQUAL(&a->cpus, &b->cpus)) line("cpus");
  SAY(exceptions, "%d");
  SAY(rounding, "%d");
  SAY(nice, "%d");
  SAY(dumpable, "%d");
  SAY(subreaper, "%d");
  SAY(no_new_privileges, "%d");
  SAY(parent_death, "%d");
  SAY(umask, "%o");
  SAY_TEXT(name);
  SAY_TEXT(locale);
  SAY_TEXT(directory);
}

int main(int argc, char **argv) {
  static state before, after;
  struct rlimit files;
  enum { FILES = 300 };
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = FILES;
  setrlimit(RLIMIT_NOFILE, &files);
  feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
  umask(027);
  prctl(PR_SET_NAME, "solver");
  signal(SIGTERM, SIG_IGN);
  get(&before);
  start(&argc, &argv);
  for (int i = 0; i < 200; i++) { /* until there is garbage to collect, and all threads have worked */
    MPI_Comm dup;
    int word = me, sum;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, dup);
    MPI_Comm_free(&dup);
    SAME(sum, np * (np - 1) / 2, "the sum of the ranks");
  }
  get(&after);
  compare(&before, &after);
  if (argc > 1 && !strcmp(argv[1], "pipe")) {
    int ends[2];
    if (pipe(ends)) return 2;
    close(ends[0]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 0 && write(ends[1], "x", 1) < 0) fprintf(stderr, "the process goes on after SIGPIPE\n");
  }
  return finish();
}
