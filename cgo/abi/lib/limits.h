/* The numbers of the engine's threads (threads.c). */
#ifndef ZIPPER_ENGINE_LIMITS_H
#define ZIPPER_ENGINE_LIMITS_H

enum {
  /* Bytes of stack of each thread, beside the thread-local memory of the process. Goroutines have
   * stacks of their own, so this is for the runtime and for C, where looking up a host's name needs
   * most. Less would do for the former; more costs address space only. */
  Z_STACK_BYTES = 512 << 10,

  /* The timer slack of all threads but Go's monitor, ns: Linux's own. Without it they would have
   * that of the program's thread that makes them. */
  Z_WORKER_SLACK_NS = 50000,

  /* The timer slack of Go's monitor, ns. With less the monitor would wake every 20 us while a rank
   * waits, because that rank's thread never comes by Go's scheduler. On a node whose ranks use all
   * cores that is a tenth of a core for each rank
   * (docs/decisions/0004-long-slack-for-gos-monitor-only.md). */
  Z_MONITOR_SLACK_NS = 5000000,

  /* The threads that a rank may need beside those of its MPI library, for messages about limits.
   * 5 to 7 were seen where one thread calls MPI, and up to 9 with MPI_THREAD_MULTIPLE: Go's
   * monitor, its maker of threads, the engine's progress thread, and as many for goroutines as run
   * or enter the system at once. */
  Z_ENGINE_THREADS = 8,

  /* How often a thread is tried to be made while the system lacks resources, and how much longer
   * the pause is after each try, ms: as in Go's runtime/cgo. Others' threads may end meanwhile. */
  Z_THREAD_TRIES = 20,
  Z_THREAD_PAUSE_MS = 1,
};

#endif
