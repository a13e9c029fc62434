/* Unmaps memory in every way that exists, and checks whether it was noted. Run with
 * libmmpi-unmaps.so preloaded. */
#define _GNU_SOURCE
#include "../unmaps.h"
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

/* PAGE is the largest page size of a kernel, which all smaller ones divide. */
enum { PAGE = 64 << 10, N = 4 * PAGE, LARGE = 32 << 20 };
static zu_list *list;
static uint64_t seen;
static int failed;

/* Checks whether [at, at + n) is among the notes since the last call. */
static void want(const char *what, void *at, size_t n, int noted) {
  int found = 0;
  for (; seen < list->count; seen++) {
    __typeof__(&list->note[0]) x = &list->note[seen % ZU_NOTES];
    found |= x->number == seen + 1 && x->from <= (uintptr_t)at && (uintptr_t)at + n <= x->to;
  }
  if (found == noted) return;
  printf("%s: %s\n", what, noted ? "not noted" : "noted");
  failed = 1;
}

static char *map(void) {
  char *m = mmap(NULL, N, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (m == MAP_FAILED) perror("mmap"), exit(2);
  memset(m, 1, N);
  return m;
}

static void *on_stack;
static void *thread(void *how) {
  char here[3 * PAGE];
  memset(here, 1, sizeof here);
  on_stack = here;
  if (how) pthread_exit(here);
  return how;
}

int main(void) {
  list = dlsym(RTLD_DEFAULT, ZU_SYMBOL);
  if (!list) return puts("not preloaded"), 2;
  seen = list->count;
  char *m = map();
  want("mmap", m, N, 0);
  if (mmap(m, N, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != m) perror("mmap");
  want("mmap at a fixed place", m, N, 1);
  madvise(m, N, MADV_WILLNEED);
  want("madvise WILLNEED", m, N, 0);
  madvise(m, N, MADV_DONTNEED);
  want("madvise DONTNEED", m, N, 1);
  madvise(m + PAGE, PAGE, MADV_FREE);
  want("madvise FREE", m + PAGE, PAGE, 1);
  char *other = map();
  char *moved = mremap(m, N, N, MREMAP_MAYMOVE | MREMAP_FIXED, other);
  if (moved != other) perror("mremap");
  uint64_t before = seen;
  want("mremap from", m, N, 1);
  seen = before;
  want("mremap to", other, N, 1);
  m = mremap(moved, N, N / 2, 0);
  want("mremap smaller", moved + N / 2, N / 2, 1);
  munmap(m, N / 2);
  want("munmap", m, N / 2, 1);

  /* Large blocks of malloc stay at their address, and mapped. */
  static unsigned char core[LARGE / (4 << 10)]; /* a byte for each page of the smallest size */
  char *large = malloc(LARGE), *small = malloc(100);
  memset(large, 1, LARGE);
  char *page = (char *)(((uintptr_t)large + PAGE - 1) & -PAGE);
  size_t inside = LARGE - PAGE;
  large = realloc(large, inside / 2);
  free(large);
  want("free", page, PAGE, 0);
  if (mincore(page, inside, core)) perror("free has unmapped"), failed = 1;
  free(small);
  if (mincore(page, inside, core)) perror("free has shrunk the heap"), failed = 1;
  malloc_trim(0);
  want("malloc_trim", page, PAGE, 1);

  char *end = sbrk(N);
  sbrk(-N);
  want("sbrk", end, N, 1);
  if (sbrk(N) != end) perror("sbrk");
  brk(end);
  want("brk", end, N, 1);
  sbrk(0), sbrk(PAGE);
  want("sbrk up", end, PAGE, 0);

  int id = shmget(IPC_PRIVATE, N, IPC_CREAT | 0600);
  void *shared = shmat(id, NULL, 0);
  shmctl(id, IPC_RMID, NULL);
  shmdt(shared);
  want("shmdt", shared, N, 1);
  void *lib = dlopen("libm.so.6", RTLD_NOW);
  if (lib) dlclose(lib);
  want("dlclose", main, 1, 1);

  for (int how = 0; how < 2; how++) {
    pthread_t t;
    void *result;
    if (pthread_create(&t, NULL, thread, how ? m : NULL) || pthread_join(t, &result)) perror("thread");
    if ((result == NULL) == how) printf("a thread's result is lost\n"), failed = 1;
    want(how ? "pthread_exit" : "thread's end", on_stack, 3 * PAGE, 1);
  }
  if (!failed) puts("all noted");
  return failed;
}
