/* Collectives on spanning communicators: the program's buffers as the engine wants them, contiguous
 * bytes. */
#ifndef ZIPPER_COLL_H
#define ZIPPER_COLL_H
#include "core/error.h"
#include "core/limits.h"
#include "core/privcomm.h"
#include "core/status.h"
#include "request/request.h"
#include "request/wait.h"
#include "type/type.h"

/* n blocks of a buffer, one for each rank, as the program describes them. */
typedef struct zblocks {
  void *buf;
  const int *counts; /* elements (zcoll_number); NULL: those of `many`, if that is NULL `count` in every block */
  const int64_t *many;
  int64_t count;
  const int *displs;         /* NULL: one block after the other. In elements, with `types` in bytes */
  const MPI_Aint *addresses; /* instead of displs: in bytes */
  const MPI_Datatype *types; /* NULL: `type` for every block */
  MPI_Datatype type;
  int same;     /* every block is the first */
  int together; /* one after the other in memory, whatever the types */
} zblocks;

/* Counts and displacements of big-count functions that do not fit an int. An array of int stands
 * for the array of 64-bit numbers, which is found here by its address (wrap/collargs.c). */
extern zmap z_wide;
static inline int64_t zcoll_number(const int *array, int i) {
  const int64_t *wide = zmap_count(&z_wide) ? zmap_get(&z_wide, z_key(array)) : NULL;
  return wide ? wide[i] : array[i];
}

/* Something to do with the results once they are there. */
typedef struct zlater zlater;

/* One collective on its way, from the program's call to the results in the program's buffers. */
typedef struct zcoll {
  zcomm *comm;
  z_coll args;
  int rc;          /* the first MPI error class met while preparing */
  int nonblocking; /* then the program may free types before the end */
  void *memory;    /* chain of what zcoll_grab gave */
  zlater *later;
  int (*combine)(struct zcoll *); /* done before the results go to the program; error class. NULL: nothing to do */
  void *operands;                 /* … its own */
  void *leaf;                     /* what leaffast.c has under way */
  int (*launch)(zreq *r);         /* other than by ze_coll; what it returns is in rc too when it fails */
  int reduces;                    /* 1: args.type and args.mpi_op are released at the end (type/use.h) */
} zcoll;

void *zcoll_grab(zcoll *j, int64_t bytes); /* zeroed, lives until the end; NULL sets rc */

/* The bytes of what is sent, and a place for the bytes of what is received. */
const void *zcoll_send(zcoll *j, const void *buf, int64_t count, MPI_Datatype type, int64_t *bytes);
void *zcoll_recv(zcoll *j, void *buf, int64_t count, MPI_Datatype type, int64_t *bytes);

/* The same for a buffer of n blocks, with counts and displacements in bytes from the result.
 * ZB_COPY: what is sent is also received into (alltoall in place). keep: the block of a ZB_RECV
 * buffer that this process sends from there (in place); -1: none. */
enum { ZB_SEND, ZB_COPY, ZB_RECV };
int64_t zcoll_offset(zcoll *j, const zblocks *b, int i); /* where block i begins, in bytes from b->buf on */
void *zcoll_blocks(zcoll *j, int how, const zblocks *b, int n, int keep, const int64_t **counts,
                   const int64_t **displs);

/* Buffers of reductions: elements laid out as the type. NULL: rc is set, or there are no elements.
 * The result has room for `room` elements, of which the first `results` go to the program at the
 * end (untouched: none of them). in_place: it begins with the program's `room` elements. */
const void *zcoll_operand(zcoll *j, const void *buf, int64_t count, MPI_Datatype type);
void *zcoll_result(zcoll *j, void *buf, int64_t room, int64_t results, MPI_Datatype type, int in_place, int untouched);
/* What all reductions have in common. op is the engine's (enum z_coll_op), mpi_op the program's.
 * Returns j->rc. */
int zcoll_reduction(zcoll *j, int op, int64_t count, MPI_Datatype type, MPI_Op mpi_op);

/* The same collectives over an intercommunicator (coll/inter.c); arguments as the program's. */
void zinter_bcast(zcoll *j, void *buf, int count, MPI_Datatype type, int root);
void zinter_gather(zcoll *j, const void *in, int count, MPI_Datatype type, const zblocks *to, int root);
void zinter_scatter(zcoll *j, const zblocks *from, void *out, int count, MPI_Datatype type, int root);
/* A block to each of the other group, one from each */
void zinter_exchange(zcoll *j, const zblocks *from, const zblocks *to);
void zinter_reduce(zcoll *j, const void *in, void *out, int64_t count, MPI_Datatype type, MPI_Op op, int root);
void zinter_allreduce(zcoll *j, const void *in, void *out, int64_t count, MPI_Datatype type, MPI_Op op);
void zinter_reduce_scatter(zcoll *j, const void *in, void *out, const int *counts, int64_t count, MPI_Datatype type,
                           MPI_Op op);

/* The end: results into the program's buffers, everything freed but j itself. An MPI error code. */
int zcoll_finish(zcoll *j);

/* Collectives start in the program's order. While a nonblocking duplication is under way (idup.c)
 * those started later wait at the communicator's gate: its native step must come before theirs in
 * every process. */
typedef struct zgate {
  pthread_mutex_t lock;
  int closed, launching;
  zreq *first, **end; /* waiting, linked by `next` */
} zgate;

/* The channel is what smallstage.c makes the tags of a communicator's messages from. Stages wait
 * here until it is known. */
typedef struct zchannel {
  int asked, asking; /* asking: request is under way, and number not known yet */
  int32_t number;    /* -1: there was none left */
  MPI_Request request;
  struct zsmall *first, *last;
  int passing_on; /* the stage started last has messages left to start */
} zchannel;

/* A collective in which this process may be a leaf, and what it then gives and gets
 * (leaffast.c). */
typedef struct zleaf {
  int known, op, may;
  int64_t key, give, get;
} zleaf;

/* What belongs to the collectives of a spanning communicator. */
typedef struct zcollstate {
  zattached base;
  zgate gate;
  zchannel channel;
  zleaf leaves[Z_LEAVES]; /* asked for lately */
  uint32_t skipped;       /* collectives done by leaffast.c since the last that the engine has done */
} zcollstate;

static inline zcollstate *zcollstate_of(const zcomm *c) { return (zcollstate *)c->coll; }
zattached *zcollstate_make(void); /* NULL: no memory */

/* Starts a collective in the engine. enum z_error. */
int zcoll_submit(zcomm *c, z_coll *args, z_cell *cell);

void zgate_close(zgate *g);
void zgate_open(zgate *g); /* launches those that wait, until one of them closes the gate again */

/* Does a small blocking collective that another process leads (leaffast.c). 1: it is over in this
 * process, or has failed (j->rc). 0: the engine has to do it. */
int zleaf_try(zcoll *j);
int zleaf_start(zreq *r); /* a nonblocking one. 1: it is under way */

/* One call of a collective: zcoll_begin makes a request with a zcoll, which the caller prepares.
 * zcoll_start starts it, zcoll_run also waits for it. */
zreq *zcoll_begin(zcomm *c, int nonblocking, const char *function);
static inline zcoll *zcoll_of(zreq *r) { return (zcoll *)r->extra; }
int zcoll_start(zreq *r, MPI_Request *request);
int zcoll_run(zreq *r);

/* Defines z_NAME and z_INAME, which share `prepare(zcoll *, ...)`. PARAMS is the list of parameters
 * in parentheses, without communicator and request; the same as arguments follow. On a communicator
 * that does not span the call is native. `inside` says by which form the blocking one is made
 * there; that is the same at all ranks, because not all of them may be idle. */
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

#define Z_BY_REQUEST(NAME, INAME, ...)                                   \
  do {                                                                   \
    MPI_Request request;                                                 \
    int failed = real.INAME(__VA_ARGS__, &request);                      \
    return failed ? failed : z_wait_native(&request, MPI_STATUS_IGNORE); \
  } while (0)

/* After a barrier nobody waits long in the blocking form. */
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

/* Collectives with a root. Between two groups Open MPI's nonblocking ones do not end if one of the
 * groups has several processes; the blocking ones do. */
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

/* The types that this thread has given in Fortran to MPI_Alltoallw or MPI_Ialltoallw on a spanning
 * communicator, until the call takes them; else NULL (wrap/fortran.c). */
extern _Thread_local struct zfortran_types { const MPI_Fint *send, *receive; } zfortran_types;
/* Where the program's request goes if a caller in Fortran is to be given another one; else NULL
 * (wrap/fortran.c). */
extern _Thread_local MPI_Request *zfortran_request;

/* Checks while preparing: rc is set when one fails. */
int zcoll_fail(zcoll *j, int class_);
int zcoll_check_count(zcoll *j, int64_t count);
int zcoll_check_root(zcoll *j, int root);

/* What is wrong with the arguments of a collective whose preparation ended with rc, in words. */
const char *zcoll_wrong(int rc);

/* Callbacks of the engine (native.c). */
int z_cb_coll(void *comm, const z_coll *args, uint64_t *token);
int z_cb_coll_test(uint64_t token);
int z_cb_reduce_local(const void *in, void *inout, int64_t count, uint64_t type, uint64_t op);
int zstages_moved(void); /* whether a native stage is over: one application thread, no other one in the engine */
#endif
