/* The wait loop. A waiting thread drives everything: native progress, on which a peer's rendezvous
 * may depend; the links, by ze_progress, which also probes for deferred receives; and the requests
 * that the program has released. */
#include "request/wait.h"
#include "core/error.h"
#include "core/limits.h"
#include "core/privcomm.h"
#include "request/request.h"
#include <dlfcn.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb"); /* yield does not wait on most of these processors */
#endif
}

/* How waits behave, the value of ZIPPER_POLL. adaptive: waits spin for as long as spinning has paid
 * lately, then sleep. event: waits sleep at once. busy: waits never sleep. */
static enum manner { ADAPTIVE, BUSY, EVENT } manner;

/* With mpi_yield_when_idle Open MPI yields the core inside its progress function, even when it has
 * just received a message over TCP, and does not report it. So a wait of the shim's switches that
 * off while it lasts, and yields itself after a turn that has found nothing anywhere. */
/* 1 if the yield inside Open MPI cannot be switched off; the shim then does not yield as well */
int z_native_yields;
/* Open MPI's function that switches its yield on or off, or NULL if Open MPI does not yield or has
 * no such function. */
static bool (*let_yield)(bool);

/* The number of waits of the shim that are in progress in all threads. The lock is held while
 * let_yield is called, so that its calls are made in the order in which the count changes. */
static struct {
  pthread_mutex_t lock;
  int n;
} waits = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void begin_wait(void) {
  z_record_wait(1);
  if (!let_yield) return;
  z_lock(&waits.lock);
  if (!waits.n++) let_yield(false);
  z_unlock(&waits.lock);
}

static void end_wait(void) {
  if (let_yield) {
    z_lock(&waits.lock);
    if (!--waits.n) let_yield(true);
    z_unlock(&waits.lock);
  }
  z_record_wait(0);
}

static int (*stages_moved)(void);
static int longest_sleep_us;
/* the number of turns of the wait loop between two calls of poke */
static unsigned poke_every = 1;

void z_poll_start(int native_size, int (*moved)(void)) {
  stages_moved = moved;
  const int alone = native_size == 1 && !z_threads;
  longest_sleep_us = alone ? Z_ALONE_SLEEP_US : Z_LONGEST_SLEEP_US;
  poke_every = alone ? Z_ALONE_POKE_TURNS : 1;
  prctl(PR_SET_TIMERSLACK, Z_TIMER_SLACK_NS, 0, 0, 0);
  const char *yields = z_on_open_mpi() ? getenv("OMPI_MCA_mpi_yield_when_idle") : NULL;
  if (yields && (!strcmp(yields, "1") || !strcmp(yields, "true"))) {
    let_yield = (bool (*)(bool))dlsym(RTLD_DEFAULT, "opal_progress_set_yield_when_idle");
    z_native_yields = !let_yield;
  }
  const char *s = getenv("ZIPPER_POLL");
  manner = !s ? ADAPTIVE : !strcmp(s, "busy") ? BUSY : !strcmp(s, "event") ? EVENT : ADAPTIVE;
}

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

/* The duration of this thread's spins, which yield the core between turns. After a spin that has
 * found something the next one may take the longest time, after one that has not, half the time of
 * the last.
 *
 * The time during which others have the core does not count. Where many processes take turns a
 * sleep would begin before the answer arrives, and its timer can cost more than all their turns.
 * Where another process computes on this core, a yield lasts a whole time slice. A process that
 * sleeps gets the core back sooner, so the spin ends at once. */
static _Thread_local struct spin {
  /* limit is the longest duration of the next spin, used the counted duration of this spin so far,
   * and last the clock at its last turn or 0, all in us */
  double limit, used, last;
  /* waits is the number of waits since the last one that explored, which is this one if waits is 0:
   * it may spin for Z_SPIN_US whatever limit is. explore is the number of waits from one that
   * explores to the next. */
  unsigned waits, explore;
} spin = {.limit = Z_SPIN_US, .explore = Z_EXPLORE_WAITS};

static void spin_start(void) {
  spin.used = spin.last = 0;
  if (++spin.waits >= spin.explore) spin.waits = 0;
}

/* Returns whether a wait takes another turn at once after a turn that has found nothing, instead of
 * sleeping. While a native operation is pending (native) the wait hardly ever sleeps, as native
 * MPI's own waits do not: nothing would wake it, a long message needs many polls of both sides, and
 * a short sleep costs more of the core than many polls. */
static int spin_on(int native) {
  if (manner != ADAPTIVE) return manner == BUSY;
  double now = now_us(), turn = spin.last ? now - spin.last : 0;
  spin.last = now;
  spin.used += turn < Z_TURN_US ? turn : Z_TURN_US;
  if (native) return spin.used < Z_NATIVE_SPIN_US;
  if (turn <= Z_CROWDED_US && spin.used < (spin.waits ? spin.limit : Z_SPIN_US)) return 1;
  spin.limit = spin.limit > 2 * Z_SHORT_SPIN_US ? spin.limit / 2 : Z_SHORT_SPIN_US;
  if (!spin.waits && (spin.explore *= 2) > Z_SELDOM_WAITS) spin.explore = Z_SELDOM_WAITS;
  return 0;
}

static void spin_paid(void) {
  spin.limit = Z_SPIN_US;
  spin.explore = Z_EXPLORE_WAITS;
}

_Thread_local unsigned z_looks;

/* Drives native progress without a request, by a probe that finds nothing. A probe that finds a
 * message makes no progress in Open MPI and in MPICH, and a message for a later call of the shim's
 * may be queued for long. So the probe is for a tag that no message has. MPICH makes no progress
 * for a communicator of one process, so the probe is on z_private rather than on z_self; z_private
 * has one process only in a cluster of one. */
static void poke(void) {
  int flag;
  z_must(real.Iprobe(MPI_ANY_SOURCE, ZTAG_NOBODY, z_private, &flag, MPI_STATUS_IGNORE), "MPI_Iprobe");
}

static int progress(int block_us) {
  int n = Z_GUARDED(ze_progress(block_us));
  if (__builtin_expect(n == Z_FAULTED, 0)) zfault_touch();
  return n;
}

/* Drives all progress once, without blocking: the links and, because a local peer may depend on a
 * program that only tests, native MPI. */
void z_poll(void) {
  poke();
  progress(0);
  zreq_reap();
}

void z_poll_if_busy(void) {
  if (z_busy) z_poll();
}

/* The events that can end a wait, which determine how it spins and sleeps. */
enum wait_for {
  NATIVE, /* a completion in native MPI */
  /* A completion in native MPI of a collective's stage. It may take long, so the wait finally
   * sleeps, as one for the engine does. */
  STAGE,
  /* The completion of a request of the engine. If the engine has handed it to native MPI the engine
   * may be idle, and tests the request in ze_progress. */
  ENGINE,
  /* The arrival of a message for which the engine has no receive yet. */
  LINKS,
};

/* Returns whether nothing but native stages of collectives is in progress, those of the engine or
 * of a leaf (coll/leaffast.c). */
static int stages_alone(void) { return z_busy == Z_STAGING || (z_busy == Z_IDLE && z_leaves); }

/* Takes a turn of a wait for native stages of collectives, while nothing that arrives over a link
 * can help. It does not enter the engine, which costs several times as much. Returns 1 if nothing
 * has completed and the wait goes on spinning. */
static int stages_turn(int give_way) {
  if (stages_moved() || !spin_on(1)) return 0;
  if (give_way) sched_yield();
  relax();
  return 1;
}

static void nap(int us) {
  struct timespec t = {0, us * 1000L};
  nanosleep(&t, NULL);
}

static void wait(int (*over)(void *), void *arg, enum wait_for what) {
  const int naps = what == NATIVE || what == STAGE, first = naps ? Z_FIRST_NAP_US : Z_FIRST_SLEEP_US,
            longest = naps ? Z_LONGEST_NAP_US : longest_sleep_us;
  const int give_way = manner == BUSY || z_native_yields ? 0 : Z_GIVE_WAY, wait_us = manner == EVENT ? first : 0;
  int block = wait_us; /* greater than 0: the wait sleeps, otherwise it spins */
  unsigned turn = 0, since_poke = 0, looks = z_looks;
  begin_wait();
  spin_start();
  while (!over(arg)) {
    zreq_reap();
    if (stages_alone() && what == ENGINE && block <= 0 && !z_threads && !z_pending && ++turn % Z_ALONE_TURNS) {
      if (stages_turn(give_way)) continue;
      block = 0;
    }
    /* only native MPI can end this wait, so it behaves as native MPI does */
    int native = !z_busy && what != LINKS;
    if ((!native || what == ENGINE) && progress(native ? 0 : block) > 0 && !native) {
      if (block <= 0) spin_paid();
      block = wait_us;
      spin_start();
      continue;
    }
    int looked = looks != z_looks; /* a native stage or receive is in progress */
    if (!looked && ++since_poke >= poke_every) poke(), since_poke = 0;
    looks = z_looks;
    if (native && what == STAGE && !spin_on(1)) {
      block = block <= 0 ? first : 2 * block < longest ? 2 * block : longest;
      nap(block);
    } else if (native) {
      if (let_yield || (what == STAGE && give_way) || ++turn % Z_NATIVE_TURNS == 0) sched_yield();
      relax();
    } else if ((block <= 0 || looked) && spin_on(looked)) {
      block = give_way;
    } else {
      block = block <= 0 ? first : 2 * block < longest ? 2 * block : longest;
    }
  }
  end_wait();
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
  z_looks += !flag;
  return flag || w->rc;
}

static int natives_over(void *arg) {
  natives *w = arg;
  int flag = 0;
  w->rc = real.Testall(w->n, w->requests, &flag, w->statuses);
  z_looks += !flag;
  return flag || w->rc;
}

static int wait_in_turns(MPI_Request *request, MPI_Status *status, enum wait_for what) {
  natives w = {1, MPI_SUCCESS, request, status};
  wait(native_over, &w, what);
  return w.rc;
}

int z_wait_native(MPI_Request *request, MPI_Status *status) {
  if (!z_may_block()) return wait_in_turns(request, status, NATIVE);
  int rc;
  Z_WAITS(rc = real.Wait(request, status));
  return rc;
}

int z_wait_stage(MPI_Request *request) { return wait_in_turns(request, MPI_STATUS_IGNORE, STAGE); }

int z_wait_for_call(MPI_Comm comm, MPI_Request *request, MPI_Status *status) {
  int rc = z_wait_native(request, status);
/* MPICH 4.0 raises errors of Wait and Test on MPI_COMM_WORLD alone */
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION / 100000 == 400
  if (rc && comm != MPI_COMM_WORLD) real.Comm_call_errhandler(comm, rc);
#else
  (void)comm;
#endif
  return rc;
}

int z_wait_natives(int n, MPI_Request requests[], MPI_Status statuses[]) {
  if (z_may_block()) {
    int rc;
    Z_WAITS(rc = real.Waitall(n, requests, statuses));
    return rc;
  }
  natives w = {n, MPI_SUCCESS, requests, statuses};
  wait(natives_over, &w, NATIVE);
  return w.rc;
}

int z_native_barrier(MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  int rc = real.Ibarrier(comm, &request);
  return rc ? rc : z_wait_native(&request, MPI_STATUS_IGNORE);
}

int z_wait_each(int n, MPI_Request requests[]) {
  int rc = MPI_SUCCESS;
  for (int i = 0; i < n; i++) {
    int failed = z_wait_native(&requests[i], MPI_STATUS_IGNORE);
    if (!rc) rc = failed;
  }
  return rc;
}
