/* Calls of MPI on stacks that are not a thread's: those of coroutines, alternating with the
 * thread's own. Natively no call reads a file, and /proc/self/maps, which has the bounds of a
 * thread's stack, takes longer to read than a message. */
#include "check.h"
#include <sys/mman.h>
#include <ucontext.h>

enum { COROUTINES = 3, ROUNDS = 300, STACK = 512 << 10, MOST_READ = 4 << 20 };

static ucontext_t thread, coroutine;

/* Returns the number of bytes that this process has read from files. */
static long long bytes_read(void) {
  FILE *f = fopen("/proc/self/io", "r");
  long long n = -1;
  if (!f || fscanf(f, "rchar: %lld", &n) != 1) n = -1;
  if (f) fclose(f);
  return n;
}

static void communicate(void) {
  for (int i = 0; i < ROUNDS; i++) {
    int out = 1000 * me + i, in = -1, left = (me + np - 1) % np, sum = 0;
    MPI_Sendrecv(&out, 1, MPI_INT, (me + 1) % np, 1, &in, 1, MPI_INT, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    SAME(in, 1000 * left + i, "a message of the ring");
    MPI_Allreduce(&out, &sum, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    SAME(sum, 1000 * (np - 1) + i, "the largest");
  }
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  communicate();
  long long before = bytes_read();
  for (int i = 0; i < COROUTINES; i++) {
    void *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = stack, coroutine.uc_stack.ss_size = STACK;
    coroutine.uc_link = &thread;
    makecontext(&coroutine, communicate, 0);
    swapcontext(&thread, &coroutine);
    munmap(stack, STACK);
    communicate();
  }
  long long after = bytes_read();
  CHECK(before >= 0 && after - before < MOST_READ, "%lld bytes were read", after - before);
  line("%d coroutines", COROUTINES);
  return finish();
}
