/* The library's numbers: what each trades, and which page of docs/decisions has the measurements.
 * Two numbers that Go needs too are elsewhere: Z_FEW_RANKS is in abi.h, and Z_CROWDED_US is
 * `crowded` in forwarder/loop/limits.go, too. */
#ifndef ZIPPER_LIMITS_H
#define ZIPPER_LIMITS_H

/* Waiting (request/wait.c), in microseconds unless they are turns. Forwarders wait by the numbers
 * of forwarder/loop/limits.go. The two belong together: change both, and measure both
 * (docs/decisions/0001-spin-and-yield-before-sleeping.md). */
enum {
  /* The longest spin before the first sleep. An answer takes so long if all processes on its way
   * sleep and it takes 50 us to wake each. A longer spin costs processor time; a shorter one a
   * sleep, and its timer, in each answer. */
  Z_SPIN_US = 400,

  /* The shortest, after spins that did not pay: about one turn. */
  Z_SHORT_SPIN_US = 5,

  /* The longest spin while native MPI has something under way, which wakes nobody. */
  Z_NATIVE_SPIN_US = 20000,

  /* A turn that finds nothing takes no longer than this. If it does, other processes had the core
   * for the rest, which does not count as spinning. */
  Z_TURN_US = 5,

  /* If giving way takes so long, another process is computing on this core. A process that sleeps
   * gets the core back sooner than one that gives way. */
  Z_CROWDED_US = 500,

  /* One wait in so many spins for all of Z_SPIN_US, to see whether spins pay now. Where they never
   * do it is one in Z_SELDOM_WAITS. */
  Z_EXPLORE_WAITS = 32,
  Z_SELDOM_WAITS = 1024,

  /* So many turns test native stages alone, and then one enters the engine, which costs several
   * times as much (docs/decisions/0007-leaf-ranks-bypass-the-engine.md). */
  Z_ALONE_TURNS = 64,

  /* Turns between yields while only native MPI is waited for; it yields by itself if it was told
   * to. */
  Z_NATIVE_TURNS = 2000,

  /* The first sleep on the links, and the longest; each is twice as long as the one before. Native
   * MPI has no descriptor to sleep on, so its messages wait as long as we sleep. */
  Z_FIRST_SLEEP_US = 20,
  Z_LONGEST_SLEEP_US = 1000,

  /* The same while native MPI is waited for. */
  Z_FIRST_NAP_US = 5,
  Z_LONGEST_NAP_US = 200,

  /* The longest sleep where no native message can come, because nobody else is in this cluster and
   * no other thread calls MPI. There one turn in Z_ALONE_POKE_TURNS looks into native MPI. */
  Z_ALONE_SLEEP_US = 100000,
  Z_ALONE_POKE_TURNS = 64,
};

/* Linux lets sleeps last 50 us longer than asked for unless told otherwise; nanoseconds. */
enum { Z_TIMER_SLACK_NS = 1000 };

/* The highest number from which on descriptors of ours are, also `highest` in
 * internal/highfd/limits.go; and how many numbers above must be free before the low ones are taken
 * while Go starts, which needs six: with fewer its own may be low. */
enum { Z_HIGHEST_FD = 4096, Z_SPARE_FDS = 16 };

/* Native stages of collectives as messages (coll/smallstage.c), among up to Z_FEW_RANKS
 * processes. */
enum {
  /* Broadcasts of up to so many bytes are sent by one process; of more bytes a tree sends less from
   * one process. Also the most that a leaf gives or gets without the engine (coll/leaffast.c). At
   * most Z_PIECES * Z_PIECE. */
  Z_SMALL_BCAST = 65536,

  /* Broadcasts of up to so many bytes go from local rank 0 to each process. Of more bytes one
   * process on each other host gets them, and passes them on. */
  Z_FLAT_BCAST = 8192,

  /* Bytes of a piece of a message inside a host, below Open MPI's eager limit there (4 KiB with its
   * head). Where Open MPI may not read another process's memory (containers), a longer message is a
   * request, an answer and pieces. Each of these waits until the other process looks again
   * (docs/decisions/0009-small-pieces-inside-a-host.md). */
  Z_PIECE = 4000,
  Z_PIECES = 17, /* of a message at most: longer ones are native MPI's */
};

/* How many answers of ze_coll_leaf a communicator remembers (coll/leaffast.c), for programs that
 * use several sizes in turn. */
enum { Z_LEAVES = 16 };

/* Bytes in one call of MPI_Pack, whose sizes are int (type/type.c). */
enum { Z_PACK_BYTES = 1 << 30 };

/* How long a process that ends the job waits for who reads its standard error, ms (core/job.c):
 * longer than a daemon waits for its turn on a busy host. Chosen, not measured. */
enum { Z_HEARD_MS = 5000 };

/* How many error texts of our own there may be, since codes are never given back (core/error.c).
 * Further errors have the text of their class. */
enum { Z_ERROR_TEXTS = 256 };

/* From how many nodes of a graph an order of its nodes is tried (topo/reorder.c). Each try takes
 * time in proportion to the graph's size. */
enum { Z_REORDER_TRIES = 16 };

/* Address space that the engine wants to have free beside the program, MiB. It was seen to take
 * 1900, with the stacks of its threads. */
enum { Z_ENGINE_MIB = 2048 };

/* Memory that can be written, which RLIMIT_DATA counts, for the same, MiB. It was seen to take 80,
 * and the stacks of its threads. */
enum { Z_ENGINE_DATA_MIB = 128 };

#endif
