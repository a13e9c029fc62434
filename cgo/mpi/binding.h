/* MPI's macros and handle types in plain C, for cgo: handles are uintptr_t in both MPI
 * libraries. */
#ifndef ZIPPER_BINDING_H
#define ZIPPER_BINDING_H
#include <stdint.h>

typedef struct b_status {
  int source, tag, cancelled;
  int64_t bytes;
} b_status;
/* The results of the calls that every message makes. They are returned by value, because Go
 * allocates every variable whose address is passed to C. */
typedef struct b_request {
  int error;
  uintptr_t request;
} b_request;
typedef struct b_outcome {
  int error, done;
  uintptr_t request;
  b_status status;
} b_outcome;

enum b_type {
  B_INT8,
  B_INT16,
  B_INT32,
  B_INT64,
  B_UINT8,
  B_UINT16,
  B_UINT32,
  B_UINT64,
  B_FLOAT32,
  B_FLOAT64,
  B_COMPLEX64,
  B_COMPLEX128,
  B_BYTE,
  B_TYPES
};
enum b_op { B_SUM, B_PROD, B_MIN, B_MAX, B_LAND, B_LOR, B_LXOR, B_BAND, B_BOR, B_BXOR, B_OPS };

/* Registers the engine inside this program with libmmpi. Returns the name of a missing function, or
 * 0. */
const char *b_register_engine(void);

int b_init(int required, int *provided);
int b_initialized(void);
int b_finalize(void);
void b_abort(int code);
double b_wtime(void);
int b_library_version(char *buf, int len);
int b_error(int code, char *buf, int len, int *class_);
int b_class_truncate(void);

uintptr_t b_world(void), b_self(void), b_comm_null(void);
uintptr_t b_datatype(int type), b_predefined_op(int op);
int b_undefined(void), b_any_source(void), b_any_tag(void), b_proc_null(void);

int b_comm_rank(uintptr_t c, int *rank);
int b_comm_size(uintptr_t c, int *size);
int b_comm_idup(uintptr_t c, uintptr_t *out, uintptr_t *req);
/* Returns the communicator that b_comm_idup has made. Called once, after its request has
 * completed. */
uintptr_t b_comm_take(uintptr_t pending);
int b_comm_split(uintptr_t c, int color, int key, uintptr_t *out);
int b_comm_split_host(uintptr_t c, int key, uintptr_t *out);
int b_comm_create(uintptr_t c, const int *ranks, int n, uintptr_t *out);
int b_comm_free(uintptr_t *c);
int b_comm_tag_ub(uintptr_t c, int *ub);

int b_send(const void *p, int n, uintptr_t t, int dest, int tag, uintptr_t c);
int b_ssend(const void *p, int n, uintptr_t t, int dest, int tag, uintptr_t c);
b_outcome b_recv(void *p, int n, uintptr_t t, int src, int tag, uintptr_t c);
b_request b_isend(const void *p, int n, uintptr_t t, int dest, int tag, uintptr_t c);
b_request b_issend(const void *p, int n, uintptr_t t, int dest, int tag, uintptr_t c);
b_request b_irecv(void *p, int n, uintptr_t t, int src, int tag, uintptr_t c);
int b_iprobe(int src, int tag, uintptr_t c, int *flag, b_status *st);
b_outcome b_test(uintptr_t r);
b_outcome b_wait(uintptr_t r);
enum { B_BATCH = 64 };
void b_wait_each(int n, const uintptr_t *requests, b_outcome *out);
int b_cancel(uintptr_t *r);

/* Collectives: nonblocking with a request, blocking if r is 0. in == 0 with in_place:
 * MPI_IN_PLACE. */
int b_barrier(uintptr_t c, uintptr_t *r);
int b_bcast(void *p, int n, uintptr_t t, int root, uintptr_t c, uintptr_t *r);
int b_reduce(const void *in, int in_place, void *out, int n, uintptr_t t, uintptr_t op, int root, uintptr_t c,
             uintptr_t *r);
int b_allreduce(const void *in, int in_place, void *out, int n, uintptr_t t, uintptr_t op, uintptr_t c, uintptr_t *r);
int b_scan(const void *in, int in_place, void *out, int n, uintptr_t t, uintptr_t op, int exclusive, uintptr_t c,
           uintptr_t *r);
int b_reduce_scatter(const void *in, int in_place, void *out, const int *counts, uintptr_t t, uintptr_t op, uintptr_t c,
                     uintptr_t *r);
int b_gather(const void *in, int n, void *out, uintptr_t t, int root, uintptr_t c, uintptr_t *r);
int b_scatter(const void *in, void *out, int n, uintptr_t t, int root, uintptr_t c, uintptr_t *r);
int b_allgather(const void *in, int n, void *out, uintptr_t t, uintptr_t c, uintptr_t *r);
int b_alltoall(const void *in, int n, void *out, uintptr_t t, uintptr_t c, uintptr_t *r);
int b_gatherv(const void *in, int in_place, int n, void *out, const int *counts, const int *displs, uintptr_t t,
              int root, uintptr_t c, uintptr_t *r);
int b_scatterv(const void *in, const int *counts, const int *displs, void *out, int in_place, int n, uintptr_t t,
               int root, uintptr_t c, uintptr_t *r);
int b_allgatherv(const void *in, int in_place, int n, void *out, const int *counts, const int *displs, uintptr_t t,
                 uintptr_t c, uintptr_t *r);
int b_alltoallv(const void *in, int in_place, const int *scounts, const int *sdispls, void *out, const int *rcounts,
                const int *rdispls, uintptr_t t, uintptr_t c, uintptr_t *r);

/* Allocates a window of n bytes of MPI's memory, locked for all (shared) until b_win_free. */
int b_win_allocate(int64_t n, uintptr_t c, void **memory, uintptr_t *win);
int b_win_free(uintptr_t *win);
int b_put(const void *p, int n, int target, int64_t at, uintptr_t win);
int b_win_flush(int target, uintptr_t win);
int b_win_sync(uintptr_t win);

/* slot < B_OP_SLOTS; the operator calls goReduce(slot, …) */
int b_op_create(int slot, int commute, uintptr_t *op);
int b_op_free(uintptr_t *op);
#define B_OP_SLOTS 16
#endif
