/* A program that reaches MPI by dlopen and dlsym alone, as bindings of interpreters do: it is
 * compiled without mpi.h and linked to no library.
 *
 *   opened LIBRARY [deepbind] [global] [sampled]
 *
 * The program prints the world and the results of a few calls. With "sampled" a handler that needs
 * much stack interrupts many such calls. */
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum { FRAME = 64 << 10, MICROSECONDS = 500, ROUNDS = 3000 };

static void *library;

static void sample(int number) {
  volatile char *p = alloca(FRAME);
  for (int i = 0; i < FRAME; i += 64) p[i] = (char)number;
}

/* Begins to sample, and returns the number of calls to be made. */
static int sampled(void) {
  struct sigaction act = {.sa_handler = sample, .sa_flags = SA_RESTART};
  struct itimerval often = {{0, MICROSECONDS}, {0, MICROSECONDS}};
  sigaction(SIGALRM, &act, NULL);
  setitimer(ITIMER_REAL, &often, NULL);
  return ROUNDS;
}

static void *get(const char *name) {
  void *f = dlsym(library, name);
  if (!f) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  return f;
}

/* Returns a handle: an address in Open MPI, a number in MPICH and in the standard ABI. All of them
 * fit a pointer that is passed in a register. */
static void *handle(int standard, const char *openmpi, uintptr_t mpich, uintptr_t abi) {
  if (standard) return (void *)abi;
  void *p = dlsym(library, openmpi);
  return p ? p : (void *)mpich;
}

int main(int argc, char **argv) {
  int flags = RTLD_NOW | RTLD_LOCAL, standard, rounds = 1, samples = 0;
  for (int i = 2; i < argc; i++) {
    if (!strcmp(argv[i], "deepbind")) flags |= RTLD_DEEPBIND;
    if (!strcmp(argv[i], "sampled")) samples = 1;
    if (!strcmp(argv[i], "global")) flags = (flags & ~RTLD_LOCAL) | RTLD_GLOBAL;
  }
  if (argc < 2 || !(library = dlopen(argv[1], flags))) {
    fprintf(stderr, "opened: %s\n", argc < 2 ? "no library" : dlerror());
    return 1;
  }
  standard = strstr(argv[1], "_abi") != NULL;
  void *world = handle(standard, "ompi_mpi_comm_world", 0x44000000, 0x101);
  void *integer = handle(standard, "ompi_mpi_int", 0x4c000405, 0x209);
  void *sum = handle(standard, "ompi_mpi_op_sum", 0x58000003, 0x21);
  int (*init)(int *, char ***) = get("MPI_Init");
  int (*finalize)(void) = get("MPI_Finalize");
  int (*comm_rank)(void *, int *) = get("MPI_Comm_rank");
  int (*comm_size)(void *, int *) = get("MPI_Comm_size");
  int (*allreduce)(const void *, void *, int, void *, void *, void *) = get("MPI_Allreduce");
  int (*sendrecv)(const void *, int, void *, int, int, void *, int, void *, int, int, void *, void *) =
      get("MPI_Sendrecv");
  int me, n, total, left = -1;
  char status[64];
  init(NULL, NULL);
  comm_rank(world, &me);
  comm_size(world, &n);
  int mine = 10 + me;
  if (samples) rounds = sampled();
  for (int i = 0; i < rounds; i++) {
    allreduce(&mine, &total, 1, integer, sum, world);
    sendrecv(&mine, 1, integer, (me + 1) % n, 7, &left, 1, integer, (me + n - 1) % n, 7, world, status);
  }
  setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
  printf("%d of %d: sum %d, left %d\n", me, n, total, left);
  finalize();
  return 0;
}
