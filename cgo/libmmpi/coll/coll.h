/* Collectives on spanning communicators: the conversion of the program's buffers to the contiguous
 * bytes that the engine handles. */
#ifndef ZIPPER_COLL_H
#define ZIPPER_COLL_H
#include "core/error.h"
#include "core/limits.h"
#include "core/privcomm.h"
#include "core/status.h"
#include "request/request.h"
#include "request/wait.h"
#include "type/exchange.h"
#include "type/type.h"

/* A buffer of n blocks, one for each rank, as the program describes it. */
typedef struct zblocks {
  void *buf; /* the address of the buffer, as the program has passed it */
  /* The numbers of elements, read by zcoll_number. If NULL, the numbers are those of `many`; if
   * that is NULL too, every block has `count` elements. */
  const int *counts;
  /* the number of elements of each block, if the numbers are 64 bits long, otherwise NULL */
  const int64_t *many;
  /* the number of elements of every block, if counts and many are NULL */
  int64_t count;
  /* The displacements in elements, or in bytes if `types` is set. If NULL, the blocks are
   * consecutive. */
  const int *displs;
  /* the displacement of each block in bytes, used in place of displs, or NULL */
  const MPI_Aint *addresses;
  /* the datatype of each block, or NULL if all blocks have the type `type` */
  const MPI_Datatype *types;
  MPI_Datatype type; /* the type of all blocks, if `types` is NULL */
  /* 1 if every rank gets the first block, otherwise 0 */
  int same;
  /* 1 if the blocks must be consecutive in the memory for the engine, otherwise 0 */
  int together;
} zblocks;

/* The map from the address of an array of int to the array of 64-bit numbers that it stands for:
 * the counts or displacements of a big-count function, some of which do not fit an int
 * (wrap/collargs.c). */
extern zmap z_wide;
/* Returns number i of an array of int or, if the array is in z_wide, of its array of 64-bit
 * numbers. */
static inline int64_t zcoll_number(const int *array, int i) {
  const int64_t *wide = zmap_count(&z_wide) ? zmap_get(&z_wide, z_key(array)) : NULL;
  return wide ? wide[i] : array[i];
}

/* A copy to the program's buffer that is to be made once the results of a collective have
 * arrived. */
typedef struct zlater zlater;

/* A collective in progress, from the program's call until the results are in the program's
 * buffers. */
typedef struct zcoll {
  zcomm *comm; /* the communicator of the collective */
  z_coll args; /* the arguments that ze_coll gets */
  /* The first MPI error class of the preparation, or MPI_SUCCESS. */
  int rc;
  /* 1 for a nonblocking call, after which the program may free types before the collective ends */
  int nonblocking;
  void *memory;  /* the list of the memory blocks that zcoll_grab has allocated */
  zlater *later; /* the list of copies to the program's buffers to be made at the end, or NULL */
  /* Combines operands that have arrived into the result, before the results are copied to the
   * program's buffers, and returns an MPI error class. NULL: the collective has no such step. */
  int (*combine)(struct zcoll *);
  void *operands; /* the argument of `combine`: the operands that have arrived (inter.c), or NULL */
  void *leaf;     /* the messages that leaffast.c has started for this collective, or NULL */
  /* Starts the collective of request r in place of ze_coll, and returns an MPI error class, which
   * it also stores in rc. NULL: ze_coll starts the collective. */
  int (*launch)(zreq *r);
  /* 1 for a nonblocking reduction, whose datatype (args.type) and operator (args.mpi_op) are
   * released at its end (type/use.h). */
  int reduces;
} zcoll;

/* Allocates `bytes` bytes of zeroed memory that is freed at the end of the collective. Returns NULL
 * after setting j->rc if memory is exhausted. */
void *zcoll_grab(zcoll *j, int64_t bytes);

/* Returns the address of the data of a buffer that is to be sent, which is buf or a packed copy
 * that lives as long as the collective, and sets *bytes to the size of the data. If the arguments
 * are wrong it sets j->rc, and the result must not be used. */
const void *zcoll_send(zcoll *j, const void *buf, int64_t count, MPI_Datatype type, int64_t *bytes);
/* Returns the memory into which data for a buffer are to be received: buf, or other memory from
 * which zcoll_finish unpacks the data into buf. Sets *bytes to the size of the data. If the
 * arguments are wrong it sets j->rc, and the result must not be used. */
void *zcoll_recv(zcoll *j, void *buf, int64_t count, MPI_Datatype type, int64_t *bytes);

/* The use of a buffer of blocks: blocks are sent from it; blocks are sent from a copy of it,
 * because it is also received into (alltoall in place); blocks are received into it. */
enum { ZB_SEND, ZB_COPY, ZB_RECV };
/* Returns the offset in bytes of block i of b from the address b->buf. */
int64_t zcoll_offset(zcoll *j, const zblocks *b, int i);
/* Returns the memory for a buffer of n blocks that is used in the way `how` (ZB_SEND, …): the
 * buffer itself, or memory into which the blocks are packed. Sets *counts to the sizes of the
 * blocks and *displs to their offsets in that memory, in bytes. `keep` is the block of a ZB_RECV
 * buffer that this process sends from there (in place), or -1: it is packed into the memory, and
 * not unpacked from it at the end. The memory and the arrays are valid until the end of the
 * collective. On errors j->rc is set, and the results must not be used. */
void *zcoll_blocks(zcoll *j, int how, const zblocks *b, int n, int keep, const int64_t **counts,
                   const int64_t **displs);

/* Returns the address of the first byte of a reduction's operand of `count` elements: buf, or a
 * copy that is laid out as the type. If the arguments are wrong it sets j->rc, and the result must
 * not be used. */
const void *zcoll_operand(zcoll *j, const void *buf, int64_t count, MPI_Datatype type);
/* Returns the address of the first byte of a reduction's result, whose elements are laid out as the
 * type: buf if the type is contiguous, otherwise other memory. That has room for `room` elements,
 * of which the first `results` are copied to buf at the end (none if `untouched`); with in_place
 * its initial content is the `room` elements of buf. If the arguments are wrong it sets j->rc, and
 * the result must not be used. */
void *zcoll_result(zcoll *j, void *buf, int64_t room, int64_t results, MPI_Datatype type, int in_place, int untouched);
/* Does the part of the preparation that is common to all reductions: checks the arguments and sets
 * the fields of j->args for the operator, the type and the count. op is the kind of reduction (enum
 * z_coll_op), mpi_op the program's operator. Returns j->rc. */
int zcoll_reduction(zcoll *j, int op, int64_t count, MPI_Datatype type, MPI_Op mpi_op);

/* Each of the functions zinter_… sets j->args to the arguments for the engine of one collective
 * over an intercommunicator, from the arguments of the program's call (coll/inter.c). If these are
 * wrong it sets j->rc. */
void zinter_bcast(zcoll *j, void *buf, int count, MPI_Datatype type, int root);
void zinter_gather(zcoll *j, const void *in, int count, MPI_Datatype type, const zblocks *to, int root);
void zinter_scatter(zcoll *j, const zblocks *from, void *out, int count, MPI_Datatype type, int root);
/* Prepares the exchange in which this process sends a block of `from` to each member of the other
 * group and receives a block of `to` from each, for allgather and the alltoall functions. */
void zinter_exchange(zcoll *j, const zblocks *from, const zblocks *to);
void zinter_reduce(zcoll *j, const void *in, void *out, int64_t count, MPI_Datatype type, MPI_Op op, int root);
void zinter_allreduce(zcoll *j, const void *in, void *out, int64_t count, MPI_Datatype type, MPI_Op op);
void zinter_reduce_scatter(zcoll *j, const void *in, void *out, const int *counts, int64_t count, MPI_Datatype type,
                           MPI_Op op);

/* Ends a collective j: copies the results to the program's buffers, and frees everything that j
 * refers to but not j itself. Returns an MPI error code. */
int zcoll_finish(zcoll *j);

/* The gate of a communicator. Collectives start in the program's order. While a nonblocking
 * duplication is in progress (idup.c), collectives that the program starts later wait at the gate,
 * because the native step of the duplication must come before theirs in every process. */
typedef struct zgate {
  pthread_mutex_t lock; /* held while the fields change */
  int closed;           /* 1 while collectives wait at the gate */
  int launching;        /* 1 while a thread starts the waiting collectives */
  /* the first waiting request, and the place for the next one: the `next` of the last */
  zreq *first, **end;
} zgate;

/* The channel of a communicator: the number from which smallstage.c makes the tags of the
 * communicator's messages, so that they match no messages of another communicator. Stages of
 * collectives wait in the list until the number is known. */
typedef struct zchannel {
  /* asked is 1 once the number has been requested; asking is 1 while `request` is in progress, and
   * the number is therefore not known yet. */
  int asked, asking;
  /* the channel, or -1 if none was left, in which case collectives are native */
  int32_t number;
  /* the native broadcast by which local rank 0 tells the number to the others */
  MPI_Request request;
  /* the list of the stages that have not started, in the order in which they must start */
  struct zsmall *first, *last;
  /* 1 while the stage that was started last has messages that it starts only after it has received
   * others */
  int passing_on;
} zchannel;

/* A cached answer of ze_coll_leaf: whether this process may be a leaf in a collective (a process
 * that only exchanges data with local rank 0 of its cluster), and the bytes that it sends and
 * receives then (leaffast.c). */
typedef struct zleaf {
  int known; /* 1 if this entry holds an answer */
  int op;    /* the kind of the collective, enum z_coll_op */
  int may;   /* 1 if this process may be a leaf in the collective */
  /* the number that stands for the arguments on which the answer depends */
  int64_t key;
  /* the number of bytes that this process sends to local rank 0, or -1 if it sends no message */
  int64_t give;
  /* the number of bytes that this process receives, or -1 if it receives no message */
  int64_t get;
} zleaf;

/* The state that the collectives on one spanning communicator share (zcomm.coll). */
typedef struct zcollstate {
  zattached base;
  zgate gate;
  zchannel channel;
  /* the cached answers of ze_coll_leaf, at indices that depend on the arguments */
  zleaf leaves[Z_LEAVES];
  /* The number of collectives that leaffast.c has done on the communicator since the last
   * collective that the engine has done there. */
  uint32_t skipped;
} zcollstate;

/* Returns the state that the collectives on c share. */
static inline zcollstate *zcollstate_of(const zcomm *c) { return (zcollstate *)c->coll; }
/* allocates the state of a new communicator's collectives; returns NULL if memory is exhausted */
zattached *zcollstate_make(void);

/* Starts a collective of c in the engine by ze_coll, after setting args->skipped. *cell is done
 * when the collective has completed. Returns an enum z_error. */
int zcoll_submit(zcomm *c, z_coll *args, z_cell *cell);

void zgate_close(zgate *g); /* closes the gate: collectives that are started later wait */
/* Opens the gate and starts the collectives that wait at it in order, until one of them closes the
 * gate again. */
void zgate_open(zgate *g);

/* Does a small blocking collective by messages to and from local rank 0, without the engine, if
 * this process is a leaf in it (leaffast.c). Returns 1 if the collective has completed or failed
 * (j->rc), or 0 if the engine has to do it. */
int zleaf_try(zcoll *j);
/* Starts a small nonblocking collective by messages to and from local rank 0, without the engine,
 * if this process is a leaf in it (leaffast.c). Returns 1 if the collective has been started, or 0
 * if the engine has to do it. */
int zleaf_start(zreq *r);

/* Allocates a request with a zcoll for one call of a collective on c, for the MPI function of this
 * name. The caller fills in the zcoll and then calls zcoll_start or zcoll_run. */
zreq *zcoll_begin(zcomm *c, int nonblocking, const char *function);
/* Returns the zcoll of a request that zcoll_begin has made. */
static inline zcoll *zcoll_of(zreq *r) { return (zcoll *)r->extra; }
/* Starts the nonblocking collective of r, whose zcoll has been filled in, and sets *request to its
 * handle. Returns the code that the MPI function must return; after an error r has been freed. */
int zcoll_start(zreq *r, MPI_Request *request);
/* Starts the blocking collective of r, whose zcoll has been filled in, waits for it, and frees r.
 * Returns the code that the MPI function must return. */
int zcoll_run(zreq *r);
/* Starts the collective of r by ze_coll. Returns an MPI error class, which it also stores in the
 * zcoll, or MPI_SUCCESS; after success another thread may already have completed and freed r. */
int zcoll_by_engine(zreq *r);

/* Defines z_NAME and z_INAME, which share `prepare(zcoll *, ...)`. PARAMS is the list of parameters
 * in parentheses, without communicator and request; the list of the same arguments follows. On a
 * communicator that does not span clusters the call is native. `inside` is the form in which the
 * blocking call is made there. All ranks use the same form, because the engine may be idle in some
 * of them only. */
#define Z_LIST(...) __VA_ARGS__
#define Z_COLLECTIVE_AS(inside, NAME, INAME, prepare, PARAMS, ...)    \
  int z_##NAME(Z_LIST PARAMS, MPI_Comm comm) {                        \
    zcomm *c = zcomm_find(comm);                                      \
    if (!c) inside(NAME, INAME, __VA_ARGS__, comm);                   \
    zreq *r = zcoll_begin(c, 0, "MPI_" #NAME);                        \
    prepare(zcoll_of(r), __VA_ARGS__);                                \
    return zcoll_run(r);                                              \
  }                                                                   \
  int z_##INAME(Z_LIST PARAMS, MPI_Comm comm, MPI_Request *request) { \
    zcomm *c = zcomm_find(comm);                                      \
    if (!c) return real.INAME(__VA_ARGS__, comm, request);            \
    zreq *r = zcoll_begin(c, 1, "MPI_" #INAME);                       \
    prepare(zcoll_of(r), __VA_ARGS__);                                \
    return zcoll_start(r, request);                                   \
  }

/* The body of a blocking collective inside one cluster, which calls the native nonblocking function
 * INAME and waits for its request. During the wait the engine serves other processes. */
#define Z_BY_REQUEST(NAME, INAME, ...)                                   \
  do {                                                                   \
    MPI_Request request;                                                 \
    int failed = real.INAME(__VA_ARGS__, &request);                      \
    return failed ? failed : z_wait_native(&request, MPI_STATUS_IGNORE); \
  } while (0)

/* The body of a blocking collective inside one cluster, which calls the native blocking function
 * NAME after a barrier, so that no process waits long inside NAME. */
#define Z_BY_BARRIER(NAME, INAME, ...)   \
  do {                                   \
    int failed = z_native_barrier(comm); \
    if (!failed) {                       \
      z_enter();                         \
      failed = real.NAME(__VA_ARGS__);   \
      z_leave();                         \
    }                                    \
    return failed;                       \
  } while (0)

#define Z_COLLECTIVE(...) Z_COLLECTIVE_AS(Z_BY_REQUEST, __VA_ARGS__)

/* Returns 1 if comm is an intercommunicator of Open MPI, whose nonblocking collectives with a root
 * never complete there if one of the groups has several processes; the blocking ones do. */
static inline int zcoll_between(MPI_Comm comm) {
  int inter = 0;
  return z_on_open_mpi() && !real.Comm_test_inter(comm, &inter) && inter;
}
#define Z_ROOTED_INSIDE(NAME, INAME, ...)                            \
  do {                                                               \
    if (zcoll_between(comm)) Z_BY_BARRIER(NAME, INAME, __VA_ARGS__); \
    Z_BY_REQUEST(NAME, INAME, __VA_ARGS__);                          \
  } while (0)
#define Z_ROOTED(...) Z_COLLECTIVE_AS(Z_ROOTED_INSIDE, __VA_ARGS__)

/* The types that this thread has passed in Fortran to MPI_Alltoallw or MPI_Ialltoallw on a spanning
 * communicator, until the call takes them, otherwise NULL (wrap/fortran.c). */
extern _Thread_local struct zfortran_types { const MPI_Fint *send, *receive; } zfortran_types;
/* The address of the program's variable for its request, if this thread's call comes from Fortran
 * and must return a native request to Open MPI's Fortran function instead; otherwise NULL
 * (wrap/fortran.c). */
extern _Thread_local MPI_Request *zfortran_request;

/* Set j->rc to an error class, unless it holds one already, and return j->rc. zcoll_check_count and
 * zcoll_check_root do so only if the count is negative or the root is no rank. */
int zcoll_fail(zcoll *j, int class_);
int zcoll_check_count(zcoll *j, int64_t count);
int zcoll_check_root(zcoll *j, int root);

/* Returns a text for the user about the error class rc with which the preparation of a collective
 * ended. */
const char *zcoll_wrong(int rc);

/* The functions of z_native for collectives inside a cluster, which the engine calls; abi.h
 * describes them. */
int z_cb_coll(void *comm, const z_coll *args, uint64_t *token);
int z_cb_coll_test(uint64_t token);
int z_cb_reduce_local(const void *in, void *inout, int64_t count, uint64_t type, uint64_t op);
/* Tests the native collectives that the engine has started, and returns whether one has completed
 * since the last test. The only thread that calls MPI calls this function, outside of the
 * engine. */
int zstages_moved(void);
#endif
