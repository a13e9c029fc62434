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

/* The version of this interface, which is raised with every change of a declaration in this file;
 * cgo/mpi/engine.c has it too. */
#define Z_ABI_VERSION 21

/* The values by which this interface denotes wildcards and special ranks, since no constant of an
 * MPI library crosses it; Z_GIVE_WAY is an argument of ze_progress and Z_FAULTED one of its
 * results. */
enum { Z_ANY_SOURCE = -1, Z_ANY_TAG = -1, Z_PROC_NULL = -2, Z_REMOTE = -1, Z_GIVE_WAY = -1, Z_FAULTED = -1 };
/* The greatest number of processes of a cluster that send small messages directly to one of them.
 * With more processes they use a tree, which has more steps, but fewer messages one after the
 * other. */
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
  Z_ERR_RMA_RANGE,
  /* A process that the operation needs is in a lost cluster. */
  Z_ERR_PROC_FAILED,
  /* A receive from any source cannot tell whether its sender is in a lost cluster. It stays posted,
   * see ze_resume. */
  Z_ERR_PROC_FAILED_PENDING,
  /* The communicator is revoked. */
  Z_ERR_REVOKED,
  /* The driver of a device cannot copy its memory. */
  Z_ERR_DEVICE
};
/* The mode of a send. A ready send is a standard one, and a buffered send is a standard one of the
 * shim's copy. */
enum z_mode { Z_STANDARD = 0, Z_SYNCHRONOUS = 1 };
/* The kind of a message, which receives match too: of the program, of a collective, or of the
 * shim's own. The numbers are those of wire.Kind…. */
enum z_kind { Z_P2P = 0, Z_COLLECTIVE = 1, Z_INTERNAL = 2 };

/* The state of an operation in progress, such as a send or a collective. The shim allocates it, and
 * keeps it in place until it has completed and is freed. The shim polls `done`; the engine stores
 * the result and then done = 1 (release). */
typedef struct z_cell {
  uint32_t done;
  /* The error with which the operation has ended, enum z_error. For a native receive it is an error
   * class of native MPI, which z_native's `test` has stored. */
  int32_t error;
  /* the rank in the communicator from which the message has come */
  int32_t source;
  int32_t tag;
  int64_t bytes; /* the size in bytes of the received message, or of the message that a probe has found */
  /* 1 if the operation was cancelled, so that its message has not been sent or received */
  int32_t cancelled;
  uint32_t stage; /* used by the shim only */
  /* the number by which the engine finds its request, which only the engine uses; 0: none */
  uint64_t request;
  /* The shim's request to which this cell belongs, which callbacks receive. */
  void *owner;
  /* With Z_ERR_TRUNCATE: the size in bytes of the message, where `bytes` were expected, or 0 if it
   * is unknown. */
  int64_t sent;
  /* Of a send: the number of bytes at the end of the data that are not in the buffer yet. Any
   * thread may lower it, and calls ze_supply then; the engine sends the bytes before them
   * meanwhile. */
  int64_t missing;
  /* Of a receive: the number of bytes at the front of the buffer that have arrived so far, which is
   * only counted for long messages. */
  int64_t arrived;
} z_cell;

/* The job and this process's place in it, which ze_start returns. */
typedef struct z_world {
  /* the number of processes of the job, and this process's virtual rank */
  int32_t size, rank;
  /* the number of clusters, and the index of this process's cluster */
  int32_t clusters, cluster;
  int32_t offset; /* the virtual rank of native rank 0 of this cluster */
  /* the minimum of MPI_TAG_UB over all MPI libraries of the job */
  int32_t tag_ub;
  /* 1 if the shim must report messages inside the cluster, and waits, by ze_record…. */
  int32_t recording;
  /* [size] The virtual rank of each rank of MPI_COMM_WORLD, or NULL if every rank equals its
   * virtual rank. The array stays valid. */
  const int32_t *order;
  /* This cluster's name if another cluster has a host with the name of this one, otherwise NULL.
   * The string stays valid. */
  const char *namesake;
  /* The number of different MPI libraries in the job, whatever their versions. */
  int32_t libraries;
  /* 1 if the clusters of the job differ in their format of long double, otherwise 0. */
  int32_t mixed;
  /* 1 if the engine runs. 0 if it does not, because the job has one cluster and no forwarder by
   * which other jobs could be reached. */
  int32_t runs;
  /* 1 if the job goes on when a cluster is lost. Then the engine's activity is never Z_IDLE, and
   * ze_coll_leaf always returns 0. */
  int32_t on_loss;
} z_world;

/* A message that the native library has found for the engine by a probe (MPI_Improbe on the local
 * part of a communicator). */
typedef struct z_probe {
  /* the shim's number for the native message handle, or 0 if the message has been left queued */
  uint64_t message;
  /* the rank in the spanning communicator from which the message comes */
  int32_t source;
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
  int32_t op; /* the kind of the collective, enum z_coll_op */
  /* the rank of the root in the communicator, if the collective has a root */
  int32_t root;
  /* The address of the data to be sent. For MPI_IN_PLACE the shim passes the place itself: recv in
   * reductions, and the address of this process's block in `recv` in gathers; in a scatter `recv`
   * is then that of the root's block in `send`. */
  const void *send;
  void *recv;
  /* The size in bytes of this process's own block. Gather and allgather: the block that it sends.
   * Scatter: the block that it receives. Broadcast: the buffer in `recv`. */
  int64_t send_bytes;
  /* [size] The size and the offset in `send`, in bytes, of the block for each rank. Used by
   * scatterv at the root, and by alltoallv. */
  const int64_t *send_counts, *send_displs;
  /* [size] The size and the offset in `recv`, in bytes, of the block of each rank. Used by gatherv
   * at the root, allgatherv and alltoallv. Reduce_scatter: the number of elements of each rank's
   * result. */
  const int64_t *recv_counts, *recv_displs;
  int64_t count; /* Reductions: the number of elements. */
  /* Reductions: the distance in bytes from one element to the next. Buffers have count*extent bytes
   * and are laid out as the type. */
  int64_t extent;
  /* Reductions: the native handles of the datatype and the operator, which the engine only passes
   * to z_native. */
  uint64_t type, mpi_op;
  int32_t commutative;
  /* 1 if every rank has the same count and all ranks know this, as in MPI_Gather but not in
   * MPI_Gatherv. */
  int32_t uniform;
  /* The number of collectives that this process has done on the communicator without the engine
   * (ze_coll_leaf) since its last ze_coll. */
  uint32_t skipped;
  /* Reductions: 1 if the elements have another format between clusters than in memory (z_native.
   * recode), at every rank or at none. */
  int32_t recoded;
} z_coll;

/* One-sided operations on a window that spans clusters. Memory is described as `count` elements,
 * `extent` bytes from one to the next. An element is a list of spans (off, len) in the order of the
 * type map. Offsets count from `base`, and at the target from the displacement. */
/* A span of bytes: its offset `off` and its length `len` in bytes. */
typedef struct z_span {
  int64_t off, len;
} z_span;
/* The memory of one side of a one-sided operation: `count` elements from `base` on, one every
 * `extent` bytes, each with the same n spans. */
typedef struct z_view {
  void *base;
  int64_t count, extent;
  const z_span *spans;
  int64_t n; /* the number of spans in each element */
  /* 1 if the memory is that of a device, which only z_native's `copy` can access */
  int32_t device;
} z_view;

/* The kinds of one-sided operations, equal to rma.Put…: put, get, accumulate, get and accumulate,
 * compare and swap. */
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
/* The types of the numbers on which accumulates compute. Z_BYTES: bytes that are only moved. */
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
/* A one-sided operation: its kind (enum z_verb), its operator (enum z_fn), the type of its elements
 * (enum z_number), and the rank of its target in the window. */
typedef struct z_rma {
  int32_t verb, fn, number, target;
  /* the displacement at the target in its displacement units, or an address in a dynamic window */
  int64_t disp;
  /* The data to be sent. For Z_SWAP they are the new value and then the value to compare with. */
  z_view data;
  /* the memory at the target, whose `base` is not used */
  z_view there;
  /* the memory into which the result is received */
  z_view result;
} z_rma;

/* The bits of the kind of a window: a dynamic one, for memory that is attached later, and one whose
 * memory is that of a device. */
enum { Z_WIN_DYNAMIC = 1, Z_WIN_DEVICE = 2 };

/* The actions of ze_win_sync. Each comment names the arguments of ze_win_sync that the action uses,
 * apart from the window and the cell. */
enum z_sync {
  /* Completes this process's operations for MPI_Win_fence; the caller adds a barrier. Uses flag: 1
   * if an epoch may follow. */
  Z_SYNC_FENCE,
  /* Completes the operations of MPI_Win_flush. Uses target, where -1 means all targets. */
  Z_SYNC_FLUSH,
  /* Locks the window at one target. Uses target, and flag: a combination of Z_LOCK_…. */
  Z_SYNC_LOCK,
  /* Unlocks the window at one target. Uses target. */
  Z_SYNC_UNLOCK,
  /* Locks the window at all targets. Uses flag: Z_LOCK_UNCHECKED or 0. */
  Z_SYNC_LOCK_ALL,
  /* Unlocks the window at all targets. */
  Z_SYNC_UNLOCK_ALL,
  /* Begins an exposure epoch for the processes in group, as MPI_Win_post does. Completes at once:
   * cell is not used. Uses group and n. */
  Z_SYNC_POST,
  /* Begins an access epoch to the processes in group, as MPI_Win_start does. Uses group and n. */
  Z_SYNC_START,
  /* Ends the access epoch, as MPI_Win_complete does. */
  Z_SYNC_COMPLETE,
  /* Ends the exposure epoch, as MPI_Win_wait does. */
  Z_SYNC_WAIT,
  /* Returns an error if an epoch is open. Otherwise completes all operations of this process, as
   * must be done before the window is freed. */
  Z_SYNC_IDLE,
};

/* The bits of a lock's flag, equal to rma.Exclusive …: exclusive and not shared; MPI_MODE_NOCHECK;
 * the operation completes only when the lock has been granted. */
enum { Z_LOCK_EXCLUSIVE = 1, Z_LOCK_UNCHECKED = 2, Z_LOCK_AWAITED = 4 };

/* The activity of the engine, which determines how the shim waits. The numbers are those of
 * engine.Idle …. */
enum z_activity {
  /* nothing: a thread may block inside native MPI */
  Z_IDLE,
  Z_BUSY,
  /* Only native stages of collectives are in progress, which no message from another cluster can
   * end. */
  Z_STAGING,
};

/* The counts of the process's waits, which the warning about a deadlocked job reads. */
typedef struct z_waits {
  /* The name of the MPI function that the program has called last; the string stays valid. */
  const char *call;
  /* The numbers of waits that have begun and that have ended. If they are equal the process does
   * not wait. */
  uint32_t begun, ended;
  /* 1 if processes outside of the job may end a wait, so that the waits are no sign of a
   * deadlock. */
  int32_t outside;
} z_waits;

/* Memory of the program that is used by a message and that the kernel could not access. */
typedef struct z_fault {
  void *at;
  int64_t bytes;
  /* 1 if the message is to be received there, 0 if it is to be sent from there. */
  int32_t writes;
  /* A description of the message for the user, as a part of a sentence. */
  char what[256];
} z_fault;

/* The functions and the variables of the shim that the engine uses, for the most part to call
 * native MPI. */
typedef struct z_native {
  uint32_t abi;
  /* the engine's activity, enum z_activity, which the engine sets */
  volatile int32_t *busy;
  /* the counts of waits, which the shim sets and any thread reads */
  const z_waits *waits;
  /* 1 while the program ends the job, so that calls of the engine that wait for other processes
   * return Z_ERR_ABORTED. The shim sets it, and any thread reads it. */
  const volatile int32_t *leave;

  /* Probes for a native message and takes it from the queue (a matched probe). `comm` is the
   * pointer passed to ze_comm_add; native_source is a rank of the local part or Z_ANY_SOURCE.
   * Returns 1 and sets *out if a message was found, 0 if not, and the negative of an error
   * otherwise. */
  int (*improbe)(void *comm, int32_t native_source, int32_t tag, z_probe *out);
  /* Probes for a native message as improbe does, but leaves it queued (out->message = 0). */
  int (*iprobe)(void *comm, int32_t native_source, int32_t tag, z_probe *out);
  /* Starts to receive a message that improbe has found into the buffer of cell->owner; the engine
   * then polls with `test`. Returns Z_OK or an error. */
  int (*imrecv)(z_cell *cell, uint64_t message);
  /* Posts the receive of cell->owner natively, because its message can only come natively; the
   * engine then polls with `test`. Returns Z_OK or an error. */
  int (*irecv)(z_cell *cell);
  /* Tests a receive that imrecv or irecv has started. Returns 1 if it has completed, after storing
   * the result in *cell except `done`, otherwise 0. */
  int (*test)(z_cell *cell);
  /* Cancels a receive that irecv has started. Returns Z_OK or an error. */
  int (*cancel)(z_cell *cell);

  /* Starts a nonblocking collective inside this process's cluster, over the local part of the
   * communicator. The fields of *args are those of the local part, with native ranks. *token is set
   * to the number to be passed to coll_test. Returns Z_OK or the negative of an error. */
  int (*coll)(void *comm, const z_coll *args, uint64_t *token);
  /* Tests a collective that `coll` has started. Returns 1 if it has completed, which invalidates
   * the token, 0 if not, and the negative of an error otherwise. */
  int (*coll_test)(uint64_t token);
  /* Computes inout = in op inout for count elements, as MPI_Reduce_local does. Returns Z_OK or an
   * error. */
  int (*reduce_local)(const void *in, void *inout, int64_t count, uint64_t type, uint64_t op);
  /* Converts count elements that are laid out as a type, in place: to the format in which they
   * travel between clusters (way = 0), or from it to that of memory (1). Returns Z_OK or an
   * error. */
  int (*recode)(uint64_t type, void *at, int64_t count, int32_t way);
  /* Converts, like recode, the numbers of one type (enum z_number) in `bytes` bytes. Safe in any
   * thread. */
  void (*recode_numbers)(int32_t number, void *at, int64_t bytes, int32_t way);

  /* Copies n bytes from or to memory of a device, or both. Returns Z_OK, or Z_ERR_DEVICE after
   * storing the reason in `why`, which has room for `room` bytes. Safe in any thread. */
  int (*copy)(void *to, const void *from, int64_t n, char *why, int64_t room);

  /* Ends this process with an exit status, because the job is lost or aborted, after printing the
   * reason. Does not return. Safe in any thread. */
  void (*fail)(int32_t code, const char *reason);

  /* Accesses the memory of a fault as the program would, which raises a signal if it is still
   * inaccessible. Returns if it can be accessed after all. Safe in any thread. */
  void (*access)(const z_fault *fault);
} z_native;

/* The greatest number of connections to other jobs, and the size in bytes of the memory for a
 * port's name. Each connection is a link with an engine of its own, numbered from 1; link 0 is the
 * job itself. A process of another job gets a number above the virtual ranks of this job. The
 * number is the same in all connections, and known to this process alone. */
enum { Z_LINKS = 127, Z_PORT_NAME = 256 };

/* The facts about this process and its cluster that only native MPI knows, and that every process
 * passes to ze_start. */
typedef struct z_local {
  /* the rank in the native world, and its size */
  int32_t rank, size;
  int32_t tag_ub;
  /* the name of the MPI library, for example "Open MPI 4.1.4" */
  const char *library;
  const char *host;
  /* [size] The first native rank on the host of each native rank. The array need not stay valid. */
  const int32_t *hosts;
  /* the format of data in this process's memory (facts.Word) */
  uint32_t facts;
  /* 1 if several threads may be in the engine at once */
  int32_t threads;
  /* 1 if MPI_Comm_spawn has started this native world, which is then a separate world beside the
   * job's. */
  int32_t spawned;
} z_local;

/* The list of the engine's functions, F(result, name, parameters) for each. They are exported by
 * libmmpi-engine.so and looked up by name; in a Go program they are linked in and registered by the
 * mmpi package. Functions that return int return Z_OK or an error of enum z_error, unless a comment
 * says otherwise; ze_error() returns the text of the error. */
#define Z_ENGINE_FUNCTIONS(F)                                                                                         \
  /* Joins the job that the environment describes (ZIPPER_*), and sets *out. Blocks until all */                      \
  /* clusters have joined or the time-out expires. out->runs is 0 if the shim must pass every */                      \
  /* call to native MPI. */                                                                                           \
  F(int, ze_start, (const z_native *native, const z_local *local, z_world *out))                                      \
  /* Leaves the job after all messages have been sent and acknowledged, and all ranks have */                         \
  /* called this function. Only ze_error may be called after it, and ze_abort if the program */                       \
  /* ends the job meanwhile (z_native.leave). */                                                                      \
  F(int, ze_finish, (void))                                                                                           \
  /* Ends the job in all clusters, and the connections to other jobs, with an exit status. */                         \
  /* Returns once the request has been written to the links, or after 1 s for each connection. */                     \
  F(void, ze_abort, (int32_t code))                                                                                   \
  /* Returns the text of the error of this thread's last failed call. It is valid until this */                       \
  /* thread's next call, also if other threads make calls. */                                                         \
  F(const char *, ze_error, (void))                                                                                   \
  /* Returns a new context id of this process, for a communicator whose messages go over a */                         \
  /* link. */                                                                                                         \
  F(uint64_t, ze_next_context, (int32_t link))                                                                        \
  /* Adds a communicator to the engine and sets *id to its number. `comm` is passed to the */                         \
  /* functions of z_native. world[i] is the process number of rank i, native[i] its rank in */                        \
  /* the local part or Z_REMOTE. link is 0 if all ranks are of this job. */                                           \
  F(int, ze_comm_add,                                                                                                 \
    (int32_t link, void *comm, uint64_t context, int32_t size, int32_t rank, const int32_t *world,                    \
     const int32_t *native, int32_t native_size, int32_t *id))                                                        \
  /* Removes a communicator from the engine; no operation may be in progress on it. A link */                         \
  /* ends with its last communicator. */                                                                              \
  F(int, ze_comm_drop, (int32_t id))                                                                                  \
  /* Starts to send `bytes` bytes at buf to a rank in another cluster. kind is a z_kind, mode */                      \
  /* a z_mode. The operation may have completed on return (cell->done). */                                            \
  F(int, ze_isend,                                                                                                    \
    (int32_t comm, int32_t kind, const void *buf, int64_t bytes, int32_t dest, int32_t tag, int32_t mode,             \
     z_cell *cell))                                                                                                   \
  /* Continues a send after z_cell.missing has become lower. request is z_cell.request after */                       \
  /* ze_isend; the send may have ended. Safe in any thread. */                                                        \
  F(int, ze_supply, (int32_t comm, uint64_t request))                                                                 \
  /* Starts to receive a message from a rank that is remote, or Z_ANY_SOURCE, or local if */                          \
  /* ze_shadowed returns 1. If the message comes natively the engine calls imrecv or irecv, */                        \
  /* and does not use `buf`. */                                                                                       \
  F(int, ze_irecv, (int32_t comm, int32_t kind, void *buf, int64_t bytes, int32_t source, int32_t tag, z_cell *cell)) \
  /* Returns 1 if an earlier receive in the engine could match the message of a receive from */                       \
  /* this local source, which then must be passed to ze_irecv, or 0 if the receive can be */                          \
  /* posted natively at once. */                                                                                      \
  F(int, ze_shadowed, (int32_t comm, int32_t source, int32_t tag))                                                    \
  /* Probes once for a message, whose source may be any; for a local one by a native iprobe. */                       \
  /* out->done is 1 if one was found. A local message that an earlier receive of the engine */                        \
  /* matches is received into that, and the probe goes on. */                                                         \
  F(int, ze_iprobe, (int32_t comm, int32_t source, int32_t tag, z_cell * out))                                        \
  /* Probes as ze_iprobe does, and takes the message from the queue (a matched probe). */                             \
  /* *message is its number: if *native is 1, the shim's number of a native message (z_probe), */                     \
  /* otherwise one for ze_mrecv. */                                                                                   \
  F(int, ze_improbe, (int32_t comm, int32_t source, int32_t tag, z_cell * out, uint64_t * message, int32_t * native)) \
  /* Starts to receive a remote message that ze_improbe has found. */                                                 \
  F(int, ze_mrecv, (uint64_t message, void *buf, int64_t bytes, z_cell *cell))                                        \
  /* Requests that an operation is cancelled; once it is done cell->cancelled tells whether it */                     \
  /* was. */                                                                                                          \
  F(int, ze_cancel, (int32_t comm, z_cell * cell))                                                                    \
  /* Sends and receives what it can over the links, and returns a number greater than 0 if */                         \
  /* anything was done. Otherwise it sleeps on the links for up to block_us microseconds if */                        \
  /* that is greater than 0; if it is Z_GIVE_WAY it yields the core first. Returns Z_FAULTED */                       \
  /* if ze_fault has to be called. */                                                                                 \
  F(int, ze_progress, (int32_t block_us))                                                                             \
  /* Returns 1 and sets *out to memory of the program that the engine could not access. The */                        \
  /* caller accesses it and calls ze_fault(NULL), which lets the message continue. Returns 0 */                       \
  /* if there is none, or another thread has taken it. */                                                             \
  F(int, ze_fault, (z_fault * out))                                                                                   \
  /* Starts a collective on a communicator; cell is done when it has completed. Arrays in args */                     \
  /* are copied, buffers must stay valid until then. */                                                               \
  F(int, ze_coll, (int32_t comm, const z_coll *args, z_cell *cell))                                                   \
  /* Returns 1 if this process is a leaf in a collective: it only sends *give bytes of `send` */                      \
  /* to local rank 0, or receives *get bytes from it into `recv`, or both; -1 bytes: there is */                      \
  /* no message. The shim may then do the collective by the native messages that the engine */                        \
  /* would send, in the same order. Otherwise returns 0. */                                                           \
  F(int, ze_coll_leaf, (int32_t comm, const z_coll *args, int64_t *give, int64_t *get))                               \
  /* Adds a window for one-sided operations and sets *id to its number: one of `bytes` bytes */                       \
  /* at base with a displacement unit of `unit` bytes, or a dynamic one for memory that is */                         \
  /* attached later. kind is a combination of Z_WIN_…. world[i] is the process number of rank i. */                 \
  F(int, ze_win_add,                                                                                                  \
    (int32_t link, uint64_t context, int32_t size, int32_t rank, const int32_t *world, void *base, int64_t bytes,     \
     int64_t unit, int32_t kind, int32_t *id))                                                                        \
  /* Removes a window. All ranks must have synchronized after their last operation on it. */                          \
  F(int, ze_win_drop, (int32_t win))                                                                                  \
  /* Attaches memory to a dynamic window. device is 1 if it is memory of a device. */                                 \
  F(int, ze_win_attach, (int32_t win, void *base, int64_t bytes, int32_t device))                                     \
  F(int, ze_win_detach, (int32_t win, void *base))                                                                    \
  /* Starts a one-sided operation, and copies the data to be sent. cell may be NULL; it is */                         \
  /* done when the results have arrived. *left is set to 0, or to the number of the part that */                      \
  /* could not be sent because too much is in flight to the target; the caller then calls */                          \
  /* ze_win_more until it is 0. */                                                                                    \
  F(int, ze_win_op, (int32_t win, const z_rma *op, z_cell *cell, uint64_t *left))                                     \
  F(int, ze_win_more, (int32_t win, uint64_t * left))                                                                 \
  /* Does an action of enum z_sync on a window. cell is done when the synchronization has */                          \
  /* completed. group has the ranks of n processes. */                                                                \
  F(int, ze_win_sync,                                                                                                 \
    (int32_t win, int32_t what, int32_t target, int32_t flag, const int32_t *group, int32_t n, z_cell *cell))         \
  /* Sets *over to 1 if the exposure epoch of a window has ended, otherwise to 0, as */                               \
  /* MPI_Win_test does. */                                                                                            \
  F(int, ze_win_test, (int32_t win, int32_t * over))                                                                  \
  /* Reports a native message of `bytes` bytes from this process to a virtual rank of this */                         \
  /* cluster, for zipper run --record. */                                                                             \
  F(void, ze_record, (int32_t rank, int64_t bytes))                                                                   \
  /* Reports that this process has received a native message from a virtual rank, for zipper */                       \
  /* run --record. */                                                                                                 \
  F(void, ze_record_taken, (int32_t rank))                                                                            \
  /* Reports that this process begins to wait for messages (begins = 1) or has stopped waiting */                     \
  /* (0), for zipper run --record. */                                                                                 \
  F(void, ze_record_wait, (int32_t begins))                                                                           \
  /* Opens a port at which this process can accept other jobs, and writes the port's name to */                       \
  /* `name`, which has room for `room` bytes. */                                                                      \
  F(int, ze_port_open, (char *name, int32_t room))                                                                    \
  F(int, ze_port_close, (const char *name))                                                                           \
  /* Connects this process to a process of another job at a port, in the background: waits */                         \
  /* there (accepts = 1) or connects to the job that waits there (0). One of the n processes */                       \
  /* with virtual ranks `world` calls it for all of them. When cell is done ze_result has the */                      \
  /* result, and *plan, of cell->bytes bytes, must be passed to ze_join by all of them. The */                        \
  /* caller frees *plan. */                                                                                           \
  F(int, ze_meet, (const char *port, int32_t accepts, const int32_t *world, int32_t n, z_cell *cell, void **plan))    \
  /* Joins the connection of a plan that ze_meet has made, in the background. *n is set to the */                     \
  /* number of its processes, of which the first *low are of the accepting side, and *numbers */                      \
  /* to their process numbers; the caller frees it. When cell is done cell->source is the */                          \
  /* link, or 0 if all processes are of this job. */                                                                  \
  F(int, ze_join,                                                                                                     \
    (const void *plan, int64_t bytes, int32_t accepts, z_cell *cell, int32_t *n, int32_t *low, int32_t **numbers))    \
  /* Publish the port under a name, look up the port of a name, and withdraw a name, the first */                     \
  /* two in the background. In ze_lookup `port` has room for Z_PORT_NAME bytes. */                                    \
  F(int, ze_publish, (const char *name, const char *port, z_cell *cell))                                              \
  F(int, ze_lookup, (const char *name, char *port, z_cell *cell))                                                     \
  F(int, ze_unpublish, (const char *name))                                                                            \
  /* Returns the result of the operation in the background to which a cell belongs (ze_meet, */                       \
  /* ze_join, ze_publish, ze_lookup), once the cell is done. It can be called once. */                                \
  F(int, ze_result, (z_cell * cell))                                                                                  \
  /* Ends a link that has no communicator. */                                                                         \
  F(void, ze_link_drop, (int32_t link))                                                                               \
  /* Returns the index of this process's cluster among the clusters whose processes a link */                         \
  /* connects. */                                                                                                     \
  F(int32_t, ze_cluster, (int32_t link))                                                                              \
  /* Sets the text of ze_error to the reason why the link of a communicator has failed, and */                        \
  /* returns a number other than 0. Returns 0 if the reason is unknown. */                                            \
  F(int, ze_comm_why, (int32_t comm))                                                                                 \
  /* Sets *n to the number of ranks of a communicator that are in lost clusters, and writes up */                     \
  /* to `room` of them to `ranks`: cluster by cluster, in the order in which this process has */                      \
  /* learned of the losses, so the list only grows at its end. */                                                     \
  F(int, ze_failed, (int32_t comm, int32_t * ranks, int32_t room, int32_t * n))                                       \
  /* Acknowledges the losses of the clusters whose ranks are all among the first n of */                              \
  /* ze_failed's list, so that receives from any source go on without them. Sets *acked to the */                     \
  /* number of ranks that are acknowledged now. */                                                                    \
  F(int, ze_ack_failed, (int32_t comm, int32_t n, int32_t * acked))                                                   \
  /* Revokes a communicator in all of its processes, in the background: the operations on it */                       \
  /* that no message has matched end with Z_ERR_REVOKED, also those that are started later. */                        \
  /* Does nothing if it is revoked already. */                                                                        \
  F(int, ze_revoke, (int32_t comm))                                                                                   \
  /* Makes the revocation of the communicator `leader` revoke another one too, in this process, */                    \
  /* at once if it is revoked already. All processes of the latter call this function. */                             \
  F(int, ze_follow, (int32_t comm, int32_t leader))                                                                   \
  /* Returns 1 if a communicator is revoked, otherwise 0. It takes no lock. */                                        \
  F(int, ze_revoked, (int32_t comm))                                                                                  \
  /* Starts an agreement, which all processes of a communicator that are not lost must start, */                      \
  /* with ze_shrink's in the same order. When cell is done cell->tag is the bitwise AND of */                         \
  /* their flags. cell->error is Z_OK, or Z_ERR_PROC_FAILED in all processes if one of them has */                    \
  /* not acknowledged all losses. */                                                                                  \
  F(int, ze_agree, (int32_t comm, int32_t flag, z_cell * cell))                                                       \
  /* Starts to agree on the processes of a communicator that are not lost. When cell is done */                       \
  /* ze_shrunk has the result, and cell->tag is the bitwise AND of the flags of all of them. */                       \
  F(int, ze_shrink, (int32_t comm, int32_t flag, z_cell * cell))                                                      \
  /* Sets *context to the context for the communicator of the processes that ze_shrink has */                         \
  /* agreed on, and *n to their number, and writes up to `room` of them to `ranks`, which are */                      \
  /* ranks of the old communicator in ascending order. All processes get the same result. It */                       \
  /* can be called as long as the old communicator exists. */                                                         \
  F(int, ze_shrunk, (int32_t comm, const z_cell *cell, uint64_t *context, int32_t *ranks, int32_t room, int32_t *n))  \
  /* Continues a receive whose cell is done with Z_ERR_PROC_FAILED_PENDING. The receive has kept */                   \
  /* its place in the order of posting. cell->done is reset, unless a message has been received */                    \
  /* meanwhile, or a loss is still not acknowledged. ze_cancel ends such a receive at once. */                        \
  F(int, ze_resume, (int32_t comm, z_cell * cell))

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
