/* What the C shim and the Go engine share. The shim (cgo/libmmpi) is compiled once per MPI library
 * and knows MPI's handles; the engine is compiled once and knows none: handles of communicators,
 * types and operators cross as uint64_t, buffers as plain addresses of contiguous bytes. The shim
 * packs and unpacks what is not contiguous.
 *
 * Threads. Every ze_ function may be called from any thread that the program may call MPI from; the
 * engine locks itself. The z_native callbacks are made only from inside a ze_ call, on that same
 * thread (so native MPI stays on the program's threads); `fail` is the exception: it may come from
 * the engine's progress thread.
 */
#ifndef ZIPPER_ABI_H
#define ZIPPER_ABI_H
#include <stdint.h>

#define Z_ABI_VERSION 17 /* also in cgo/mpi/engine.c; raised whenever this file changes what it declares */

/* Portable values: no native constant crosses this border. */
enum { Z_ANY_SOURCE = -1, Z_ANY_TAG = -1, Z_PROC_NULL = -2, Z_REMOTE = -1, Z_GIVE_WAY = -1, Z_FAULTED = -1 };
/* Up to so many processes of a cluster send small messages straight to one of them. With more, a
 * tree has more steps, but fewer messages one after the other. */
enum { Z_FEW_RANKS = 8 };
enum z_error {
  Z_OK = 0,
  Z_ERR_TRUNCATE,
  Z_ERR_LINK,
  Z_ERR_ABORTED,
  Z_ERR_UNSUPPORTED,
  Z_ERR_INTERNAL,
  Z_ERR_ARG,
  Z_ERR_OP,
  Z_ERR_RMA_SYNC,
  Z_ERR_RMA_RANGE
};
/* Ready = standard, buffered = standard of a copy the shim owns */
enum z_mode { Z_STANDARD = 0, Z_SYNCHRONOUS = 1 };
enum z_kind { Z_P2P = 0, Z_COLLECTIVE = 1, Z_INTERNAL = 2 }; /* = wire.Kind… */

/* One outstanding operation. The shim allocates it (it must stay in place until done and freed) and
 * polls `done`; the engine fills in the result and stores done = 1 last (release). */
typedef struct z_cell {
  uint32_t done;
  int32_t error;  /* enum z_error */
  int32_t source; /* rank in the communicator */
  int32_t tag;
  int64_t bytes;     /* received; for a probe: size of the message */
  int32_t cancelled; /* 1: cancelled before it began */
  uint32_t stage;    /* the shim's own */
  uint64_t request;  /* the engine's own: how to find its request again; 0 = none */
  void *owner;       /* the shim's own: its request object; handed back in callbacks */
  int64_t sent;      /* Z_ERR_TRUNCATE: bytes of the message, where `bytes` were expected; 0: not known */
} z_cell;

/* The world this process joined. */
typedef struct z_world {
  int32_t size, rank;        /* virtual */
  int32_t clusters, cluster; /* number of clusters; index of mine */
  int32_t offset;            /* virtual rank of my cluster's native rank 0 */
  int32_t tag_ub;            /* minimum over all MPI libraries of the job */
  int32_t recording;         /* 1: ze_record… are to be told of messages inside the cluster, and of waits */
  const int32_t *order;      /* [size] of every rank of MPI_COMM_WORLD the virtual rank; NULL: the same. Stays */
  const char *namesake;      /* my cluster's name if another one has a host named as mine, else NULL. Stays */
  int32_t libraries;         /* different MPI libraries in the job, whatever their versions */
  int32_t runs; /* 1: the engine does. 0: one cluster, and no forwarder by which other jobs could be reached */
} z_world;

/* A message that the native library matched for the engine (MPI_Improbe on the local part of a
 * communicator). */
typedef struct z_probe {
  uint64_t message; /* the shim's token for the native message handle */
  int32_t source;   /* rank in the spanning communicator */
  int32_t tag;
  int64_t bytes;
} z_probe;

/* Collectives on a spanning communicator. Buffers are contiguous bytes (the shim packs), counts and
 * displacements are bytes. */
enum z_coll_op {
  Z_BARRIER = 0,
  Z_BCAST,
  Z_GATHERV,
  Z_SCATTERV,
  Z_ALLGATHERV,
  Z_ALLTOALLV,
  Z_REDUCE,
  Z_ALLREDUCE,
  Z_REDUCE_SCATTER,
  Z_SCAN,
  Z_EXSCAN
};
typedef struct z_coll {
  int32_t op;       /* enum z_coll_op */
  int32_t root;     /* rank in the communicator */
  const void *send; /* never "in place": the shim passes the place itself; may equal recv only for reductions */
  void *recv;
  /* The rank's own block. Gather and allgather: what it sends. Scatter: what it receives. Bcast:
   * the buffer in `recv`. */
  int64_t send_bytes;
  const int64_t *send_counts, *send_displs; /* [size]: scatterv at the root, alltoallv */
  /* [size]: gatherv at the root, allgatherv, alltoallv; reduce_scatter: counts in elements */
  const int64_t *recv_counts, *recv_displs;
  int64_t count; /* reductions: elements */
  /* reductions: bytes from one element to the next; buffers have count*extent bytes and are laid
   * out as the type */
  int64_t extent;
  uint64_t type, mpi_op; /* reductions: native handles, for z_native only */
  int32_t commutative;
  int32_t uniform; /* every rank has the same count and knows so (MPI_Gather, not MPI_Gatherv) */
  /* How many collectives this process has done on the communicator by itself (ze_coll_leaf) since
   * its last ze_coll. */
  uint32_t skipped;
} z_coll;

/* One-sided operations on a window that spans clusters. Memory is described as `count` elements,
 * `extent` bytes from one to the next. An element is a list of spans (off, len) in the order of the
 * type map. Offsets count from `base`, and at the target from the displacement. */
typedef struct z_span {
  int64_t off, len;
} z_span;
typedef struct z_view {
  void *base;
  int64_t count, extent;
  const z_span *spans;
  int64_t n; /* spans */
} z_view;

/* = rma.Put… */
enum z_verb { Z_PUT = 1, Z_GET, Z_ACCUMULATE, Z_FETCH, Z_SWAP };
/* What accumulates compute, and with what: portable numbers, for the libraries' handles differ. */
enum z_fn {
  Z_REPLACE = 1,
  Z_NO_OP = 2,
  Z_MAX,
  Z_MIN,
  Z_SUM,
  Z_PROD,
  Z_LAND,
  Z_BAND,
  Z_LOR,
  Z_BOR,
  Z_LXOR,
  Z_BXOR,
  Z_MAXLOC,
  Z_MINLOC
};
enum z_number {
  Z_BYTES = 0,
  Z_I8,
  Z_I16,
  Z_I32,
  Z_I64,
  Z_U8,
  Z_U16,
  Z_U32,
  Z_U64,
  Z_F32,
  Z_F64,
  Z_FLONG,
  Z_C32,
  Z_C64,
  Z_CLONG,
  /* logical values, any but 0 being true */
  Z_L8,
  Z_L16,
  Z_L32,
  Z_L64,
  /* pairs for MAXLOC and MINLOC, as C lays them out */
  Z_FLOAT_INT,
  Z_DOUBLE_INT,
  Z_LONG_INT,
  Z_2INT,
  Z_SHORT_INT,
  Z_LONG_DOUBLE_INT,
  Z_2FLOAT,
  Z_2DOUBLE
};
typedef struct z_rma {
  int32_t verb, fn, number, target;
  int64_t disp;  /* in the target's displacement units; an address in dynamic windows */
  z_view data;   /* sent. Z_SWAP: the new value, then the one to compare with */
  z_view there;  /* base is not used */
  z_view result; /* received */
} z_rma;

/* What ze_win_sync does. Target, flag and group are for those that name them. */
enum z_sync {
  Z_SYNC_FENCE,    /* my operations are done; the caller adds a barrier. flag: an epoch may follow */
  Z_SYNC_FLUSH,    /* target, -1: all */
  Z_SYNC_LOCK,     /* target; flag: Z_LOCK_… */
  Z_SYNC_UNLOCK,   /* target */
  Z_SYNC_LOCK_ALL, /* flag: Z_LOCK_UNCHECKED or 0 */
  Z_SYNC_UNLOCK_ALL,
  Z_SYNC_POST,  /* group. Over at once: cell is not used */
  Z_SYNC_START, /* group */
  Z_SYNC_COMPLETE,
  Z_SYNC_WAIT,
  Z_SYNC_IDLE, /* an error if an epoch is open; cell is not used */
};

enum { Z_LOCK_EXCLUSIVE = 1, Z_LOCK_UNCHECKED = 2, Z_LOCK_AWAITED = 4 }; /* = rma.Exclusive … */

/* What the engine has under way. = engine.Idle … */
enum z_activity {
  Z_IDLE, /* a thread may block inside native MPI */
  Z_BUSY,
  Z_STAGING, /* nothing is under way but native stages of collectives, which no message from another cluster can end */
};

/* The process's waits, for the warning about a job that stands still. */
typedef struct z_waits {
  const char *call;      /* name of the MPI function that the program has called last; it stays */
  uint32_t begun, ended; /* numbers of waits; equal: the process does not wait */
  int32_t outside;       /* 1: processes outside of the job may end a wait, so the waits say nothing */
} z_waits;

/* Memory of the program, in use by a message, that the kernel could not access. */
typedef struct z_fault {
  void *at;
  int64_t bytes;
  int32_t writes; /* 1: the message is to be received there; 0: it is to be sent from there */
  char what[256]; /* says which message, as a part of a sentence; ends with 0 */
} z_fault;

/* What the engine asks of native MPI. */
typedef struct z_native {
  uint32_t abi;
  volatile int32_t *busy; /* kept by the engine: enum z_activity */
  const z_waits *waits;   /* kept by the shim, looked at by any thread */
  /* Kept by the shim, looked at by any thread. 1: the program ends the job, and calls of the engine
   * that wait for other processes return with Z_ERR_ABORTED */
  const volatile int32_t *leave;

  /* Matching. `comm` is the pointer given to ze_comm_add. native_source is a rank of the local part
   * or Z_ANY_SOURCE. */
  int (*improbe)(void *comm, int32_t native_source, int32_t tag, z_probe *out); /* 1: found, 0: none, <0: -error */
  /* The same, leaving the message (out->message = 0) */
  int (*iprobe)(void *comm, int32_t native_source, int32_t tag, z_probe *out);
  /* Receive that message into cell->owner's buffer; then poll with `test` */
  int (*imrecv)(z_cell *cell, uint64_t message);
  /* Post cell->owner's receive natively after all; then poll with `test` */
  int (*irecv)(z_cell *cell);
  int (*test)(z_cell *cell);   /* 1: the native receive is over, result filled in except `done` */
  int (*cancel)(z_cell *cell); /* cancel the native receive */

  /* A nonblocking collective inside this process's cluster, over the local part of the
   * communicator. The fields of z_coll, with ranks, counts and root in native ranks of that local
   * part; *token is to be tested. */
  int (*coll)(void *comm, const z_coll *args, uint64_t *token);
  int (*coll_test)(uint64_t token); /* 1: over (token is dead), 0: not yet, <0: -error */
  int (*reduce_local)(const void *in, void *inout, int64_t count, uint64_t type, uint64_t op); /* inout = in op inout */

  /* The job is lost or aborted: print the reason and end this process with the code. Does not
   * return. Any thread. */
  void (*fail)(int32_t code, const char *reason);

  /* Access that memory as the program would. Returns if it can be accessed after all. Any
   * thread. */
  void (*access)(const z_fault *fault);
} z_native;

/* Connections to other jobs. Each is a link, with an engine of its own, numbered from 1; 0 is the
 * job itself. A process of another job gets a number above the virtual ranks of this job. It is the
 * same whenever that process is met, and known to this process alone. */
enum { Z_LINKS = 127, Z_PORT_NAME = 256 };

/* The engine. All functions are exported by libmmpi-engine.so and looked up by name; in a Go
 * program they are linked in and registered by the mmpi package. Functions that return int give
 * Z_OK or an error from enum z_error; ze_error() says more. */
typedef struct z_local { /* what only native MPI knows, given to ze_start by every process */
  int32_t rank, size;    /* native */
  int32_t tag_ub;
  const char *library; /* "Open MPI 4.1.4" */
  const char *host;
  const int32_t *hosts; /* [size]: of every native rank the first one on its host. Not kept */
  int32_t threads;      /* 1: several threads may be in the engine at once */
  int32_t spawned;      /* 1: MPI_Comm_spawn of some process has started this native world, beside the job's */
} z_local;

#define Z_ENGINE_FUNCTIONS(F)                                                                                         \
  /* joins the job (environment ZIPPER_*). Blocks until all clusters are in, or the time-out ends. */                 \
  /* out->clusters is 1: nothing spans, stay out of the way */                                                        \
  F(int, ze_start, (const z_native *native, const z_local *local, z_world *out))                                      \
  /* flush, wait for acks, barrier over all, BYE. Last call but ze_error */                                           \
  F(int, ze_finish, (void))                                                                                           \
  /* end all clusters' jobs; returns once the forwarder has it or after 1 s */                                        \
  F(void, ze_abort, (int32_t code))                                                                                   \
  /* why the last call of this thread failed that did. Valid until this thread's next call, whatever */               \
  /* other threads do */                                                                                              \
  F(const char *, ze_error, (void))                                                                                   \
  /* a fresh context id made by this process, for communicators over that link */                                     \
  F(uint64_t, ze_next_context, (int32_t link))                                                                        \
  /* world[i]: process number of rank i. native[i]: its rank in the local part, or Z_REMOTE. link: 0 */               \
  /* if all are of this job */                                                                                        \
  F(int, ze_comm_add,                                                                                                 \
    (int32_t link, void *comm, uint64_t context, int32_t size, int32_t rank, const int32_t *world,                    \
     const int32_t *native, int32_t native_size, int32_t *id))                                                        \
  /* no operation may be outstanding. With the last communicator over a link that link ends */                        \
  F(int, ze_comm_drop, (int32_t id))                                                                                  \
  /* dest is remote. May be done on return (cell->done) */                                                            \
  F(int, ze_isend,                                                                                                    \
    (int32_t comm, int32_t kind, const void *buf, int64_t bytes, int32_t dest, int32_t tag, int32_t mode,             \
     z_cell *cell))                                                                                                   \
  /* the source is remote, Z_ANY_SOURCE, or a local one for which ze_shadowed says 1. If the message */               \
  /* comes natively the engine calls imrecv or irecv, and `buf` is not used */                                        \
  F(int, ze_irecv, (int32_t comm, int32_t kind, void *buf, int64_t bytes, int32_t source, int32_t tag, z_cell *cell)) \
  /* 1: a receive posted earlier may match what this local receive would, so give it to ze_irecv. 0: */               \
  /* post it natively at once */                                                                                      \
  F(int, ze_shadowed, (int32_t comm, int32_t source, int32_t tag))                                                    \
  /* out->done: found. Any source, also a local one by a native iprobe. If that finds a message for */                \
  /* an entry of list D, it is received into that entry, and the probe goes on */                                     \
  F(int, ze_iprobe, (int32_t comm, int32_t source, int32_t tag, z_cell * out))                                        \
  /* native=1: message is the shim's token from z_probe */                                                            \
  F(int, ze_improbe, (int32_t comm, int32_t source, int32_t tag, z_cell * out, uint64_t * message, int32_t * native)) \
  /* a remote message found by ze_improbe */                                                                          \
  F(int, ze_mrecv, (uint64_t message, void *buf, int64_t bytes, z_cell *cell))                                        \
  F(int, ze_cancel, (int32_t comm, z_cell * cell))                                                                    \
  /* moves what can be moved; > 0 if anything happened. block_us > 0: if nothing does, sleeps up to */                \
  /* that long on the links. Z_GIVE_WAY: first gives the core to others for a moment. Z_FAULTED: see */               \
  /* ze_fault */                                                                                                      \
  F(int, ze_progress, (int32_t block_us))                                                                             \
  /* 1: out is memory that could not be accessed. The caller accesses it and calls ze_fault(NULL), and */             \
  /* the message goes on. 0: there is none, or another thread has taken it */                                         \
  F(int, ze_fault, (z_fault * out))                                                                                   \
  /* start; arrays in args are copied, buffers must stay */                                                           \
  F(int, ze_coll, (int32_t comm, const z_coll *args, z_cell *cell))                                                   \
  /* 1: this process only gives local rank 0 so many bytes of `send`, gets so many into `recv`, or */                 \
  /* both. It does so by the native messages that the engine would send, in the same order. -1 */                     \
  /* bytes: there is no message */                                                                                    \
  F(int, ze_coll_leaf, (int32_t comm, const z_coll *args, int64_t *give, int64_t *get))                               \
  /* a window of `bytes` at base; dynamic: of what is attached */                                                     \
  F(int, ze_win_add,                                                                                                  \
    (int32_t link, uint64_t context, int32_t size, int32_t rank, const int32_t *world, void *base, int64_t bytes,     \
     int64_t unit, int32_t dynamic, int32_t *id))                                                                     \
  /* everybody has met after the last operation */                                                                    \
  F(int, ze_win_drop, (int32_t win))                                                                                  \
  F(int, ze_win_attach, (int32_t win, void *base, int64_t bytes))                                                     \
  F(int, ze_win_detach, (int32_t win, void *base))                                                                    \
  /* what is sent is copied. cell (may be NULL) is done when results are there. *left is not 0 if */                  \
  /* too much is on its way to the target: then call ze_win_more until it is 0 */                                     \
  F(int, ze_win_op, (int32_t win, const z_rma *op, z_cell *cell, uint64_t *left))                                     \
  F(int, ze_win_more, (int32_t win, uint64_t * left))                                                                 \
  /* cell is done when it is over */                                                                                  \
  F(int, ze_win_sync,                                                                                                 \
    (int32_t win, int32_t what, int32_t target, int32_t flag, const int32_t *group, int32_t n, z_cell *cell))         \
  /* MPI_Win_test */                                                                                                  \
  F(int, ze_win_test, (int32_t win, int32_t * over))                                                                  \
  /* recording is on: a message went to this virtual rank of the own cluster natively */                              \
  F(void, ze_record, (int32_t rank, int64_t bytes))                                                                   \
  /* … and one from there has been received */                                                                      \
  F(void, ze_record_taken, (int32_t rank))                                                                            \
  /* … and this process waits for messages, from now on (begins = 1) or no longer (0) */                            \
  F(void, ze_record_wait, (int32_t begins))                                                                           \
  /* a port of this process; room: bytes of name */                                                                   \
  F(int, ze_port_open, (char *name, int32_t room))                                                                    \
  F(int, ze_port_close, (const char *name))                                                                           \
  /* accepts = 1: waits at the port for another job; 0: goes there. One of the n processes in world */                \
  /* does so for all. Aside: when cell is done ze_result has the result, and *plan, of cell->bytes */                 \
  /* bytes, is what all of them need; free() it */                                                                    \
  F(int, ze_meet, (const char *port, int32_t accepts, const int32_t *world, int32_t n, z_cell *cell, void **plan))    \
  /* joins what was agreed on. *n: how many processes there are. The first *low are of the side that */               \
  /* accepted. *numbers: their numbers; free() it. cell->source is the link, or 0 where all are of */                 \
  /* this job */                                                                                                      \
  F(int, ze_join,                                                                                                     \
    (const void *plan, int64_t bytes, int32_t accepts, z_cell *cell, int32_t *n, int32_t *low, int32_t **numbers))    \
  /* names for ports, aside: `port` has room for Z_PORT_NAME bytes */                                                 \
  F(int, ze_publish, (const char *name, const char *port, z_cell *cell))                                              \
  F(int, ze_lookup, (const char *name, char *port, z_cell *cell))                                                     \
  F(int, ze_unpublish, (const char *name))                                                                            \
  /* of a cell of these that is done: once */                                                                         \
  F(int, ze_result, (z_cell * cell))                                                                                  \
  /* a link over which there is no communicator ends */                                                               \
  F(void, ze_link_drop, (int32_t link))                                                                               \
  /* which of the clusters over a link this process is in */                                                          \
  F(int32_t, ze_cluster, (int32_t link))                                                                              \
  /* for ze_error: why nothing works any more on a communicator over a link; 0: that is not known */                  \
  F(int, ze_comm_why, (int32_t comm))

#define Z_DECLARE(R, N, A) typedef R(*N##_fn) A;
Z_ENGINE_FUNCTIONS(Z_DECLARE)
typedef struct z_engine {
#define Z_FIELD(R, N, A) N##_fn N;
  Z_ENGINE_FUNCTIONS(Z_FIELD)
} z_engine;
#undef Z_DECLARE
#undef Z_FIELD

/* Called by the mmpi Go package before MPI_Init: the engine is in this process already, do not open
 * another Go runtime. */
void mmpi_register_engine(uint32_t abi, const z_engine *engine);
#endif
