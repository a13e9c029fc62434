/* The library's numbers: what they trade, and in which page of docs/decisions they were measured.
 * What Go must know, too, is Z_FEW_RANKS in abi.h, and Z_CROWDED_US, which is crowded in
 * forwarder/loop/limits.go. */
#ifndef ZIPPER_LIMITS_H
#define ZIPPER_LIMITS_H

/* Waiting (request/wait.c). With forwarder/loop/limits.go, where forwarders wait, these belong
 * together: change both, and measure both. Microseconds, but for turns. Measured:
 * docs/decisions/0001-waits-give-way-before-they-sleep.md. */
enum {
  /* The longest spin before the first sleep: an answer takes that long where all on its way sleep
   * and waking each takes 50 us. Longer: processor time; shorter: a sleep and its timer in each
   * answer. */
  Z_SPIN_US = 400,

  /* The shortest, after spins that did not pay: about one turn. */
  Z_SHORT_SPIN_US = 5,

  /* The longest spin while native MPI has something under way, which wakes nobody. */
  Z_NATIVE_SPIN_US = 20000,

  /* A turn that finds nothing takes no longer than that: the rest of the time others had the core,
   * and it does not count as spinning. */
  Z_TURN_US = 5,

  /* Whoever gives way for so long shares the core with somebody who computes, and a sleeper is back
   * sooner. */
  Z_CROWDED_US = 500,

  /* One wait in so many has all of Z_SPIN_US, to see whether spins pay now; seldom if they never
   * do. */
  Z_EXPLORE_WAITS = 32,
  Z_SELDOM_WAITS = 1024,

  /* Turns that test native stages alone, then one for all else: entering the engine costs several
   * times as much (docs/decisions/0007-followers-without-the-engine.md). */
  Z_ALONE_TURNS = 64,

  /* Turns between yields while only native MPI is waited for, which yields by itself if it was told
   * to. */
  Z_NATIVE_TURNS = 2000,

  /* The first sleep on the links, and the longest: each is twice the one before. Native MPI has no
   * descriptor to sleep on, so its messages wait as long as we sleep. */
  Z_FIRST_SLEEP_US = 20,
  Z_LONGEST_SLEEP_US = 1000,

  /* The same while native MPI is waited for. */
  Z_FIRST_NAP_US = 5,
  Z_LONGEST_NAP_US = 200,

  /* The longest sleep where there are no native messages: nobody else is in this cluster and no
   * other thread calls MPI. Then one look into native MPI in so many turns. */
  Z_ALONE_SLEEP_US = 100000,
  Z_ALONE_POKE_TURNS = 64,
};

/* Linux lets sleeps last 50 us longer than asked for unless told otherwise; nanoseconds. */
enum { Z_TIMER_SLACK_NS = 1000 };

/* … and Go's monitor thread, which inherits this, wakes every 20 us without it. */
enum { Z_MONITOR_SLACK_NS = 5000000 };

/* Native stages of collectives as messages (coll/smallstage.c), among up to Z_FEW_RANKS
 * processes. */
enum {
  /* Bytes of a broadcast: of more, a tree sends less from one process. Also of what goes to local
   * rank 0 without the engine (coll/leaffast.c). At most Z_PIECES * Z_PIECE. */
  Z_SMALL_BCAST = 65536,

  /* Bytes of a broadcast of which each process gets its own from local rank 0. Of more, one process
   * on each other host does, and passes it on. */
  Z_FLAT_BCAST = 8192,

  /* Bytes of a piece of a message inside a host. Open MPI's eager limit there is 4 KiB with its
   * head; what is longer goes, where it may not read another process's memory (containers), by a
   * request, an answer and pieces, each of which waits for the other's next look
   * (docs/decisions/0009-pieces-inside-a-host.md). */
  Z_PIECE = 4000,
  Z_PIECES = 17, /* of a message at most: longer ones are native MPI's */
};

/* Answers of ze_coll_leaf that a communicator remembers (coll/leaffast.c): sizes that a program
 * uses by turns. */
enum { Z_LEAVES = 16 };

/* Bytes in one call of MPI_Pack, whose sizes are int (type/type.c). */
enum { Z_PACK_BYTES = 1 << 30 };

/* Error texts of our own: codes are never given back (core/error.c). With more the class must
 * do. */
enum { Z_ERROR_TEXTS = 256 };

/* Nodes from which an order of a graph's nodes is tried (topo/reorder.c): time grows with each by
 * the size of the graph. */
enum { Z_REORDER_TRIES = 16 };

/* Address space that the engine wants free beside the program, MiB. With its threads' stacks it was
 * seen to take 1900. */
enum { Z_ENGINE_MIB = 2048 };

#endif
