/* A thread that makes children in every way, with handlers of pthread_atfork, while another one
 * communicates. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 300, CHILDREN = 100, STATUS = 7 };

extern char **environ;
static int prepared, followed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void prepare(void) { pthread_mutex_lock(&lock), prepared++; }
static void in_parent(void) { followed++, pthread_mutex_unlock(&lock); }
static void in_child(void) { pthread_mutex_unlock(&lock), free(malloc(100000)); }

static pid_t by_fork(void) {
  pid_t child = fork();
  if (child) return child;
  char *memory = malloc(1 << 20), text[20];
  memset(memory, 1, 1 << 20);
  snprintf(text, sizeof text, "%d", STATUS); /* the C library's locks work in the child */
  _exit(atoi(text));
}

static pid_t by_vfork(void) {
  pid_t child = vfork();
  if (!child) {
    execl("/bin/sh", "sh", "-c", "exit 7", NULL);
    _exit(1);
  }
  return child;
}

static pid_t by_spawn(void) {
  char *words[] = {"sh", "-c", "exit 7", NULL};
  pid_t child = -1;
  CHECK(!posix_spawn(&child, "/bin/sh", NULL, NULL, words, environ));
  return child;
}

static void *make_children(void *nothing) {
  static pid_t (*const ways[])(void) = {by_fork, by_vfork, by_spawn};
  for (int i = 0; i < CHILDREN; i++) {
    int status = -1;
    if (i % 4 == 3) {
      SAME(WEXITSTATUS(system("exit 7")), STATUS, "the status of system");
      continue;
    }
    pid_t child = ways[i % 4]();
    SAME(waitpid(child, &status, 0), child, "waitpid");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == STATUS, "child %d: status %#x", i, status);
  }
  return nothing;
}

int main(int argc, char **argv) {
  static char buffer[ROUNDS * 1000];
  pthread_t thread;
  pthread_atfork(prepare, in_parent, in_child);
  start(&argc, &argv);
  CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "there are children already");
  CHECK(!pthread_create(&thread, NULL, make_children, NULL));
  for (int i = 0; i < ROUNDS; i++) {
    int n = 1 + i * 999, left = (me + np - 1) % np;
    MPI_Comm dup;
    fill(buffer, (size_t)n, (uint64_t)(1000 * me + i));
    MPI_Sendrecv_replace(buffer, n, MPI_CHAR, (me + 1) % np, 1, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(filled(buffer, (size_t)n, (uint64_t)(1000 * left + i)), "round %d", i);
    if (i % 10) continue;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_free(&dup);
  }
  CHECK(!pthread_join(thread, NULL));
  SAME(followed, prepared, "handlers of pthread_atfork");
  line("%d children", CHILDREN);
  return finish();
}
