/* A fake of everything on which libmmpi depends, for tests of its units in one process that never
 * calls MPI_Init:
 *
 *   fake.c      the world, communicators, groups, errors    of native MPI (struct z_real)
 *   requests.c  requests and statuses                       of native MPI
 *   types.c     datatypes, pack and unpack                  of native MPI
 *   engine.c    the ze_ functions (struct z_engine)
 *   system.c    clock, sleeping, memory, dlsym              of the C library, by the linker's --wrap
 *
 * Model. This process is one rank of a job of several clusters, and there is no other process.
 * The test plays the other processes: it completes requests (fake_done, fake_arrive), contributes
 * their blocks to collectives (fake_others), and triggers events at a given time (fake_at).
 *
 * Checks. A test fails if a unit calls a function that is not faked, passes a handle that is
 * invalid or freed, makes a blocking call that nothing would end, or makes one while the engine is
 * busy. A test can ask for the native objects, operations and memory that are left at the end
 * (fake_requests, fake_ops, fake_types, fake_blocks, …).
 *
 * Limits. No message is carried, not even to this process itself, except for the one
 * Sendrecv that packs. Native collectives complete at once and return this process's contribution.
 * Handles are never reused; error codes are classes; attributes exist for datatypes alone; there is
 * one thread, though z_threads may be set. Statuses keep their bytes where the native library keeps
 * them, so its own macros can read them.
 */
#ifndef ZIPPER_FAKE_H
#define ZIPPER_FAKE_H
#include "request/wait.h"
#include "type/type.h"

void test_fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4), noreturn));
/* Ends the test if the unit under test misuses a function. */
#define FAKE_ASSERT(CONDITION, ...) ((CONDITION) ? (void)0 : test_fail(__FILE__, __LINE__, __VA_ARGS__))

void fake_begin(void); /* fills struct z_real and z_engine; there is no world yet */
/* Ends the test if a unit has not freed an error handler that it has got. */
void fake_end(void);

/* ---- the world (fake.c) ---- */

/* Makes a world of clusters of these sizes, in which this process is virtual rank `rank`. Starts
 * the units as MPI_Init does: afterwards z_whole is MPI_COMM_WORLD, and z_private and z_self
 * exist. */
void fake_world(int clusters, const int *sizes, int rank);
#define FAKE_WORLD(RANK, ...) fake_world((int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (int[]){__VA_ARGS__}, RANK)

/* The numbers of calls, of the functions that a test may check. */
typedef struct fake_calls {
  int commit, send, isend, irecv, imrecv, test, testall, testany, testsome, wait, waitall, waitany, waitsome, probe,
      cancel;
  int pack, unpack, sendrecv;
  int progress, comm_add, comm_drop, cart_create, graph_create;
  int yield, sleep;
} fake_calls;

typedef struct fake_state {
  fake_calls calls;
  int groups, comms, handlers; /* the numbers of native objects that a unit has made and not freed */
  int raised;                  /* the number of errors raised */
  int raised_code;             /* the code of the last error */
  MPI_Comm raised_on;
  MPI_Errhandler handler; /* the error handler of every communicator */
  int aborted;            /* the last code passed to ze_abort */
  int peer, tag;          /* the peer and the tag of the last native send or receive */
  int recorded_rank;      /* the last rank passed to ze_record */
  int taken_from;         /* the last rank passed to ze_record_taken */
  /* The number of waits reported to ze_record_wait, and the number of those that have not ended. */
  int waits_begun, waits_deep;
  int64_t recorded_bytes;
  int recv_init_fails; /* 1: the next placeholders cannot be made */
  int shadowed;        /* the result of ze_shadowed */
  int cluster_of[64];  /* the cluster of every virtual rank */
  /* The number of ranks that are in lost clusters, which are the last ones of every communicator,
   * and the number of those that are acknowledged. */
  int lost, acked;
  int revoked;    /* 1 if every communicator is revoked */
  int votes;      /* the bitwise AND of the flags of the other processes in an agreement */
  int last_block; /* the last argument of ze_progress */
  double now;     /* the clock in us */
  /* The time in us that each turn of the engine and of native MPI takes. */
  double progress_us, probe_us, test_us, yield_us;
  int engine_moves; /* the number of next calls of ze_progress that report progress */
  double slept_us, longest_sleep_us;
} fake_state;

extern fake_state fake;

/* Makes a native communicator inside the cluster, which does not span clusters. */
MPI_Comm fake_comm(void);

/* ---- requests (requests.c) ---- */

/* Make native requests as the native library would return them to the program. A persistent one is
 * inactive. */
MPI_Request fake_request(void);
MPI_Request fake_persistent(void);
void fake_start(MPI_Request request);
/* Completes an operation: a receive with this status. */
void fake_done(MPI_Request request, int native_source, int tag, int64_t bytes);
void fake_fails(MPI_Request request, int class_);
void fake_cancelled(MPI_Request request);
int fake_requests(void); /* the number of requests that are not freed, without the shim's placeholders */
int fake_placeholders(void);
MPI_Request fake_last_request(void); /* the last request that a unit has made */

int64_t fake_bytes(const MPI_Status *status);
int fake_is_empty(const MPI_Status *status);

/* ---- types (types.c) ---- */

typedef struct fake_piece {
  int64_t off, len;
} fake_piece;

/* Makes a committed type by a constructor, from the arguments that MPI_Type_get_contents would
 * return. The type map is computed from MPI's definition of the constructor, element by element. */
MPI_Datatype fake_type(int combiner, int n, const int *ints, int na, const MPI_Aint *addresses, int nt,
                       const MPI_Datatype *types);
/* Makes a type without parts, as MPI_Type_create_f90_… does. */
MPI_Datatype fake_f90(int combiner, int64_t size);
/* Makes the type as the big-count form of its constructor does. */
MPI_Datatype fake_big_count(MPI_Datatype type);
/* Makes a type of bytes by a big-count function; it has no type map, which could be huge. */
MPI_Datatype fake_huge(int combiner, int ni, const int *ints, int nc, const MPI_Count *counts);
/* Makes a type of one piece of this size and a gap. */
MPI_Datatype fake_gapped(int64_t size, int64_t extent);
void fake_uncommit(MPI_Datatype type);
int fake_committed(MPI_Datatype type);
void fake_type_free(MPI_Datatype type); /* frees the type as the program does */
int fake_types(void);                   /* the number of references to derived types */
/* Stores the type map with adjacent pieces joined: the bytes that must be sent, in this order.
 * whole: pairs include their gaps. Returns the number of pieces. */
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
  z_cell *cell;     /* NULL once the operation has completed */
  z_cell *pending;  /* the cell of a receive that is done but still pending (ze_resume), or NULL */
  const void *data; /* the data of a send, or the buffer of a receive */
  int64_t bytes;
  int peer, tag, mode, comm;
  int cancelled;
} fake_op;

fake_op *fake_last_op(void);
int fake_ops(void); /* the number of operations that have not completed */
void fake_sent(fake_op *op);
void fake_arrive(fake_op *op, int source, int tag, const void *data, int64_t bytes);
void fake_op_fails(fake_op *op, int z_error);
void fake_refuse(int z_error); /* makes the next operation fail to start */

/* The block that every other rank contributes to an allgather, written by the function. NULL:
 * zeros. */
typedef void fake_others_fn(int rank, void *block, int64_t bytes);
extern fake_others_fn *fake_others;

/* ---- the system (system.c) ---- */

/* Calls a function once the clock has reached a time. */
void fake_at(double us, void (*what)(void *), void *arg);
void fake_pass(double us); /* advances the clock */
/* Makes the allocation after so many more fail, once. Negative: none fails. */
void fake_no_memory(int after);
int fake_memory_failed(void); /* whether that allocation has failed */
/* the number of blocks of memory that are allocated and not freed */
long fake_blocks(void);
/* Makes dlsym find this symbol, and no other. */
void fake_symbol(const char *name, void *address);
#endif
