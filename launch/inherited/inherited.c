#define _GNU_SOURCE
#include "inherited.h"
#include <signal.h>

static unsigned long long ignored, blocked;

/* The C library runs this before main, where Go's runtime installs its handlers. */
__attribute__((constructor)) static void note(void) {
  sigset_t mask;
  sigprocmask(SIG_BLOCK, NULL, &mask);
  for (int n = 1; n <= 64; n++) {
    struct sigaction was;
    if (!sigaction(n, NULL, &was) && was.sa_handler == SIG_IGN) ignored |= 1ULL << (n - 1);
    if (sigismember(&mask, n) == 1) blocked |= 1ULL << (n - 1);
  }
}

int zi_is_ignored(int number) { return ignored >> (number - 1) & 1; }

unsigned long long zi_blocked_mask(void) { return blocked; }
