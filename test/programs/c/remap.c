/* Buffers whose memory is unmapped, remapped, freed and allocated again between messages, at the
 * same addresses, and forks in mid-job: each message must have the memory's current content. Ranks
 * 0 and 1 exchange messages; the others wait.
 *
 *   remap [BYTES] [raw]    BYTES of each message (2 MiB); raw: unmaps by system calls that glibc
 * does not see */
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 64 << 10 }; /* the largest page size of a kernel, which all smaller ones divide */
static size_t bytes = 2 << 20;
static int raw, round_;

/* Far below the addresses that the kernel chooses: no other thread's memory (a new arena, a stack)
 * can get into a hole that is made here for a moment. Some kernels for aarch64 have addresses of 39
 * bits. */
static char *const place = (char *)0x2000000000;

static void *fresh(void *at, size_t n) {
  void *p = mmap(at, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p != at) fprintf(stderr, "remap: %zu bytes wanted at %p, got %p\n", n, at, p), MPI_Abort(MPI_COMM_WORLD, 3);
  return p;
}
static void away(void *p, size_t n) { raw ? (void)syscall(SYS_munmap, p, n) : (void)munmap(p, n); }

/* Sends one message each way between the memory at out and in. */
static void exchange(const char *what, char *out, char *in, size_t n) {
  int peer = 1 - me;
  round_++;
  fill(out, n, round_ * 2 + me);
  for (int turn = 0; turn < 2; turn++)
    if (turn == me) MPI_Send(out, (int)n, MPI_BYTE, peer, round_, MPI_COMM_WORLD);
    else {
      memset(in, 0x5a, 64); /* some pages exist already, others do not */
      MPI_Recv(in, (int)n, MPI_BYTE, peer, round_, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  int right = filled(in, n, round_ * 2 + peer);
  CHECK(right, "message %d, %s", round_, what);
  line("%s: %s", what, right ? "right" : "wrong");
}

static void child(char *out, char *in, size_t n) {
  pid_t p = fork();
  if (p == 0) { /* the child has a copy of all memory, and may do anything with it */
    volatile char sum = 0;
    for (size_t i = 0; i < n; i += 4096 /* the smallest size of a page */) sum += in[i];
    memset(out, 1, n), memset(in, 2, n);
    free(malloc(1 << 20));
    _exit(0);
  }
  /* The parent writes to pages that it shares with the child: they may be copied, and the parent's
   * must be those that are registered. */
  memset(out, 3, n), memset(in, 4, n);
  int status = -1;
  if (p < 0 || waitpid(p, &status, 0) != p || status) CHECK(0, "child: status %d", status);
}

static void *on_stack(void *what) {
  char out[300000], in[300000];
  exchange(what, out, in, sizeof out);
  return NULL;
}

int main(int argc, char **argv) {
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &np);
  if (argc > 1) bytes = strtoul(argv[1], NULL, 0) & -(size_t)PAGE;
  raw = argc > 2 && !strcmp(argv[2], "raw");
  if (me < 2) {
    /* the last page stays, so that mremap cannot grow in place */
    char *out = fresh(place, 2 * bytes + PAGE), *in = out + bytes;
    exchange("first", out, in, bytes);
    exchange("again", out, in, bytes);
    for (int i = 0; i < 2; i++) {
      away(out, 2 * bytes);
      fresh(out, 2 * bytes);
      exchange("unmapped and mapped again", out, in, bytes);
    }
    if (!raw) {
      away(in + bytes / 2, PAGE);
      fresh(in + bytes / 2, PAGE);
      exchange("one page of the receive", out, in, bytes);
      madvise(out, 2 * bytes, MADV_DONTNEED);
      exchange("madvise", out, in, bytes);
      /* Not to a fixed address, because the hook of UCX 1.13 below MPICH drops mremap's last
       * argument. */
      char *moved = mremap(out, 2 * bytes, 4 * bytes, MREMAP_MAYMOVE);
      CHECK(moved != MAP_FAILED && moved != out, "mremap");
      fresh(out, 2 * bytes);
      exchange("left behind by mremap", out, in, bytes);
      exchange("moved by mremap", moved, moved + bytes, bytes);
      if (mmap(out, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != out)
        perror("mmap");
      exchange("mapped over", out, in, bytes);
      for (int i = 0; i < 2; i++) {
        child(out, in, bytes);
        exchange("after a fork", out, in, bytes);
      }
      for (int i = 0; i < 3; i++) {
        char *a = malloc(bytes), *b = malloc(bytes);
        exchange("malloc", a, b, bytes);
        a = realloc(a, 3 * bytes);
        exchange("realloc", a, b, bytes);
        free(a), free(b);
      }
      char *end = sbrk(2 * bytes);
      exchange("sbrk", end, end + bytes, bytes);
      if (sbrk(0) == end + 2 * bytes) { /* malloc has not used the heap meanwhile */
        sbrk(-2 * (intptr_t)bytes);
        CHECK(sbrk(2 * bytes) == end, "sbrk");
      }
      exchange("sbrk, down and up", end, end + bytes, bytes);
      for (int i = 0; i < 3; i++) {
        pthread_t t;
        if (pthread_create(&t, NULL, on_stack, "a thread's stack")) perror("pthread_create");
        pthread_join(t, NULL);
      }
      munmap(moved, 4 * bytes);
    }
    munmap(out, 2 * bytes + PAGE);
  }
  return finish();
}
