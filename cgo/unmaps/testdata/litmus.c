/* Litmus test of the notes: threads note ranges while another reads them as the engine does. Each
 * range has a length that depends on its address, so that a mixture of two notes shows. */
#define _GNU_SOURCE
#include "../unmaps.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

enum { WRITERS = 2, EACH = 200000, UNALIGNED = 1 };

static size_t length(uintptr_t from) { return from / 64 % 1000 + 1; }

static void *notes(void *first) {
  /* no address is a multiple of a page, so each call fails after its note */
  for (uintptr_t i = 0; i < EACH; i++) {
    uintptr_t from = ((uintptr_t)first + i * WRITERS) * 64 + UNALIGNED;
    munmap((void *)from, length(from));
  }
  return NULL;
}

static uint64_t load(const uint64_t *v) { return __atomic_load_n(v, __ATOMIC_SEQ_CST); }

int main(void) {
  zu_list *list = dlsym(RTLD_DEFAULT, ZU_SYMBOL);
  if (!list) return puts("not preloaded"), 2;
  pthread_t t[WRITERS];
  uint64_t seen = load(&list->count), unknown = 0, read = 0;
  for (uintptr_t i = 0; i < WRITERS; i++)
    if (pthread_create(&t[i], NULL, notes, (void *)(i + 1))) return perror("pthread_create"), 2;
  while (unknown + read < (uint64_t)WRITERS * EACH) {
    uint64_t count = load(&list->count);
    if (count - seen > ZU_NOTES) unknown += count - seen, seen = count;
    for (; seen != count; seen++) {
      __typeof__(&list->note[0]) n = &list->note[seen % ZU_NOTES];
      uint64_t number = load(&n->number), from = load(&n->from), to = load(&n->to);
      if (number != seen + 1 || load(&n->number) != number) {
        unknown++;
        continue;
      }
      read++;
      if (from % 64 != UNALIGNED || to - from == length(from)) continue; /* others are the C library's */
      return printf("note %llu is a mixture: %llx to %llx\n", (unsigned long long)number, (unsigned long long)from,
                    (unsigned long long)to),
             1;
    }
  }
  for (int i = 0; i < WRITERS; i++) pthread_join(t[i], NULL);
  printf("all whole: %llu read, %llu unknown\n", (unsigned long long)read, (unsigned long long)unknown);
  return 0;
}
