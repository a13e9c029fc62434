/* The wait loop. A waiting thread serves everything: native progress (a peer may need it for its own rendezvous), the links
 * (through ze_progress, which also probes for deferred receives), and what the program has let go of. Owner: shim. */
#include "shim.h"
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>

enum {
  SPINS = 64,            /* most turns before the first sleep: some tens of microseconds */
  FEW_SPINS = 4,         /* and least */
  EXPLORE = 32,          /* one wait in so many has all SPINS, to see whether they pay now */
  NATIVE_SPINS = 2000,   /* turns before yielding while only native MPI is waited for */
  FIRST_SLEEP_US = 20,
  FIRST_NAP_US = 5,      /* the same while native MPI is waited for, which wakes nobody */
  LONGEST_NAP_US = 200,
  TIMER_SLACK_NS = 1000, /* Linux lets sleeps last 50 us longer than asked for, unless told otherwise */
  LONGEST_SLEEP_US = 1000, /* native MPI has no descriptor to sleep on, so its messages wait as long as we sleep */
};

static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

/* ZIPPER_POLL: adaptive spins as long as that has paid lately, then sleeps; event sleeps at once; busy never does. */
static enum manner { ADAPTIVE, BUSY, EVENT } manner;

void z_poll_start(void) {
  prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
  const char *s = getenv("ZIPPER_POLL");
  manner = !s ? ADAPTIVE : !strcmp(s, "busy") ? BUSY : !strcmp(s, "event") ? EVENT : ADAPTIVE;
}

/* How many turns this thread's waits spin. Where processes outnumber cores a spin keeps the core from those who would answer, so it seldom
 * pays and becomes short; where the answer comes during the spin it becomes long. */
static _Thread_local unsigned spins = SPINS, waits;

static unsigned spin_limit(void) {
  switch (manner) {
  case BUSY: return UINT_MAX;
  case EVENT: return 0;
  default: return waits++ % EXPLORE == 0 ? SPINS : spins;
  }
}

static void spin_paid(unsigned turns) {
  unsigned want = 2 * turns + FEW_SPINS < SPINS ? 2 * turns + FEW_SPINS : SPINS;
  spins = (3 * spins + want + 3) / 4;
}

static void spin_failed(void) { spins = (3 * spins + FEW_SPINS) / 4; }

/* Native progress without any request of our own. */
static void poke(void) {
  int flag;
  real.Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, z_private, &flag, MPI_STATUS_IGNORE);
}

/* A program that only tests may be what a local peer waits for: native MPI moves on here too. */
void z_poll(void) {
  poke();
  z_eng.ze_progress(0);
  zreq_reap();
}

void z_poll_if_busy(void) {
  if (z_busy) z_poll();
}

/* What can end a wait. */
enum wait_for {
  NATIVE, /* native MPI alone */
  ENGINE, /* an engine's request, which may be in native MPI's hands: then the engine is idle, but tests it in ze_progress */
  LINKS,  /* a message that nobody asked the engine for yet */
};

static void wait(int (*over)(void *), void *arg, enum wait_for what) {
  const int first = what == NATIVE ? FIRST_NAP_US : FIRST_SLEEP_US, longest = what == NATIVE ? LONGEST_NAP_US : LONGEST_SLEEP_US;
  int sleep_us = first;
  unsigned limit = spin_limit();
  for (unsigned turn = 1; !over(arg); turn++) {
    poke();
    zreq_reap();
    if (!z_busy && what != LINKS) { /* only native MPI can end this wait: behave as it does */
      if (what == ENGINE) z_eng.ze_progress(0);
      if (turn % NATIVE_SPINS == 0) sched_yield();
      relax();
      continue;
    }
    int moved = z_eng.ze_progress(0);
    if (moved <= 0) {
      if (turn < limit) {
        relax();
        continue;
      }
      if (over(arg)) return;
      if (turn == limit) spin_failed();
      moved = z_eng.ze_progress(sleep_us);
      if (moved <= 0) {
        if ((sleep_us *= 2) > longest) sleep_us = longest;
        continue;
      }
    } else if (turn < limit) {
      spin_paid(turn);
    }
    turn = 0;
    sleep_us = first;
    limit = spin_limit();
  }
}

void z_wait(int (*over)(void *), void *arg) { wait(over, arg, ENGINE); }
void z_wait_links(int (*over)(void *), void *arg) { wait(over, arg, LINKS); }

static int cell_over(void *arg) { return __atomic_load_n(&((z_cell *)arg)->done, __ATOMIC_ACQUIRE); }

void z_wait_cell(z_cell *cell) {
  if (!cell_over(cell)) z_wait(cell_over, cell);
}

typedef struct natives {
  int n, rc;
  MPI_Request *requests;
  MPI_Status *statuses;
} natives;

static int native_over(void *arg) {
  natives *w = arg;
  int flag = 0;
  w->rc = real.Test(w->requests, &flag, w->statuses);
  return flag || w->rc;
}

static int natives_over(void *arg) {
  natives *w = arg;
  int flag = 0;
  w->rc = real.Testall(w->n, w->requests, &flag, w->statuses);
  return flag || w->rc;
}

int z_wait_native(MPI_Request *request, MPI_Status *status) {
  if (z_may_block()) return real.Wait(request, status);
  natives w = {1, MPI_SUCCESS, request, status};
  wait(native_over, &w, NATIVE);
  return w.rc;
}

int z_wait_natives(int n, MPI_Request requests[], MPI_Status statuses[]) {
  if (z_may_block()) return real.Waitall(n, requests, statuses);
  natives w = {n, MPI_SUCCESS, requests, statuses};
  wait(natives_over, &w, NATIVE);
  return w.rc;
}

int z_native_barrier(MPI_Comm comm) {
  MPI_Request request;
  int rc = real.Ibarrier(comm, &request);
  return rc ? rc : z_wait_native(&request, MPI_STATUS_IGNORE);
}
