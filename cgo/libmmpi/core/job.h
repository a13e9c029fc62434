/* What this process knows of its job, and its locks. */
#ifndef ZIPPER_JOB_H
#define ZIPPER_JOB_H
#include "core/real.h"
#include "entry/entry.h"
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#pragma GCC visibility push(hidden)

extern z_world z_layout; /* size, rank, clusters, offset, tag_ub, order */

/* Whether this process is in a job of several clusters, or of one that may be connected to other
 * jobs. Otherwise everything is passed through. The state has a page of its own that the kernel
 * clears in every child process, however it was made, so that none goes on with this process's
 * counters and keys. It is read by z_is_off, which does the same where the kernel does not. */
enum { Z_OFF = 0, Z_ON = 1, Z_ON_BY_PID = 2 /* the kernel, before Linux 4.14, clears no pages */ };
struct z_own_page {
  int state;
} __attribute__((aligned(65536))); /* the largest page of a kernel (ARM, POWER) */
extern struct z_own_page z_own_page;
extern int z_joined; /* the id of the process that has joined the job and not left it yet; 0: none */

/* Sets the state to on. */
void z_switch_on(void);

void z_check_pid(void); /* for z_is_off */

/* Whether the state is off. If it is on in a process that is a copy of the one that has set it, it
 * is set to off first. */
static inline int z_is_off(void) {
  if (z_own_page.state == Z_ON_BY_PID) z_check_pid();
  return z_own_page.state == Z_OFF;
}

/* Whether this process is a child of one that is in the job. */
static inline int z_is_child(void) { return __builtin_expect(z_joined, 0) && z_is_off(); }

/* Whether the caller has no part in the job: a child, or a signal handler that has interrupted the
 * engine. */
static inline int z_is_apart(void) { return z_interrupts() || z_is_child(); }

/* Refuses a call of such a caller: raises an error on MPI_COMM_WORLD. If the error handler there is
 * fatal a child ends with status 1, and the job goes on; a signal handler ends the job. Returns the
 * error. */
int z_refuse(const char *function);

extern int z_threads;           /* 1: MPI_THREAD_MULTIPLE was granted */
extern volatile int32_t z_busy; /* the engine's: enum z_activity */
extern int32_t z_pending;       /* operations of ours that only our own steps move on (comm/idup.c) */
extern int32_t z_leaves;        /* nonblocking collectives that the engine does not know of (coll/leaffast.c) */
extern int32_t z_serving;       /* windows: whoever waits does so in the engine, which serves them at once */
extern int z_native_size;       /* processes of this cluster */
extern uint64_t z_world_mark;   /* 0, or of a world that was spawned: its virtual ranks are not the job's */

/* How many processes have a number: those of this job (virtual ranks), and those of other jobs. */
extern int32_t z_others; /* of the latter */
static inline int32_t z_processes(void) { return z_layout.size + __atomic_load_n(&z_others, __ATOMIC_ACQUIRE); }

/* Whether that virtual rank is in this process's cluster. */
static inline int zcluster_has(int32_t virtual_rank) {
  return virtual_rank >= z_layout.offset && virtual_rank < z_layout.offset + z_native_size;
}

/* … and its rank in the native world. */
static inline int zcluster_rank(int32_t virtual_rank) { return virtual_rank - z_layout.offset; }

/* The process's waits. With MPI_THREAD_MULTIPLE they are not counted: one thread may wait for as
 * long as the others compute. */
extern z_waits z_waiting;

/* Notes the MPI function that the program has called. */
static inline void z_called(const char *function) {
  if (!z_threads) __atomic_store_n(&z_waiting.call, function, __ATOMIC_RELAXED);
}

static inline void z_wait_count(uint32_t *n) {
  if (!z_threads) __atomic_store_n(n, *n + 1, __ATOMIC_RELAXED);
}

/* Notes that processes outside of the job may end the process's waits from now on. */
static inline void z_wait_outside(void) { __atomic_store_n(&z_waiting.outside, 1, __ATOMIC_RELAXED); }

/* This process waits for messages from now on, or no longer: for the warning about a job that
 * stands still, and for zipper run --record. */
static inline void z_record_wait(int begins) {
  z_wait_count(begins ? &z_waiting.begun : &z_waiting.ended);
  if (__builtin_expect(z_layout.recording, 0)) Z_ENGINE(ze_record_wait(begins));
}

/* Runs a call that may wait inside native MPI. */
#define Z_WAITS(CALL) \
  do {                \
    z_record_wait(1); \
    CALL;             \
    z_record_wait(0); \
  } while (0)

/* Ends the job, in all clusters, for want of memory; `what` is in the message. A call that can
 * still fail raises MPI_ERR_NO_MEM instead, and nothing has happened then. It does so where the
 * program decides how much is needed: buffers, one entry for each rank or request. This function is
 * for the few bytes without which the library no longer knows what is under way, or who a handle
 * belongs to. */
void z_no_memory(const char *what) __attribute__((noreturn));

/* Ends the job, in all clusters, as MPI_Abort does. Signal handlers may call it wherever the thread
 * was. A handler that has interrupted the engine has the thread come out of it first; if that is
 * not possible, the engine is left out: the other clusters then learn of the end when this
 * process's links close. */
int z_abort(MPI_Comm comm, int code); /* the MPI error code of native MPI_Abort, if that comes back */

/* Waits until standard error has been read; before ze_abort, since that may end this process. */
void z_be_heard(void);

/* Locks cost nothing below MPI_THREAD_MULTIPLE. */
static inline void z_lock(pthread_mutex_t *m) {
  if (z_threads) pthread_mutex_lock(m);
}
static inline void z_unlock(pthread_mutex_t *m) {
  if (z_threads) pthread_mutex_unlock(m);
}

/* Whether this thread may block inside native MPI, because the engine is idle. Never with
 * MPI_THREAD_MULTIPLE: another thread could give the engine work meanwhile. */
static inline int z_may_block(void) { return !z_busy && !z_threads && !z_pending; }

#pragma GCC visibility pop
#endif
