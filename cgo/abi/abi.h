/* The interface between the C shim and the Go engine. The shim (cgo/libmmpi) is compiled once for
 * each MPI library and knows MPI's handles; the engine is compiled once and knows none: handles of
 * communicators, types and operators cross as uint64_t, buffers as addresses of contiguous bytes.
 * The shim packs and unpacks data that are not contiguous.
 *
 * Threads. Every ze_ function may be called by any thread of the program that may call MPI; the
 * engine does its own locking. The z_native callbacks are called only from inside a ze_ call, on
 * the same thread, so that native MPI stays on the program's threads. The exceptions are `fail` and
 * `access`, which the engine's progress thread may call. */
#ifndef ZIPPER_ABI_H
#define ZIPPER_ABI_H
#include <stdint.h>

/* also in cgo/mpi/engine.c; raised with every change of a declaration in this file */
#define Z_ABI_VERSION 17

/* Portable values: no constant of an MPI library crosses this interface. */
enum { Z_ANY_SOURCE = -1, Z_ANY_TAG = -1, Z_PROC_NULL = -2, Z_REMOTE = -1, Z_GIVE_WAY = -1, Z_FAULTED = -1 };
/* Up to this number of processes of a cluster send small messages directly to one of them. With
 * more processes a tree has more steps, but fewer messages one after the other. */
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
/* A ready send is a standard one, and a buffered send is a standard one of the shim's copy. */
enum z_mode { Z_STANDARD = 0, Z_SYNCHRONOUS = 1 };
enum z_kind { Z_P2P = 0, Z_COLLECTIVE = 1, Z_INTERNAL = 2 }; /* equal to wire.Kind… */

/* An operation in progress. The shim allocates it, and keeps it in place until it has completed and
 * is freed. The shim polls `done`; the engine stores the result and then done = 1 (release). */
typedef struct z_cell {
  uint32_t done;
  int32_t error;  /* enum z_error */
  int32_t source; /* the rank in the communicator */
  int32_t tag;
  int64_t bytes;     /* the size in bytes of the received message, or of the message that a probe has found */
  int32_t cancelled; /* 1: cancelled before it began */
  uint32_t stage;    /* used by the shim only */
  uint64_t request;  /* used by the engine only, to find its request; 0: none */
  /* The shim's request, which callbacks receive. */
  void *owner;
  /* With Z_ERR_TRUNCATE: the size in bytes of the message, where `bytes` were expected, or 0 if it
   * is unknown. */
  int64_t sent;
} z_cell;

/* The world that this process has joined. */
typedef struct z_world {
  int32_t size, rank;        /* virtual */
  int32_t clusters, cluster; /* the number of clusters, and the index of this process's */
  int32_t offset;            /* the virtual rank of native rank 0 of this cluster */
  int32_t tag_ub;            /* the minimum over all MPI libraries of the job */
  /* 1: messages inside the cluster, and waits, are reported by ze_record…. */
  int32_t recording;
  /* [size] The virtual rank of every rank of MPI_COMM_WORLD, or NULL if they are equal. The array
   * stays valid. */
  const int32_t *order;
  /* This cluster's name if another cluster has a host with the name of this one, otherwise NULL.
   * The string stays valid. */
  const char *namesake;
  /* The number of different MPI libraries in the job, whatever their versions. */
  int32_t libraries;
  /* 1 if the engine runs. 0: the job has one cluster, and no forwarder by which other jobs could be
   * reached. */
  int32_t runs;
} z_world;

/* A message that the native library has matched for the engine (MPI_Improbe on the local part of a
 * communicator). */
typedef struct z_probe {
  uint64_t message; /* the shim's token for the native message handle */
  int32_t source;   /* the rank in the spanning communicator */
  int32_t tag;
  int64_t bytes;
} z_probe;

/* Collectives on a spanning communicator. Buffers are contiguous bytes (the shim packs); counts and
 * displacements are in bytes. */
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
  int32_t op;   /* enum z_coll_op */
  int32_t root; /* the rank in the communicator */
  /* The data to be sent. For MPI_IN_PLACE the shim passes the place itself. It may equal recv only
   * in reductions. */
  const void *send;
  void *recv;
  /* The size of this process's own block. Gather and allgather: the block that it sends. Scatter:
   * the block that it receives. Broadcast: the buffer in `recv`. */
  int64_t send_bytes;
  const int64_t *send_counts, *send_displs; /* [size] scatterv at the root, alltoallv */
  /* [size] gatherv at the root, allgatherv, alltoallv. Reduce_scatter: the counts in elements. */
  const int64_t *recv_counts, *recv_displs;
  int64_t count; /* reductions: the number of elements */
  /* Reductions: the bytes from one element to the next. Buffers have count*extent bytes and are
   * laid out as the type. */
  int64_t extent;
  uint64_t type, mpi_op; /* reductions: native handles, for z_native only */
  int32_t commutative;
  /* 1: every rank has the same count, and knows this (MPI_Gather, but not MPI_Gatherv). */
  int32_t uniform;
  /* The number of collectives that this process has done on the communicator without the engine
   * (ze_coll_leaf) since its last ze_coll. */
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
  int64_t n; /* the number of spans */
} z_view;

/* equal to rma.Put… */
enum z_verb { Z_PUT = 1, Z_GET, Z_ACCUMULATE, Z_FETCH, Z_SWAP };
/* The operators of accumulates and the types of their operands, as portable numbers, because the
 * libraries' handles differ. */
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
  /* Logical values, of which all but 0 are true. */
  Z_L8,
  Z_L16,
  Z_L32,
  Z_L64,
  /* Pairs for MAXLOC and MINLOC, laid out as in C. */
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
  int64_t disp; /* in displacement units of the target; an address in dynamic windows */
  /* The data to be sent. Z_SWAP: the new value, then the value to compare with. */
  z_view data;
  z_view there;  /* the memory at the target; base is not used */
  z_view result; /* the data to be received */
} z_rma;

/* The actions of ze_win_sync, with the arguments that each uses. */
enum z_sync {
  /* Ends this process's operations; the caller adds a barrier. flag: an epoch may follow. */
  Z_SYNC_FENCE,
  Z_SYNC_FLUSH,    /* target; -1: all */
  Z_SYNC_LOCK,     /* target; flag: Z_LOCK_… */
  Z_SYNC_UNLOCK,   /* target */
  Z_SYNC_LOCK_ALL, /* flag: Z_LOCK_UNCHECKED or 0 */
  Z_SYNC_UNLOCK_ALL,
  /* group. Completes at once: cell is not used. */
  Z_SYNC_POST,
  Z_SYNC_START, /* group */
  Z_SYNC_COMPLETE,
  Z_SYNC_WAIT,
  Z_SYNC_IDLE, /* returns an error if an epoch is open; cell is not used */
};

enum { Z_LOCK_EXCLUSIVE = 1, Z_LOCK_UNCHECKED = 2, Z_LOCK_AWAITED = 4 }; /* equal to rma.Exclusive … */

/* The engine's activity, equal to engine.Idle … */
enum z_activity {
  Z_IDLE, /* a thread may block inside native MPI */
  Z_BUSY,
  /* Only native stages of collectives are in progress, which no message from another cluster can
   * end. */
  Z_STAGING,
};

/* The process's waits, which the warning about a deadlocked job reads. */
typedef struct z_waits {
  /* The name of the MPI function that the program has called last; the string stays valid. */
  const char *call;
  /* The numbers of waits begun and ended. If they are equal the process does not wait. */
  uint32_t begun, ended;
  /* 1: processes outside of the job may end a wait, so the waits are no sign of a deadlock. */
  int32_t outside;
} z_waits;

/* Memory of the program that is used by a message and that the kernel could not access. */
typedef struct z_fault {
  void *at;
  int64_t bytes;
  /* 1: the message is received there. 0: the message is sent from there. */
  int32_t writes;
  /* A description of the message, as a part of a sentence, ending with 0. */
  char what[256];
} z_fault;

/* The functions of native MPI that the engine uses. */
typedef struct z_native {
  uint32_t abi;
  volatile int32_t *busy; /* enum z_activity; written by the engine */
  const z_waits *waits;   /* written by the shim, read by any thread */
  /* Written by the shim, read by any thread. 1: the program ends the job, and calls of the engine
   * that wait for other processes return Z_ERR_ABORTED. */
  const volatile int32_t *leave;

  /* Matching. `comm` is the pointer passed to ze_comm_add. native_source is a rank of the local
   * part or Z_ANY_SOURCE. The functions return 1 if a message was found, 0 if not, and the negative
   * of an error otherwise. */
  int (*improbe)(void *comm, int32_t native_source, int32_t tag, z_probe *out);
  /* Finds a message as improbe does, but leaves it queued (out->message = 0). */
  int (*iprobe)(void *comm, int32_t native_source, int32_t tag, z_probe *out);
  /* Starts to receive the message into cell->owner's buffer; the engine then polls with `test`. */
  int (*imrecv)(z_cell *cell, uint64_t message);
  /* Posts cell->owner's receive natively after all; the engine then polls with `test`. */
  int (*irecv)(z_cell *cell);
  /* Returns 1 if the native receive has completed, with the result filled in except `done`. */
  int (*test)(z_cell *cell);
  int (*cancel)(z_cell *cell); /* cancels the native receive */

  /* Starts a nonblocking collective inside this process's cluster, over the local part of the
   * communicator. The fields of z_coll are those of the local part, with native ranks. *token is
   * passed to coll_test. */
  int (*coll)(void *comm, const z_coll *args, uint64_t *token);
  /* Returns 1 if the collective has completed, which invalidates the token, 0 if not, and the
   * negative of an error otherwise. */
  int (*coll_test)(uint64_t token);
  /* inout = in op inout */
  int (*reduce_local)(const void *in, void *inout, int64_t count, uint64_t type, uint64_t op);

  /* Ends this process with the code because the job is lost or aborted, after printing the reason.
   * Does not return. Safe in any thread. */
  void (*fail)(int32_t code, const char *reason);

  /* Accesses the memory as the program would. Returns if it can be accessed after all. Safe in any
   * thread. */
  void (*access)(const z_fault *fault);
} z_native;

/* Connections to other jobs. Each is a link with an engine of its own, numbered from 1; link 0 is
 * the job itself. A process of another job gets a number above the virtual ranks of this job. The
 * number is the same in all connections, and known to this process alone. */
enum { Z_LINKS = 127, Z_PORT_NAME = 256 };

/* The engine. Its functions are exported by libmmpi-engine.so and looked up by name; in a Go
 * program they are linked in and registered by the mmpi package. Functions that return int return
 * Z_OK or an error of enum z_error, unless a comment says otherwise; ze_error() returns the text of
 * the error. */
/* The facts that only native MPI knows, which every process passes to ze_start. */
typedef struct z_local {
  int32_t rank, size; /* native */
  int32_t tag_ub;
  const char *library; /* for example "Open MPI 4.1.4" */
  const char *host;
  /* [size] For every native rank the first native rank on its host. The array is not kept. */
  const int32_t *hosts;
  int32_t threads; /* 1: several threads may be in the engine at once */
  /* 1: MPI_Comm_spawn has started this native world, which is beside the job's. */
  int32_t spawned;
} z_local;

#define Z_ENGINE_FUNCTIONS(F)                                                                                         \
  /* Joins the job that the environment describes (ZIPPER_*). Blocks until all clusters have */                       \
  /* joined or the time-out expires. out->runs is 0 if the shim must pass everything through. */                      \
  F(int, ze_start, (const z_native *native, const z_local *local, z_world *out))                                      \
  /* Flushes, waits for acknowledgements, synchronizes all ranks and leaves the job. Only */                          \
  /* ze_error may be called after it. */                                                                              \
  F(int, ze_finish, (void))                                                                                           \
  /* Ends the job in all clusters. Returns once the forwarder has acknowledged it, or after 1 */                      \
  /* s. */                                                                                                            \
  F(void, ze_abort, (int32_t code))                                                                                   \
  /* Returns the text of the error of this thread's last failed call. It is valid until this */                       \
  /* thread's next call, also if other threads make calls. */                                                         \
  F(const char *, ze_error, (void))                                                                                   \
  /* Returns a new context id of this process, for communicators over the link. */                                    \
  F(uint64_t, ze_next_context, (int32_t link))                                                                        \
  /* Adds a communicator. world[i] is the process number of rank i, native[i] its rank in the */                      \
  /* local part or Z_REMOTE. link is 0 if all ranks are of this job. */                                               \
  F(int, ze_comm_add,                                                                                                 \
    (int32_t link, void *comm, uint64_t context, int32_t size, int32_t rank, const int32_t *world,                    \
     const int32_t *native, int32_t native_size, int32_t *id))                                                        \
  /* Removes a communicator, on which no operation may be in progress. A link ends with its */                        \
  /* last communicator. */                                                                                            \
  F(int, ze_comm_drop, (int32_t id))                                                                                  \
  /* Starts a send to a remote rank. The operation may have completed on return (cell->done). */                      \
  F(int, ze_isend,                                                                                                    \
    (int32_t comm, int32_t kind, const void *buf, int64_t bytes, int32_t dest, int32_t tag, int32_t mode,             \
     z_cell *cell))                                                                                                   \
  /* Starts a receive whose source is remote, or Z_ANY_SOURCE, or local if ze_shadowed */                             \
  /* returns 1. If the message comes natively the engine calls imrecv or irecv, and does not */                       \
  /* use `buf`. */                                                                                                    \
  F(int, ze_irecv, (int32_t comm, int32_t kind, void *buf, int64_t bytes, int32_t source, int32_t tag, z_cell *cell)) \
  /* Returns 1 if an earlier receive could match the message of this local receive, which */                          \
  /* then must be passed to ze_irecv, or 0 if it can be posted natively at once. */                                   \
  F(int, ze_shadowed, (int32_t comm, int32_t source, int32_t tag))                                                    \
  /* Probes for a message of any source; for a local one by a native iprobe. out->done is 1 */                        \
  /* if one was found. A local message for an entry of list D is received into that entry, */                         \
  /* and the probe goes on. */                                                                                        \
  F(int, ze_iprobe, (int32_t comm, int32_t source, int32_t tag, z_cell * out))                                        \
  /* Probes as ze_iprobe does, and takes the message from the queue (a matched probe). */                             \
  /* *native is 1 if *message is the shim's token of a z_probe. */                                                    \
  F(int, ze_improbe, (int32_t comm, int32_t source, int32_t tag, z_cell * out, uint64_t * message, int32_t * native)) \
  /* Starts to receive a remote message that ze_improbe has found. */                                                 \
  F(int, ze_mrecv, (uint64_t message, void *buf, int64_t bytes, z_cell *cell))                                        \
  /* Requests the cancellation of an operation; cell->cancelled tells whether it succeeded. */                        \
  F(int, ze_cancel, (int32_t comm, z_cell * cell))                                                                    \
  /* Makes progress, and returns a number greater than 0 if there was any. With block_us > 0 */                       \
  /* it sleeps on the links for up to block_us if there was none. With Z_GIVE_WAY it yields */                        \
  /* the core first. It returns Z_FAULTED if ze_fault has to be called. */                                            \
  F(int, ze_progress, (int32_t block_us))                                                                             \
  /* Returns 1 and sets *out to memory that could not be accessed. The caller accesses it and */                      \
  /* calls ze_fault(NULL), which lets the message continue. Returns 0 if there is none, or */                         \
  /* another thread has taken it. */                                                                                  \
  F(int, ze_fault, (z_fault * out))                                                                                   \
  /* Starts a collective. Arrays in args are copied, buffers must stay valid. */                                      \
  F(int, ze_coll, (int32_t comm, const z_coll *args, z_cell *cell))                                                   \
  /* Returns 1 if this process only sends *give bytes of `send` to local rank 0, or receives */                       \
  /* *get bytes from it into `recv`, or both; -1 bytes: there is no message. The shim may */                          \
  /* then do the collective by the native messages that the engine would send, in the same */                         \
  /* order. */                                                                                                        \
  F(int, ze_coll_leaf, (int32_t comm, const z_coll *args, int64_t *give, int64_t *get))                               \
  /* Adds a window of `bytes` bytes at base, or a dynamic one for memory that is attached */                          \
  /* later. */                                                                                                        \
  F(int, ze_win_add,                                                                                                  \
    (int32_t link, uint64_t context, int32_t size, int32_t rank, const int32_t *world, void *base, int64_t bytes,     \
     int64_t unit, int32_t dynamic, int32_t *id))                                                                     \
  /* Removes a window after all ranks have synchronized behind their last operation. */                               \
  F(int, ze_win_drop, (int32_t win))                                                                                  \
  F(int, ze_win_attach, (int32_t win, void *base, int64_t bytes))                                                     \
  F(int, ze_win_detach, (int32_t win, void *base))                                                                    \
  /* Starts an operation, and copies the data to be sent. cell may be NULL; it is done when */                        \
  /* the results have arrived. *left is not 0 if too much is in flight to the target; the */                          \
  /* caller then calls ze_win_more until it is 0. */                                                                  \
  F(int, ze_win_op, (int32_t win, const z_rma *op, z_cell *cell, uint64_t *left))                                     \
  F(int, ze_win_more, (int32_t win, uint64_t * left))                                                                 \
  /* Synchronizes a window (enum z_sync). cell is done when the synchronization has */                                \
  /* completed. */                                                                                                    \
  F(int, ze_win_sync,                                                                                                 \
    (int32_t win, int32_t what, int32_t target, int32_t flag, const int32_t *group, int32_t n, z_cell *cell))         \
  /* Does MPI_Win_test: sets *over to 1 if the exposure epoch has ended. */                                           \
  F(int, ze_win_test, (int32_t win, int32_t * over))                                                                  \
  /* Reports a native message to a virtual rank of this cluster, while recording is on. */                            \
  F(void, ze_record, (int32_t rank, int64_t bytes))                                                                   \
  /* Reports that a native message from this virtual rank has been received. */                                       \
  F(void, ze_record_taken, (int32_t rank))                                                                            \
  /* Reports that this process begins to wait for messages (begins = 1) or has stopped */                             \
  /* waiting (0). */                                                                                                  \
  F(void, ze_record_wait, (int32_t begins))                                                                           \
  /* Opens a port of this process, and writes its name to name, which has room for `room` */                          \
  /* bytes. */                                                                                                        \
  F(int, ze_port_open, (char *name, int32_t room))                                                                    \
  F(int, ze_port_close, (const char *name))                                                                           \
  /* Waits at the port for another job (accepts = 1) or connects to the job that waits there */                       \
  /* (0), in the background. One of the n processes in world calls it for all of them. When */                        \
  /* cell is done ze_result has the result, and *plan, of cell->bytes bytes, must be passed to */                     \
  /* ze_join by all of them. The caller frees *plan. */                                                               \
  F(int, ze_meet, (const char *port, int32_t accepts, const int32_t *world, int32_t n, z_cell *cell, void **plan))    \
  /* Joins the connection of a plan. *n is the number of its processes, of which the first */                         \
  /* *low are of the accepting side, and *numbers has their process numbers; the caller frees */                      \
  /* it. cell->source is the link, or 0 if all processes are of this job. */                                          \
  F(int, ze_join,                                                                                                     \
    (const void *plan, int64_t bytes, int32_t accepts, z_cell *cell, int32_t *n, int32_t *low, int32_t **numbers))    \
  /* Publish and look up names of ports in the background. `port` has room for Z_PORT_NAME */                         \
  /* bytes. */                                                                                                        \
  F(int, ze_publish, (const char *name, const char *port, z_cell *cell))                                              \
  F(int, ze_lookup, (const char *name, char *port, z_cell *cell))                                                     \
  F(int, ze_unpublish, (const char *name))                                                                            \
  /* Returns the result of such an operation in the background, once its cell is done. Call */                        \
  /* it once. */                                                                                                      \
  F(int, ze_result, (z_cell * cell))                                                                                  \
  /* Ends a link over which there is no communicator. */                                                              \
  F(void, ze_link_drop, (int32_t link))                                                                               \
  /* Returns the index of this process's cluster among the clusters of a link. */                                     \
  F(int32_t, ze_cluster, (int32_t link))                                                                              \
  /* Sets the text of ze_error to the reason why a communicator's link has failed, or returns */                      \
  /* 0 if it is unknown. */                                                                                           \
  F(int, ze_comm_why, (int32_t comm))

#define Z_DECLARE(R, N, A) typedef R(*N##_fn) A;
Z_ENGINE_FUNCTIONS(Z_DECLARE)
typedef struct z_engine {
#define Z_FIELD(R, N, A) N##_fn N;
  Z_ENGINE_FUNCTIONS(Z_FIELD)
} z_engine;
#undef Z_DECLARE
#undef Z_FIELD

/* Registers the engine of a Go program, so that MPI_Init does not load another Go runtime. The mmpi
 * Go package calls it before MPI_Init. */
void mmpi_register_engine(uint32_t abi, const z_engine *engine);
#endif
