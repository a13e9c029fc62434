/* The process's state in its job, and its locks. */
#ifndef ZIPPER_JOB_H
#define ZIPPER_JOB_H
#include "core/real.h"
#include "entry/entry.h"
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#pragma GCC visibility push(hidden)

/* the job as the engine has reported it: its size, this process's rank, its clusters (abi.h) */
extern z_world z_layout;

/* The values of z_own_page.state. It is not Z_OFF if this process takes part in a job of several
 * clusters, or in a job of one cluster that may connect to other jobs. In all other processes every
 * call is passed through to native MPI. The state has pages of its own, which the kernel clears in
 * every child process that has a copy of the memory, also if the child was made by a raw system
 * call. So no child goes on with its parent's counters and keys. Before Linux 4.14 the kernel
 * clears no pages; the state is Z_ON_BY_PID then, and z_is_off compares process ids instead. */
enum { Z_OFF = 0, Z_ON = 1, Z_ON_BY_PID = 2 };
struct z_own_page {
  int state;
} __attribute__((aligned(65536))); /* the largest page size of a kernel (ARM, POWER) */
extern struct z_own_page z_own_page;
/* The id of the process that has joined the job, or 0 before it joins and after it leaves. */
extern int z_joined;

/* Sets the state to Z_ON or Z_ON_BY_PID, because this process takes part in the job, and z_joined
 * to the process id. */
void z_switch_on(void);

/* Sets the state to Z_OFF if this process is not the one that called z_switch_on but a child of it;
 * it is a part of z_is_off. */
void z_check_pid(void);

/* Returns whether this process takes no part in a job, so that its calls are passed to native MPI.
 * In a child of a process that takes part, the state is set to Z_OFF first. */
static inline int z_is_off(void) {
  if (z_own_page.state == Z_ON_BY_PID) z_check_pid();
  return z_own_page.state == Z_OFF;
}

/* Returns whether this process is a child of a process that takes part in the job. */
static inline int z_is_child(void) { return __builtin_expect(z_joined, 0) && z_is_off(); }

/* Returns whether the caller takes no part in the job: it is in a child process, or in a signal
 * handler that has interrupted the engine. */
static inline int z_is_apart(void) { return z_interrupts() || z_is_child(); }

/* Refuses an MPI call of a child process or of a signal handler (z_is_apart): raises an error on
 * MPI_COMM_WORLD and returns its code. If the error handler is fatal, a child process exits with
 * status 1 and the job goes on, and a signal handler ends the job. */
int z_refuse(const char *function);

/* 1 if native MPI has granted MPI_THREAD_MULTIPLE */
extern int z_threads;
/* the engine's activity (enum z_activity), which the engine sets */
extern volatile int32_t z_busy;
/* The number of the shim's own operations in progress that advance only when the shim polls them
 * (comm/idup.c). */
extern int32_t z_pending;
/* The number of nonblocking collectives in progress that run without the engine
 * (coll/leaffast.c). */
extern int32_t z_leaves;
/* The number of the program's windows that the engine knows (rma/win.h). While there are any, waits
 * take place in the engine, which serves remote accesses at once. */
extern int32_t z_serving;
/* the size of the native world, which is the number of processes of this cluster */
extern int z_native_size;
/* A random number that identifies a world that MPI_Comm_spawn has started, whose virtual ranks are
 * not the job's, or 0 in the job's own processes. */
extern uint64_t z_world_mark;

/* The number of processes of other jobs to which this process has assigned a number, because a
 * connection (MPI_Comm_connect) has or had them. */
extern int32_t z_others;
/* Returns how many processes have a number in this process: the ranks of this job, whose numbers
 * are their virtual ranks, and the z_others processes of other jobs, whose numbers follow. */
static inline int32_t z_processes(void) { return z_layout.size + __atomic_load_n(&z_others, __ATOMIC_ACQUIRE); }

/* Returns whether a process of this cluster has the virtual rank virtual_rank. */
static inline int zcluster_has(int32_t virtual_rank) {
  return virtual_rank >= z_layout.offset && virtual_rank < z_layout.offset + z_native_size;
}

/* Returns the rank in the native world of a process of this cluster with this virtual rank. */
static inline int zcluster_rank(int32_t virtual_rank) { return virtual_rank - z_layout.offset; }

/* The counts of the process's waits, which the warning about a deadlocked job reads. With
 * MPI_THREAD_MULTIPLE they are not counted, because one thread may wait for as long as the others
 * compute. */
extern z_waits z_waiting;

/* Stores the name of the MPI function that the program has called last, for the warning about a
 * deadlocked job. */
static inline void z_called(const char *function) {
  if (!z_threads) __atomic_store_n(&z_waiting.call, function, __ATOMIC_RELAXED);
}

/* Adds 1 to *n, a counter of z_waiting, unless waits are not counted. */
static inline void z_wait_count(uint32_t *n) {
  if (!z_threads) __atomic_store_n(n, *n + 1, __ATOMIC_RELAXED);
}

/* Sets z_waiting.outside, because from now on processes outside of the job may end this process's
 * waits, so that these are no sign of a deadlock. */
static inline void z_wait_outside(void) { __atomic_store_n(&z_waiting.outside, 1, __ATOMIC_RELAXED); }

/* Counts that this process begins to wait for messages (begins = 1) or has stopped waiting (0), for
 * the warning about a deadlocked job, and reports it to zipper run --record. */
static inline void z_record_wait(int begins) {
  z_wait_count(begins ? &z_waiting.begun : &z_waiting.ended);
  if (__builtin_expect(z_layout.recording, 0)) Z_ENGINE(ze_record_wait(begins));
}

/* Makes the call CALL, which may wait inside native MPI, and counts it as a wait for messages
 * (z_record_wait). */
#define Z_WAITS(CALL) \
  do {                \
    z_record_wait(1); \
    CALL;             \
    z_record_wait(0); \
  } while (0)

/* Ends the job in all clusters because memory is exhausted; `what` names the allocation in the
 * message. It is for the few bytes without which the shim loses track of its operations or of the
 * owner of a handle. A call that can still fail raises MPI_ERR_NO_MEM instead and leaves everything
 * unchanged. Such calls allocate memory whose size the program determines: buffers, and one entry
 * for each rank or request. */
void z_no_memory(const char *what) __attribute__((noreturn));

/* Ends the job in all clusters as MPI_Abort does, and returns the error code of native MPI_Abort if
 * that returns. Signal handlers may call it wherever they have interrupted the thread. If a handler
 * has interrupted the engine, the thread first leaves the engine. If that is impossible the engine
 * is not called, and the other clusters learn of the end when this process's links close. */
int z_abort(MPI_Comm comm, int code);

/* Waits until standard error has been read, at most Z_DRAIN_STDERR_MS. Callers do so before
 * ze_abort, which may end this process. */
void z_drain_stderr(void);

/* Locks a mutex with MPI_THREAD_MULTIPLE, and does nothing with a lower thread level, where locks
 * are not needed. */
static inline void z_lock(pthread_mutex_t *m) {
  if (z_threads) pthread_mutex_lock(m);
}
/* Unlocks a mutex that z_lock has locked; does nothing without MPI_THREAD_MULTIPLE. */
static inline void z_unlock(pthread_mutex_t *m) {
  if (z_threads) pthread_mutex_unlock(m);
}

/* Returns whether this thread may block inside native MPI, because the engine has nothing to do and
 * no operation of the shim's own (z_pending) has to be polled. The answer is always 0 with
 * MPI_THREAD_MULTIPLE, where another thread could give the engine work meanwhile. */
static inline int z_may_block(void) { return !z_busy && !z_threads && !z_pending; }

#pragma GCC visibility pop
#endif
