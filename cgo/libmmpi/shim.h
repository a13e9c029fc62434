/* What the files of the shim share. The shim is compiled once for each MPI library.
 *
 * Owners. shim: shim.h map.[ch] init.c own.c p2p.c bsend.c persistent.c probe.c request.c complete.c status.c progress.c errors.c, ../mpi/gen, policy/shim.txt
 *         windows: win*.[ch], policy/windows.txt
 *         comms: type.[ch] comm.c group.[ch] coll*.[ch] attr.c topo.c, policy/comms.txt
 *
 * Rules. Native MPI is called through `real` only, never by name (our own symbols would answer). A function z_X has the
 * signature of MPI_X, is named `own` in a policy file and called by the generated wrapper when the job spans clusters; it
 * handles communicators that do not span too. Memory of an operation in flight is not moved. Names that start with
 * z_ or with z and a thing (zcomm_, zreq_, ztype_, zmap_) are the shim's; ze_ is the engine.
 */
#ifndef ZIPPER_SHIM_H
#define ZIPPER_SHIM_H
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include "abi.h"
#include "map.h"
#include "real.h" /* generated: struct z_real with one pointer for each function of this mpi.h, Z_HAVE_X, prototypes of z_X */
#include "type.h"

#pragma GCC visibility push(hidden) /* of what is only declared, too: so its address is known when the library is linked */

/* ---- state of the process ---- */
extern struct z_real real;          /* the native functions (dlsym RTLD_NEXT "PMPI_X"), filled when the library is loaded */
extern z_engine z_eng;              /* the engine's functions: z_eng.ze_isend(…) */
extern z_world z_layout;            /* size, rank, clusters, offset, tag_ub, order */
extern MPI_Comm z_private, z_self;  /* dups of the native world and of MPI_COMM_SELF for the shim's own traffic (own.c) */
extern int z_on;                    /* 1: this process is in a job of more than one cluster. 0: everything is passed through */
extern int z_threads;               /* 1: MPI_THREAD_MULTIPLE was granted */
extern _Thread_local unsigned z_looks; /* this thread's tests of native requests that were not over: each has driven native MPI */
extern volatile int32_t z_busy;     /* the engine's: enum z_activity */
extern _Thread_local int z_inside;  /* > 0: this thread is in a native call whose internals may come through our symbols */

/* Locks cost nothing below MPI_THREAD_MULTIPLE. */
static inline void z_lock(pthread_mutex_t *m) { if (z_threads) pthread_mutex_lock(m); }
static inline void z_unlock(pthread_mutex_t *m) { if (z_threads) pthread_mutex_unlock(m); }

extern int32_t z_pending;           /* operations of ours that only our own steps move on (idup.c) */

/* Whether this thread may block inside native MPI (DESIGN: the engine is idle). With MPI_THREAD_MULTIPLE another thread could
 * end the idleness meanwhile, so never. */
static inline int z_may_block(void) { return !z_busy && !z_threads && !z_pending; }

/* A native call whose internals may come back through our symbols with handles that are not what they look like:
 * z_enter(); rc = real.X(…); z_leave(); */
static inline void z_enter(void) { z_inside++; }
static inline void z_leave(void) { z_inside--; }

/* ---- native communicators of our own (own.c) ---- */
int zown_start(void); /* makes z_private and z_self. MPI error code */
void zown_stop(void);
int zown_dup(MPI_Comm from, MPI_Comm *out); /* MPI error code */
void zown_keep_progressing(void);           /* before the program frees a communicator of the native library */

/* ---- spanning communicators (comm.c) ---- */
typedef struct zcomm {
  MPI_Comm native;        /* the local part; its handle is the user's handle */
  uint64_t context;
  int32_t id;             /* the engine's */
  int32_t size, rank;
  int32_t native_size, native_rank;
  int32_t *world;         /* [size] rank → virtual world rank */
  int32_t *native_of;     /* [size] rank → rank in the local part, or Z_REMOTE */
  int32_t *rank_of;       /* [native_size] the other way */
  /* An intercommunicator has the ranks of both its groups, one group after the other. What the program calls rank p of the other
   * group, the peers of point to point, is rank base + p. In an intracommunicator all are peers. */
  int32_t inter;          /* 1: it is one */
  int32_t base, peers;    /* rank of the first peer; how many there are */
  int32_t refs;           /* the user's handle, and each operation or message in flight */
  int32_t freed;          /* the user has freed it: native free waits for the last reference */
  void *extra;            /* comms's own */
} zcomm;

/* The rank of a peer; MPI_PROC_NULL and MPI_ANY_SOURCE stay. */
static inline int zcomm_at(const zcomm *c, int peer) { return peer < 0 ? peer : c->base + peer; }
/* The process's own group: all, or the other half of an intercommunicator. */
static inline int zcomm_first(const zcomm *c) { return c->inter && !c->base ? c->peers : 0; }
static inline int zcomm_members(const zcomm *c) { return c->inter ? c->size - c->peers : c->size; }

extern zmap z_comms;    /* native handle → zcomm; only spanning ones */
extern zcomm *z_whole;  /* that of MPI_COMM_WORLD, which most calls are on: no hash in their way. NULL: not started, or over */

/* The spanning communicator of a handle, or NULL: not spanning (or no communicator at all: native MPI will say so). */
zcomm *zcomm_find_other(MPI_Comm comm); /* of any but MPI_COMM_WORLD: out of the way of most calls */
static inline zcomm *zcomm_find(MPI_Comm comm) { return comm == MPI_COMM_WORLD ? z_whole : zcomm_find_other(comm); }

static inline zcomm *zcomm_retain(zcomm *c) {
  __atomic_add_fetch(&c->refs, 1, __ATOMIC_RELAXED);
  return c;
}
void zcomm_destroy(zcomm *c);  /* refs are 0: drop it in the engine, free the native communicator and c */
static inline void zcomm_release(zcomm *c) {
  if (!__atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL)) zcomm_destroy(c);
}

void zwin_doubt(void), zfile_doubt(void); /* say on standard error what in the user's variables for windows and files is not understood */
int zcomm_start(void);         /* after ze_start: makes MPI_COMM_WORLD spanning (context 0xFFFFFFFF00000000). MPI error code */
void zcomm_stop(void);         /* before native finalize */

/* group.h: the native group with the same members, to be freed unless MPI_GROUP_EMPTY; MPI_ERR_GROUP if one is in another cluster. */
int zgroup_native(MPI_Group group, MPI_Group *native);

/* ---- errors (errors.c) ---- */
/* Raises an error of a class on a communicator (NULL: MPI_COMM_WORLD) through its error handler. function: "MPI_Send".
 * Returns the code that the MPI function is to return. */
int z_raise(zcomm *c, int class_, const char *function, const char *format, ...) __attribute__((format(printf, 4, 5)));
int z_raise_on(MPI_Comm comm, int class_, const char *function, const char *format, ...) __attribute__((format(printf, 4, 5)));
int z_raise_file(MPI_File file, int class_, const char *function, const char *text); /* MPI_FILE_NULL: the handler of no file */
int z_unsupported(MPI_Comm comm, const char *function);      /* …on a communicator that spans clusters */
int z_error_class(int z_error);                              /* enum z_error → native class */
int z_raise_engine(zcomm *c, int z_error, const char *function); /* … with the text of ze_error() */

/* ---- waiting (progress.c) ---- */
/* Moves what can be moved, natively too, until over(arg) is not 0. The only wait loop; never blocks natively. */
void z_wait(int (*over)(void *), void *arg);
void z_wait_links(int (*over)(void *), void *arg); /* … for a message that the engine was not asked for: a probe */
void z_wait_cell(z_cell *cell);
int z_wait_native(MPI_Request *request, MPI_Status *status); /* a native request; MPI error code, not raised by us */
int z_wait_stage(MPI_Request *request);                       /* of a collective, a receive that may take long: spins, then sleeps */
int z_wait_for_call(MPI_Comm comm, MPI_Request *request, MPI_Status *status); /* the same for a blocking call on comm, where errors are raised */
int z_wait_natives(int n, MPI_Request requests[], MPI_Status statuses[]);
int z_native_barrier(MPI_Comm comm); /* before a native call without an I-form that blocks: all of comm are there, and meanwhile we served them */
void z_poll_start(int native_size);  /* of the native world. Reads how to wait from the environment; before the first wait */
void z_poll(void);                   /* once, never blocking */
void z_poll_if_busy(void);           /* … unless only native MPI has anything to do */
extern int z_native_yields;          /* 1: each turn of native progress that finds nothing gives the core away */

/* ---- requests (request.c) ---- */
enum zreq_kind { ZREQ_SEND, ZREQ_RECV, ZREQ_COLL, ZREQ_PERSISTENT };

/* A request of the shim behind a native placeholder handle. */
typedef struct zreq {
  z_cell cell;             /* cell.owner = this */
  MPI_Request handle;      /* the placeholder that the user holds; MPI_REQUEST_NULL if the user has none */
  zcomm *comm;             /* referenced */
  int32_t kind;
  int32_t finished;        /* zreq_finish has run; status and class_ hold what it found */
  int32_t class_;          /* error class */
  int32_t raised;          /* native MPI has raised the error already */
  int32_t bsend;           /* a buffered send: counts against the attached buffer */
  /* What the program gave. */
  void *buf;
  int64_t count;
  MPI_Datatype type;       /* own dup, or predefined */
  int32_t type_owned;
  int32_t peer, tag;
  int64_t element;         /* bytes of data in one element of type */
  void *packed;            /* packed copy of buf; NULL: none */
  /* The native operation that does the work (local peer, or started by the engine: imrecv, irecv); is_native stays set
   * when it is over and status is its status, with the source translated. */
  MPI_Request native;
  int32_t is_native;
  MPI_Status status;
  const char *function;    /* "MPI_Irecv", for errors */
  /* Collectives: moves a multi-stage operation on and returns 1 when it is over; NULL: over when cell.done. Called by a
   * thread of the program, one at a time. */
  int (*poll)(struct zreq *);
  /* After it is over, once: copies results to the user, frees extra; error class or MPI_SUCCESS. NULL: nothing to do. */
  int (*finish)(struct zreq *);
  void *extra;
  struct zreq *inner;      /* persistent: the operation started last, NULL = inactive */
  struct zreq *next;       /* lists: free objects, released requests */
} zreq;

extern zmap z_requests; /* placeholder handle → zreq */
extern zmap z_receives; /* native receive on a spanning communicator → zcomm (referenced): its status needs translation */

/* The shim's request behind a handle, or NULL: a native one. */
static inline zreq *zreq_find(MPI_Request handle) { return zmap_count(&z_requests) ? (zreq *)zmap_get(&z_requests, z_key(handle)) : NULL; }
/* Takes the entry of a native receive out; NULL: there is none. The reference is the caller's. */
static inline zcomm *z_receives_take(MPI_Request handle) { return zmap_count(&z_receives) ? (zcomm *)zmap_remove(&z_receives, z_key(handle)) : NULL; }

/* A fresh request on c (takes a reference), with a placeholder handle for the user. Fields not named are 0. */
zreq *zreq_new(zcomm *c, int kind, const char *function);
/* … without a handle, for blocking calls; z_wait_cell, then zreq_finish, then zreq_free. */
zreq *zreq_new_blocking(zcomm *c, int kind, const char *function);
int zreq_over(zreq *r);                       /* polls this request once */
int zreq_finish(zreq *r, MPI_Status *status); /* it is over: results and status to the user; error class. Again: the same */
int zreq_raise(zreq *r);                      /* raises the error that zreq_finish found, if any; the code to return */
int zreq_complete(zreq *r, MPI_Status *status); /* waits for a blocking call's request, finishes, raises, frees; the code to return */
int zreq_cancel(zreq *r);                     /* tries to; how it went is in the status when it is over. MPI error code, raised */
void zreq_withdraw(zreq *r);                  /* cancels it, waits for its end, which may still be its message, and frees it. No error is raised for that */
void zreq_release(zreq *r);                   /* the user has let it go: it is finished and freed when it is over */
void zreq_reap(void);                         /* … that happens here */
void zreq_finish_released(void);              /* waits for all of them */
int64_t zreq_bsends(int64_t *bytes);          /* released buffered sends that are not over; *bytes: their sizes */
void zreq_stop(void);                         /* frees the placeholders */
void zreq_free(zreq *r);                      /* gives back handle, type, packed copy, reference and object */
/* Keeps a type alive: r->type = type or a dup of it (the program may free its own at once). */
void zreq_hold_type(zreq *r, MPI_Datatype type);

/* ---- statuses (status.c) ---- */
void z_status_set(MPI_Status *status, int source, int tag, int error, int64_t bytes, int cancelled); /* status may be MPI_STATUS_IGNORE */
void z_status_empty(MPI_Status *status);
void z_status_translate(const zcomm *c, MPI_Status *status); /* native MPI_SOURCE → peer of c */
void z_status_copy(MPI_Status *to, const MPI_Status *from); /* all but MPI_ERROR; to may be MPI_STATUS_IGNORE */
int64_t z_status_bytes(const MPI_Status *status);

/* ---- native callbacks of the engine ---- */
int z_cb_improbe(void *comm, int32_t native_source, int32_t tag, z_probe *out);      /* probe.c */
int z_cb_iprobe(void *comm, int32_t native_source, int32_t tag, z_probe *out);       /* probe.c */
int z_cb_imrecv(z_cell *cell, uint64_t message);                                     /* p2p.c */
int z_cb_irecv(z_cell *cell);                                                        /* p2p.c */
int z_cb_test(z_cell *cell);                                                         /* p2p.c */
int z_cb_cancel(z_cell *cell);                                                       /* p2p.c */
int z_cb_coll(void *comm, const z_coll *args, uint64_t *token);                      /* coll.c */
int z_cb_coll_test(uint64_t token);                                                  /* coll.c */
int zstages_moved(void);                                                              /* whether a native stage is over: one application thread, no other one in the engine */
int z_cb_reduce_local(const void *in, void *inout, int64_t count, uint64_t type, uint64_t op); /* coll.c */

/* ---- start and end (init.c) ---- */
#pragma GCC visibility pop
#endif
