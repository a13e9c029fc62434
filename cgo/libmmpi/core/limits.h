/* The constants of the library: the trade-off of each, and the page of docs/decisions that has its
 * measurements. Go needs three constants as well: Z_FEW_RANKS, which is in abi.h; Z_CROWDED_US,
 * which equals `crowded` in forwarder/loop/limits.go; and Z_HIGHEST_FD. */
#ifndef ZIPPER_LIMITS_H
#define ZIPPER_LIMITS_H

/* Waiting (request/wait.c), in microseconds unless a comment says turns. Forwarders wait by the
 * constants of forwarder/loop/limits.go. A change of one set requires the same change of the other,
 * and measurements of both (docs/decisions/0001-spin-and-yield-before-sleeping.md). */
enum {
  /* The longest spin before the first sleep. An answer takes this long if all processes on its way
   * sleep and each takes 50 us to wake. A longer spin costs processor time; a shorter one adds a
   * sleep, and its timer, to each answer. */
  Z_SPIN_US = 400,

  /* The shortest spin, after spins that found nothing: about one turn. */
  Z_SHORT_SPIN_US = 5,

  /* The longest spin while a native operation is pending, because native MPI wakes no sleeping
   * process. */
  Z_NATIVE_SPIN_US = 20000,

  /* The longest time that a turn which finds nothing counts as spinning. In a longer turn other
   * processes had the core for the rest. */
  Z_TURN_US = 5,

  /* The duration of a yield from which on another process is taken to compute on this core. On such
   * a core a process that sleeps gets the core back sooner than a process that yields. */
  Z_CROWDED_US = 500,

  /* One wait in Z_EXPLORE_WAITS spins for the whole of Z_SPIN_US, to learn whether spinning has
   * begun to pay. If it never has, only one wait in Z_SELDOM_WAITS does so. */
  Z_EXPLORE_WAITS = 32,
  Z_SELDOM_WAITS = 1024,

  /* The number of turns that test native stages alone before one turn enters the engine, which
   * costs several times as much (docs/decisions/0007-leaf-ranks-bypass-the-engine.md). */
  Z_ALONE_TURNS = 64,

  /* The number of turns between yields while the process waits for native MPI only, which yields by
   * itself if it is configured so. */
  Z_NATIVE_TURNS = 2000,

  /* The first and the longest sleep on the links. Each sleep is twice as long as the one before.
   * Native MPI has no descriptor to sleep on, so a native message waits until the sleep ends. */
  Z_FIRST_SLEEP_US = 20,
  Z_LONGEST_SLEEP_US = 1000,

  /* The first and the longest sleep while a native operation is pending. */
  Z_FIRST_NAP_US = 5,
  Z_LONGEST_NAP_US = 200,

  /* The longest sleep where no native message can arrive: the process is alone in its cluster, and
   * no other thread calls MPI. One turn in Z_ALONE_POKE_TURNS enters native MPI there. */
  Z_ALONE_SLEEP_US = 100000,
  Z_ALONE_POKE_TURNS = 64,
};

/* The timer slack of this process in nanoseconds. Linux's default lets each sleep last 50 us longer
 * than requested. */
enum { Z_TIMER_SLACK_NS = 1000 };

/* Z_HIGHEST_FD is the upper bound of the number from which on the library places its descriptors;
 * it equals `highest` in internal/highfd/limits.go. While Go starts, the lower numbers are occupied
 * only if at least Z_SPARE_FDS higher ones are free. Go needs six, and ends a process in which it
 * cannot open a descriptor. With fewer free ones nothing is occupied, so Go may get low ones. */
enum { Z_HIGHEST_FD = 4096, Z_SPARE_FDS = 16 };

/* Native stages of collectives that are sent as messages (coll/smallstage.c), among at most
 * Z_FEW_RANKS processes. */
enum {
  /* The largest broadcast, in bytes, that one process sends to all others; for larger ones a tree
   * takes load off that process. It is also the largest block that a leaf sends or receives without
   * the engine (coll/leaffast.c), and at most Z_PIECES * Z_PIECE. */
  Z_SMALL_BCAST = 65536,

  /* The largest broadcast, in bytes, that local rank 0 sends to each process. A larger one goes to
   * one process on each other host, which passes it on. */
  Z_FLAT_BCAST = 8192,

  /* The size in bytes of a piece of a message inside a host, below Open MPI's eager limit there (4
   * KiB with its header). Where Open MPI may not read another process's memory (containers), a
   * longer message takes a request, an answer and pieces, each of which waits until the other
   * process polls (docs/decisions/0009-small-pieces-inside-a-host.md). */
  Z_PIECE = 4000,
  /* The largest number of pieces of a message. Longer messages are sent whole. */
  Z_PIECES = 17,
};

/* The number of answers of ze_coll_leaf that a communicator caches (coll/leaffast.c), for programs
 * that alternate between several sizes. */
enum { Z_LEAVES = 16 };

/* The size in bytes of the pieces in which long contiguous data are copied from and to devices,
 * while other pieces are on their way (device/feed.c). With smaller ones the calls of the driver
 * cost more time, and with larger ones the first and the last piece wait longer. The value is
 * chosen, not measured. */
enum { Z_DEVICE_PIECE = 512 << 10 };

/* The greatest number of bytes of pinned memory that the library keeps for data of devices
 * (device/pool.c). Further data are copied from and to ordinary memory, which is slower. The value
 * is chosen, not measured. */
enum { Z_PINNED_BYTES = 256 << 20 };

/* The greatest number of bytes in one call of MPI_Pack, whose sizes are int (type/type.c). */
enum { Z_PACK_BYTES = 1 << 30 };

/* The longest time in milliseconds that a process which ends the job waits until its standard error
 * has been read (core/job.c). It is longer than a daemon waits for the processor on a busy host.
 * The value is chosen, not measured. */
enum { Z_DRAIN_STDERR_MS = 5000 };

/* The largest number of error codes with a text of the shim's own (core/error.c), since MPI cannot
 * free a code. Further errors have the text of their class. */
enum { Z_ERROR_TEXTS = 256 };

/* The number of nodes of a graph with each of which as its first node an order of the nodes is
 * tried (topo/reorder.c). Each try takes time proportional to the size of the graph. */
enum { Z_REORDER_TRIES = 16 };

/* The address space in MiB that the engine requires beside the program. The engine was seen to take
 * 1.6 GiB, with the stacks of its threads (docs/design/guest.md). */
enum { Z_ENGINE_MIB = 2048 };

/* The writable memory in MiB, as RLIMIT_DATA counts it, that the engine requires beside the
 * program. The engine was seen to take 85 MiB (docs/design/guest.md). */
enum { Z_ENGINE_DATA_MIB = 128 };

#endif
