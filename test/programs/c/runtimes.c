/* A program that loads a library of another Go runtime, with signal handlers of its own, and uses
 * both in turn.
 *
 *   runtimes LIBRARY before|after
 *
 * says whether it is loaded before MPI_Init or after. */
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

enum { ROUNDS = 100, BYTES = 100000 };

static int (*recovers)(void), (*work)(int);
static void (*listen_for)(int), (*await_signal)(void);

static void load(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  recovers = (int (*)(void))dlsym(library, "guest_recovers");
  work = (int (*)(int))dlsym(library, "guest_work");
  listen_for = (void (*)(int))dlsym(library, "guest_listen");
  await_signal = (void (*)(void))dlsym(library, "guest_await");
  listen_for(SIGUSR1);
}

int main(int argc, char **argv) {
  static char buffer[BYTES];
  if (argc != 3) return 2;
  int before = !strcmp(argv[2], "before");
  if (before) load(argv[1]);
  start(&argc, &argv);
  if (!before) load(argv[1]);
  for (int i = 0; i < ROUNDS; i++) {
    int n = 1 + i * (BYTES / ROUNDS), left = (me + np - 1) % np;
    fill(buffer, (size_t)n, (uint64_t)(1000 * me + i));
    MPI_Sendrecv_replace(buffer, n, MPI_CHAR, (me + 1) % np, 1, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(filled(buffer, (size_t)n, (uint64_t)(1000 * left + i)), "round %d", i);
    SAME(work(10), 10, "allocations of the other runtime");
    SAME(recovers(), 1, "recovery from a fault in the other runtime");
    if (i % 10) continue;
    kill(getpid(), SIGUSR1);
    await_signal();
  }
  line("%s", argv[2]);
  return finish();
}
