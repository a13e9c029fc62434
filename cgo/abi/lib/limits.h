/* The constants of the engine's threads (threads.c). */
#ifndef ZIPPER_ENGINE_LIMITS_H
#define ZIPPER_ENGINE_LIMITS_H

enum {
  /* The stack size of each thread in bytes, without the thread-local memory of the process.
   * Goroutines have stacks of their own, so this one is for the runtime and for C, where the lookup
   * of a host name needs most. The runtime would need less; more costs address space only. */
  Z_STACK_BYTES = 512 << 10,

  /* The timer slack in ns of all threads except Go's monitor: Linux's default. Otherwise they would
   * inherit that of the program's thread that makes them. */
  Z_WORKER_SLACK_NS = 50000,

  /* The timer slack of Go's monitor in ns. With less the monitor would wake every 20 us while a
   * rank waits, because that rank's thread never enters Go's scheduler. On a node whose ranks use
   * all cores that takes a tenth of a core for each rank
   * (docs/decisions/0004-long-slack-for-gos-monitor-only.md). */
  Z_MONITOR_SLACK_NS = 5000000,

  /* The number of threads that a rank may need beside those of its MPI library, for messages about
   * limits. 5 to 7 were seen where one thread calls MPI, and up to 9 with MPI_THREAD_MULTIPLE: Go's
   * monitor, its maker of threads, the engine's progress thread, and one for each goroutine that
   * runs or is in a system call. */
  Z_ENGINE_THREADS = 8,

  /* The number of tries to make a thread while the system lacks resources, and the time in ms by
   * which the pause grows after each try, as in Go's runtime/cgo. Threads of other processes may
   * end meanwhile. */
  Z_THREAD_TRIES = 20,
  Z_THREAD_PAUSE_MS = 1,
};

#endif
