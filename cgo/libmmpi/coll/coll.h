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
#include "type/type.h"

/* A buffer of n blocks, one for each rank, as the program describes it. */
typedef struct zblocks {
  void *buf; /* the address of the buffer */
  /* The numbers of elements, read by zcoll_number. If NULL, the numbers are those of `many`; if
   * that is NULL too, every block has `count` elements. */
  const int *counts;
  const int64_t *many; /* the numbers of elements as 64-bit numbers */
  int64_t count;       /* the number of elements of every block */
  /* The displacements in elements, or in bytes if `types` is set. If NULL, the blocks are
   * consecutive. */
  const int *displs;
  const MPI_Aint *addresses; /* displacements in bytes, used instead of displs */
  const MPI_Datatype *types; /* the type of each block; NULL: `type` is that of all blocks */
  MPI_Datatype type;         /* the type of all blocks, if `types` is NULL */
  int same;                  /* 1: the first block is used for every rank */
  int together;              /* 1: the blocks must be consecutive in the result */
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

/* A copy to the program's buffer that is to be made once the results have arrived. */
typedef struct zlater zlater;

/* A collective in progress, from the program's call until the results are in the program's
 * buffers. */
typedef struct zcoll {
  zcomm *comm; /* the communicator */
  z_coll args; /* the arguments for the engine */
  /* The first MPI error class of the preparation, or MPI_SUCCESS. */
  int rc;
  int nonblocking; /* 1: the program may free types before the end */
  void *memory;    /* the list of blocks that zcoll_grab has allocated */
  zlater *later;   /* the list of copies to be made at the end, or NULL */
  /* Called before the results are copied to the program. Returns an error class. NULL: nothing is
   * to be done. */
  int (*combine)(struct zcoll *);
  void *operands; /* the data of `combine` */
  void *leaf;     /* the state of leaffast.c */
  /* Starts the collective instead of ze_coll. An error that it returns is in rc too. */
  int (*launch)(zreq *r);
  /* 1: args.type and args.mpi_op are released at the end (type/use.h). */
  int reduces;
} zcoll;

/* Allocates zeroed memory that lives until the end of the collective. Returns NULL after setting rc
 * if memory is exhausted. */
void *zcoll_grab(zcoll *j, int64_t bytes);

/* Returns the bytes of a buffer that is to be sent, packed if necessary, and sets *bytes to their
 * number. */
const void *zcoll_send(zcoll *j, const void *buf, int64_t count, MPI_Datatype type, int64_t *bytes);
/* Returns memory for the bytes to be received into a buffer, to which they are copied at the end if
 * necessary, and sets *bytes to their number. */
void *zcoll_recv(zcoll *j, void *buf, int64_t count, MPI_Datatype type, int64_t *bytes);

/* The use of a buffer of blocks: blocks are sent from it; blocks are sent from a copy of it,
 * because it is also received into (alltoall in place); blocks are received into it. */
enum { ZB_SEND, ZB_COPY, ZB_RECV };
/* Returns the offset in bytes of block i from b->buf. */
int64_t zcoll_offset(zcoll *j, const zblocks *b, int i);
/* Returns the memory for a buffer of n blocks that is used in the way `how` (ZB_SEND, …), and sets
 * *counts and *displs to the sizes and the offsets in that memory of the blocks, in bytes. `keep`
 * is the block of a ZB_RECV buffer that this process sends from there (in place), or -1. */
void *zcoll_blocks(zcoll *j, int how, const zblocks *b, int n, int keep, const int64_t **counts,
                   const int64_t **displs);

/* Returns the operand of a reduction, whose elements are laid out as the type, or NULL if rc is set
 * or there are no elements. */
const void *zcoll_operand(zcoll *j, const void *buf, int64_t count, MPI_Datatype type);
/* Returns the result buffer of a reduction, whose elements are laid out as the type, or NULL if rc
 * is set or there are no elements. The buffer has room for `room` elements, of which the first
 * `results` are copied to the program at the end (none if `untouched`). With in_place its initial
 * content is the program's `room` elements. */
void *zcoll_result(zcoll *j, void *buf, int64_t room, int64_t results, MPI_Datatype type, int in_place, int untouched);
/* Does the part of the preparation that is common to all reductions. op is the engine's (enum
 * z_coll_op), mpi_op the program's. Returns j->rc. */
int zcoll_reduction(zcoll *j, int op, int64_t count, MPI_Datatype type, MPI_Op mpi_op);

/* Prepare the same collectives over an intercommunicator (coll/inter.c), from the program's
 * arguments. */
void zinter_bcast(zcoll *j, void *buf, int count, MPI_Datatype type, int root);
void zinter_gather(zcoll *j, const void *in, int count, MPI_Datatype type, const zblocks *to, int root);
void zinter_scatter(zcoll *j, const zblocks *from, void *out, int count, MPI_Datatype type, int root);
/* Sends a block to each member of the other group, and receives one from each. */
void zinter_exchange(zcoll *j, const zblocks *from, const zblocks *to);
void zinter_reduce(zcoll *j, const void *in, void *out, int64_t count, MPI_Datatype type, MPI_Op op, int root);
void zinter_allreduce(zcoll *j, const void *in, void *out, int64_t count, MPI_Datatype type, MPI_Op op);
void zinter_reduce_scatter(zcoll *j, const void *in, void *out, const int *counts, int64_t count, MPI_Datatype type,
                           MPI_Op op);

/* Ends a collective: copies the results to the program's buffers and frees everything except j
 * itself. Returns an MPI error code. */
int zcoll_finish(zcoll *j);

/* The gate of a communicator. Collectives start in the program's order. While a nonblocking
 * duplication is in progress (idup.c), collectives that the program starts later wait at the gate,
 * because the native step of the duplication must come before theirs in every process. */
typedef struct zgate {
  pthread_mutex_t lock; /* held while the fields change */
  int closed;           /* 1 while collectives wait at the gate */
  int launching;        /* 1 while a thread starts the waiting collectives */
  zreq *first, **end;   /* the waiting requests, linked by `next` */
} zgate;

/* The channel, from which smallstage.c makes the tags of a communicator's messages. Stages wait
 * here until it is known. */
typedef struct zchannel {
  /* asked: the number has been requested. asking: `request` is pending, and the number not yet
   * known. */
  int asked, asking;
  int32_t number;              /* -1: no number was left */
  MPI_Request request;         /* the native broadcast of the number */
  struct zsmall *first, *last; /* the list of stages that have not started, in order */
  int passing_on;              /* 1: the stage started last has yet to start messages */
} zchannel;

/* A collective in which this process may be a leaf, and the bytes that it sends and receives then
 * (leaffast.c). */
typedef struct zleaf {
  int known;    /* 1 if this entry is used */
  int op;       /* enum z_coll_op */
  int may;      /* 1 if this process may be a leaf */
  int64_t key;  /* the arguments on which the answer depends */
  int64_t give; /* the number of bytes that this process sends */
  int64_t get;  /* the number of bytes that this process receives */
} zleaf;

/* The state of the collectives of a spanning communicator. */
typedef struct zcollstate {
  zattached base;
  zgate gate;
  zchannel channel;
  zleaf leaves[Z_LEAVES]; /* the latest answers of ze_coll_leaf */
  /* The number of collectives that leaffast.c has done since the engine's last one. */
  uint32_t skipped;
} zcollstate;

/* Returns the state of the collectives of c. */
static inline zcollstate *zcollstate_of(const zcomm *c) { return (zcollstate *)c->coll; }
zattached *zcollstate_make(void); /* returns NULL if memory is exhausted */

/* Starts a collective in the engine. Returns an enum z_error. */
int zcoll_submit(zcomm *c, z_coll *args, z_cell *cell);

void zgate_close(zgate *g); /* closes the gate: collectives that start later wait */
/* Starts the waiting collectives in order, until one of them closes the gate again. */
void zgate_open(zgate *g);

/* Does a small blocking collective that another process leads (leaffast.c). Returns 1 if it has
 * completed or failed (j->rc) in this process, or 0 if the engine has to do it. */
int zleaf_try(zcoll *j);
/* Starts a small nonblocking collective that another process leads. Returns 1 if the collective has
 * been started, or 0 if the engine has to do it. */
int zleaf_start(zreq *r);

/* Allocates a request with a zcoll for a call of a collective. The caller prepares the zcoll and
 * then calls zcoll_start or zcoll_run. */
zreq *zcoll_begin(zcomm *c, int nonblocking, const char *function);
/* Returns the zcoll of a collective's request. */
static inline zcoll *zcoll_of(zreq *r) { return (zcoll *)r->extra; }
/* Starts a nonblocking collective that has been prepared, and sets *request to its handle. Returns
 * the code for the program. */
int zcoll_start(zreq *r, MPI_Request *request);
/* Starts a blocking collective that has been prepared, waits for it, and frees it. Returns the code
 * for the program. */
int zcoll_run(zreq *r);

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

/* Makes a blocking call by the nonblocking function and a wait, during which the engine serves
 * others. */
#define Z_BY_REQUEST(NAME, INAME, ...)                                   \
  do {                                                                   \
    MPI_Request request;                                                 \
    int failed = real.INAME(__VA_ARGS__, &request);                      \
    return failed ? failed : z_wait_native(&request, MPI_STATUS_IGNORE); \
  } while (0)

/* Calls the blocking form after a barrier, after which no process waits long in it. */
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

/* Collectives with a root. On intercommunicators Open MPI's nonblocking ones never complete if one
 * of the groups has several processes; the blocking ones do. */
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
/* The place for the program's request if the Fortran caller is to get another request, otherwise
 * NULL (wrap/fortran.c). */
extern _Thread_local MPI_Request *zfortran_request;

/* Checks of the preparation: they set j->rc and return it. */
int zcoll_fail(zcoll *j, int class_);
int zcoll_check_count(zcoll *j, int64_t count);
int zcoll_check_root(zcoll *j, int root);

/* Describes the error of a collective whose preparation ended with rc. */
const char *zcoll_wrong(int rc);

/* Callbacks of the engine (native.c). */
int z_cb_coll(void *comm, const z_coll *args, uint64_t *token);
int z_cb_coll_test(uint64_t token);
int z_cb_reduce_local(const void *in, void *inout, int64_t count, uint64_t type, uint64_t op);
/* Whether a native stage has completed. Called by the only application thread, while no thread is
 * in the engine. */
int zstages_moved(void);
#endif
