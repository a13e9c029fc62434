/* A fake of all that libmmpi stands on, for tests of its units in one process that never calls
 * MPI_Init:
 *
 *   fake.c      the world, communicators, groups, errors    of native MPI (struct z_real)
 *   requests.c  requests and statuses                       of native MPI
 *   types.c     datatypes, pack and unpack                  of native MPI
 *   engine.c    the ze_ functions (struct z_engine)
 *   system.c    clock, sleeping, memory, dlsym              of the C library, by the linker's --wrap
 *
 * What it is. This process is one rank of a job of several clusters, and nobody else is there. What
 * other processes would do the test does for them: it completes requests (fake_done, fake_arrive),
 * says what they give to collectives (fake_others), and sets things off at a time (fake_at).
 *
 * It is strict. A test fails by a function that is not faked, a handle that is none or is freed, a
 * blocking call that nothing would end, or one while the engine is busy. A test can ask what native
 * objects, operations and memory are left at the end (fake_requests, fake_ops, fake_types,
 * fake_blocks, …).
 *
 * What it is not. No message is carried, also not to this process itself, but for the one Sendrecv
 * that packs. Native collectives are over at once and give what this process gave. Handles are
 * never used again; error codes are classes; attributes exist for datatypes alone; there is one
 * thread, though z_threads may be set. Statuses keep their bytes where the native library does, so
 * they are read as its own macros read them.
 */
#ifndef ZIPPER_FAKE_H
#define ZIPPER_FAKE_H
#include "request/wait.h"
#include "type/type.h"

void test_fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4), noreturn));
/* Misuse by the unit under test: it ends the test. */
#define FAKE_ASSERT(CONDITION, ...) ((CONDITION) ? (void)0 : test_fail(__FILE__, __LINE__, __VA_ARGS__))

void fake_begin(void); /* fills struct z_real and z_engine; no world yet */
void fake_end(void);   /* nothing of the native library may be left that a unit made and nobody holds */

/* ---- the world (fake.c) ---- */

/* Clusters of so many ranks; this is virtual rank `rank`. Starts the units as MPI_Init does: after
 * it z_whole is MPI_COMM_WORLD, and z_private and z_self are there. */
void fake_world(int clusters, const int *sizes, int rank);
#define FAKE_WORLD(RANK, ...) fake_world((int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (int[]){__VA_ARGS__}, RANK)

/* What was called how often, of the functions that a test may want to know of. */
typedef struct fake_calls {
  int commit, send, isend, irecv, imrecv, test, testall, testany, testsome, wait, waitall, waitany, waitsome, probe,
      cancel;
  int pack, unpack, sendrecv;
  int progress, comm_add, comm_drop, cart_create, graph_create;
  int yield, sleep;
} fake_calls;

typedef struct fake_state {
  fake_calls calls;
  int groups, comms, handlers; /* native objects that a unit has made and not freed */
  int raised;                  /* how many errors were raised; */
  int raised_code;             /* the last: its code */
  MPI_Comm raised_on;
  MPI_Errhandler handler;      /* of every communicator */
  int aborted;                 /* the last code of ze_abort */
  int peer, tag;               /* of the last native send or receive */
  int recorded_rank;           /* the last that ze_record was told */
  int taken_from;              /* … and ze_record_taken */
  int waits_begun, waits_deep; /* what ze_record_wait was told: how many, and how many are not over */
  int64_t recorded_bytes;
  int recv_init_fails; /* the next placeholders cannot be made */
  int shadowed;        /* what ze_shadowed says */
  int cluster_of[64];  /* of every virtual rank */
  int last_block;      /* the last argument of ze_progress */
  double now;          /* us */
  /* Each turn of the engine and of native MPI takes some of the clock's time. */
  double progress_us, probe_us, test_us, yield_us;
  int engine_moves; /* so many of the next ze_progress say that something happened */
  double slept_us, longest_sleep_us;
} fake_state;

extern fake_state fake;

/* A native communicator inside the cluster, which does not span. */
MPI_Comm fake_comm(void);

/* ---- requests (requests.c) ---- */

/* Native ones, as the native library would have given them to the program. A persistent one is
 * inactive. */
MPI_Request fake_request(void);
MPI_Request fake_persistent(void);
void fake_start(MPI_Request request);
/* The operation is over: of a receive, with what its status says. */
void fake_done(MPI_Request request, int native_source, int tag, int64_t bytes);
void fake_fails(MPI_Request request, int class_);
void fake_cancelled(MPI_Request request);
int fake_requests(void); /* that are not freed, but for the shim's placeholders */
int fake_placeholders(void);
MPI_Request fake_last_request(void); /* that a unit has made */

int64_t fake_bytes(const MPI_Status *status);
int fake_is_empty(const MPI_Status *status);

/* ---- types (types.c) ---- */

typedef struct fake_piece {
  int64_t off, len;
} fake_piece;

/* A type made by a constructor, given what MPI_Type_get_contents would give; committed. The type
 * map is worked out from MPI's definition of the constructor, element by element. */
MPI_Datatype fake_type(int combiner, int n, const int *ints, int na, const MPI_Aint *addresses, int nt,
                       const MPI_Datatype *types);
MPI_Datatype fake_f90(int combiner, int64_t size); /* a type without parts that MPI_Type_create_f90_… gives */
MPI_Datatype fake_big_count(MPI_Datatype type);    /* as the big-count form of its constructor makes it */
/* Of bytes, by a big-count function; it has no type map, which may be huge. */
MPI_Datatype fake_huge(int combiner, int ni, const int *ints, int nc, const MPI_Count *counts);
MPI_Datatype fake_gapped(int64_t size, int64_t extent); /* one piece of that size and a gap */
void fake_uncommit(MPI_Datatype type);
int fake_committed(MPI_Datatype type);
void fake_type_free(MPI_Datatype type); /* the program frees it */
int fake_types(void);                   /* references to derived types */
/* The type map, neighbours joined: what must be sent, in that order. whole: pairs with their
 * gaps. */
int fake_map(MPI_Datatype type, int whole, fake_piece *out, int room);

#define FAKE_INTS(...) \
  (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (int[]) { __VA_ARGS__ }
#define FAKE_AINTS(...) \
  (int)(sizeof((MPI_Aint[]){__VA_ARGS__}) / sizeof(MPI_Aint)), (MPI_Aint[]) { __VA_ARGS__ }
#define FAKE_COUNTS(...) \
  (int)(sizeof((MPI_Count[]){__VA_ARGS__}) / sizeof(MPI_Count)), (MPI_Count[]) { __VA_ARGS__ }
#define FAKE_TYPES(...) \
  (int)(sizeof((MPI_Datatype[]){__VA_ARGS__}) / sizeof(MPI_Datatype)), (MPI_Datatype[]) { __VA_ARGS__ }
#define FAKE_NONE 0, NULL

/* ---- the engine (engine.c) ---- */

typedef struct fake_op {
  char what;        /* 's' a send, 'r' a receive, 'c' a collective */
  z_cell *cell;     /* NULL: done */
  const void *data; /* of a send; of a receive the buffer */
  int64_t bytes;
  int peer, tag, mode, comm;
  int cancelled;
} fake_op;

fake_op *fake_last_op(void);
int fake_ops(void); /* that are not done */
void fake_sent(fake_op *op);
void fake_arrive(fake_op *op, int source, int tag, const void *data, int64_t bytes);
void fake_op_fails(fake_op *op, int z_error);
void fake_refuse(int z_error); /* the next operation does not start */

/* What every other rank gives in an allgather, in the block that it writes into. NULL: zeros. */
typedef void fake_others_fn(int rank, void *block, int64_t bytes);
extern fake_others_fn *fake_others;

/* ---- the system (system.c) ---- */

void fake_at(double us, void (*what)(void *), void *arg); /* once the clock is there */
void fake_pass(double us);                                /* time passes */
void fake_no_memory(int after);                    /* the allocation after so many more fails, once; < 0: none does */
int fake_memory_failed(void);                      /* whether it has */
long fake_blocks(void);                            /* blocks of memory allocated and not freed */
void fake_symbol(const char *name, void *address); /* dlsym finds this one, and no other */
#endif
