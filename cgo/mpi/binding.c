//go:build openmpi || mpich

#include "binding.h"
#include "../abi/abi.h"
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#define COMM(x) ((MPI_Comm)(x))
#define TYPE(x) ((MPI_Datatype)(x))
#define OP(x) ((MPI_Op)(x))
#define REQ(r) MPI_Request r_ = (MPI_Request)(*(r))
/* The request is declared before e is evaluated, which uses r_. */
#define OUT(r, e)                      \
  do {                                 \
    MPI_Request r_ = MPI_REQUEST_NULL; \
    int e_ = (e);                      \
    *(r) = (uintptr_t)r_;              \
    return e_;                         \
  } while (0)
/* MPI 4.1 deprecates MPI_Get_elements_x. */
#if MPI_VERSION >= 4
#define GET_ELEMENTS MPI_Get_elements_c
#else
#define GET_ELEMENTS MPI_Get_elements_x
#endif
#define IN(p, in_place) ((in_place) ? MPI_IN_PLACE : (p))

static void from(b_status *o, MPI_Status *s) {
  MPI_Count n = 0;
  int cancelled = 0;
  MPI_Test_cancelled(s, &cancelled);
  if (!cancelled) GET_ELEMENTS(s, MPI_BYTE, &n);
  o->source = s->MPI_SOURCE;
  o->tag = s->MPI_TAG;
  o->cancelled = cancelled;
  o->bytes = n;
}

int b_init(int required, int *provided) {
  static const int level[] = {MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
  int got, e = MPI_Init_thread(NULL, NULL, level[required], &got);
  if (e) return e;
  *provided = got >= MPI_THREAD_MULTIPLE ? 2 : got >= MPI_THREAD_SERIALIZED ? 1 : 0;
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  return MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}
int b_initialized(void) {
  int f = 0;
  MPI_Initialized(&f);
  return f;
}
int b_finalize(void) { return MPI_Finalize(); }
void b_abort(int code) { MPI_Abort(MPI_COMM_WORLD, code); }
double b_wtime(void) { return MPI_Wtime(); }
int b_library_version(char *buf, int len) {
  char v[MPI_MAX_LIBRARY_VERSION_STRING];
  int n, e = MPI_Get_library_version(v, &n);
  if (e) return e;
  strncpy(buf, v, (size_t)len - 1);
  buf[len - 1] = 0;
  return 0;
}
int b_error(int code, char *buf, int len, int *class_) {
  char s[MPI_MAX_ERROR_STRING] = "";
  int n = 0;
  MPI_Error_class(code, class_);
  MPI_Error_string(code, s, &n);
  strncpy(buf, s, (size_t)len - 1);
  buf[len - 1] = 0;
  return 0;
}
int b_class_truncate(void) { return MPI_ERR_TRUNCATE; }

uintptr_t b_world(void) { return (uintptr_t)MPI_COMM_WORLD; }
uintptr_t b_self(void) { return (uintptr_t)MPI_COMM_SELF; }
uintptr_t b_comm_null(void) { return (uintptr_t)MPI_COMM_NULL; }
uintptr_t b_datatype(int t) {
  const MPI_Datatype d[B_TYPES] = {MPI_INT8_T,          MPI_INT16_T,          MPI_INT32_T,  MPI_INT64_T, MPI_UINT8_T,
                                   MPI_UINT16_T,        MPI_UINT32_T,         MPI_UINT64_T, MPI_FLOAT,   MPI_DOUBLE,
                                   MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_BYTE};
  return (uintptr_t)d[t];
}
uintptr_t b_predefined_op(int o) {
  const MPI_Op d[B_OPS] = {MPI_SUM, MPI_PROD, MPI_MIN,  MPI_MAX, MPI_LAND,
                           MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR};
  return (uintptr_t)d[o];
}
int b_undefined(void) { return MPI_UNDEFINED; }
int b_any_source(void) { return MPI_ANY_SOURCE; }
int b_any_tag(void) { return MPI_ANY_TAG; }
int b_proc_null(void) { return MPI_PROC_NULL; }

int b_comm_rank(uintptr_t c, int *rank) { return MPI_Comm_rank(COMM(c), rank); }
int b_comm_size(uintptr_t c, int *size) { return MPI_Comm_size(COMM(c), size); }
int b_comm_idup(uintptr_t c, uintptr_t *out, uintptr_t *req) {
  MPI_Comm *o = malloc(sizeof *o); /* must outlive this call: it is filled in when the request completes */
  if (!o) return MPI_ERR_NO_MEM;
  *out = (uintptr_t)o;
  OUT(req, MPI_Comm_idup(COMM(c), o, &r_));
}
uintptr_t b_comm_take(uintptr_t pending) {
  MPI_Comm *o = (MPI_Comm *)pending, c = *o;
  free(o);
  return (uintptr_t)c;
}
int b_comm_split(uintptr_t c, int color, int key, uintptr_t *out) {
  MPI_Comm o = MPI_COMM_NULL;
  int e = MPI_Comm_split(COMM(c), color, key, &o);
  *out = (uintptr_t)o;
  return e;
}
int b_comm_split_host(uintptr_t c, int key, uintptr_t *out) {
  MPI_Comm o = MPI_COMM_NULL;
  int e = MPI_Comm_split_type(COMM(c), MPI_COMM_TYPE_SHARED, key, MPI_INFO_NULL, &o);
  *out = (uintptr_t)o;
  return e;
}
int b_comm_create(uintptr_t c, const int *ranks, int n, uintptr_t *out) {
  MPI_Group all, g;
  MPI_Comm o = MPI_COMM_NULL;
  int e = MPI_Comm_group(COMM(c), &all);
  if (e) return e;
  if (!(e = MPI_Group_incl(all, n, ranks, &g))) {
    e = MPI_Comm_create(COMM(c), g, &o);
    MPI_Group_free(&g);
  }
  MPI_Group_free(&all);
  *out = (uintptr_t)o;
  return e;
}
int b_comm_free(uintptr_t *c) {
  MPI_Comm m = COMM(*c);
  int e = MPI_Comm_free(&m);
  *c = (uintptr_t)m;
  return e;
}
int b_comm_tag_ub(uintptr_t c, int *ub) {
  int flag = 0, *v = NULL, e = MPI_Comm_get_attr(COMM(c), MPI_TAG_UB, &v, &flag);
  *ub = flag ? *v : 32767;
  return e;
}

int b_send(const void *p, int n, uintptr_t t, int dest, int tag, uintptr_t c) {
  return MPI_Send(p, n, TYPE(t), dest, tag, COMM(c));
}
int b_ssend(const void *p, int n, uintptr_t t, int dest, int tag, uintptr_t c) {
  return MPI_Ssend(p, n, TYPE(t), dest, tag, COMM(c));
}
b_outcome b_recv(void *p, int n, uintptr_t t, int src, int tag, uintptr_t c) {
  MPI_Status s;
  b_outcome o = {.error = MPI_Recv(p, n, TYPE(t), src, tag, COMM(c), &s), .done = 1};
  if (!o.error) from(&o.status, &s);
  return o;
}
static b_request started(int error, MPI_Request r) { return (b_request){error, (uintptr_t)r}; }
b_request b_isend(const void *p, int n, uintptr_t t, int dest, int tag, uintptr_t c) {
  MPI_Request r = MPI_REQUEST_NULL;
  int e = MPI_Isend(p, n, TYPE(t), dest, tag, COMM(c), &r);
  return started(e, r);
}
b_request b_issend(const void *p, int n, uintptr_t t, int dest, int tag, uintptr_t c) {
  MPI_Request r = MPI_REQUEST_NULL;
  int e = MPI_Issend(p, n, TYPE(t), dest, tag, COMM(c), &r);
  return started(e, r);
}
b_request b_irecv(void *p, int n, uintptr_t t, int src, int tag, uintptr_t c) {
  MPI_Request r = MPI_REQUEST_NULL;
  int e = MPI_Irecv(p, n, TYPE(t), src, tag, COMM(c), &r);
  return started(e, r);
}
int b_iprobe(int src, int tag, uintptr_t c, int *flag, b_status *st) {
  MPI_Status s = {0}; /* MPICH does not set the flag of a cancelled request */
  int e = MPI_Iprobe(src, tag, COMM(c), flag, &s);
  if (!e && *flag) from(st, &s);
  return e;
}
b_outcome b_test(uintptr_t r) {
  MPI_Request r_ = (MPI_Request)r;
  MPI_Status s;
  b_outcome o = {0};
  o.error = MPI_Test(&r_, &o.done, &s);
  if (!o.error && o.done) from(&o.status, &s);
  o.request = (uintptr_t)r_;
  return o;
}
b_outcome b_wait(uintptr_t r) {
  MPI_Request r_ = (MPI_Request)r;
  MPI_Status s;
  b_outcome o = {.error = MPI_Wait(&r_, &s), .done = 1};
  if (!o.error) from(&o.status, &s);
  o.request = (uintptr_t)r_;
  return o;
}
/* Waits for one request after the other. Open MPI 4.1's MPI_Waitall hangs, in programs that request
 * a thread level, if one request has failed and another has not completed. */
void b_wait_each(int n, const uintptr_t *requests, b_outcome *out) {
  for (int i = 0; i < n; i++) out[i] = b_wait(requests[i]);
}
int b_cancel(uintptr_t *r) {
  REQ(r);
  int e = MPI_Cancel(&r_);
  *r = (uintptr_t)r_;
  return e;
}

/* Blocking if r is 0, otherwise nonblocking. */
#define BOTH(r, block, start, ...)       \
  do {                                   \
    if (!(r)) return block(__VA_ARGS__); \
    OUT(r, start(__VA_ARGS__, &r_));     \
  } while (0)

int b_barrier(uintptr_t c, uintptr_t *r) { BOTH(r, MPI_Barrier, MPI_Ibarrier, COMM(c)); }
int b_bcast(void *p, int n, uintptr_t t, int root, uintptr_t c, uintptr_t *r) {
  BOTH(r, MPI_Bcast, MPI_Ibcast, p, n, TYPE(t), root, COMM(c));
}
int b_reduce(const void *in, int in_place, void *out, int n, uintptr_t t, uintptr_t op, int root, uintptr_t c,
             uintptr_t *r) {
  BOTH(r, MPI_Reduce, MPI_Ireduce, IN(in, in_place), out, n, TYPE(t), OP(op), root, COMM(c));
}
int b_allreduce(const void *in, int in_place, void *out, int n, uintptr_t t, uintptr_t op, uintptr_t c, uintptr_t *r) {
  BOTH(r, MPI_Allreduce, MPI_Iallreduce, IN(in, in_place), out, n, TYPE(t), OP(op), COMM(c));
}
int b_scan(const void *in, int in_place, void *out, int n, uintptr_t t, uintptr_t op, int exclusive, uintptr_t c,
           uintptr_t *r) {
  if (exclusive) BOTH(r, MPI_Exscan, MPI_Iexscan, IN(in, in_place), out, n, TYPE(t), OP(op), COMM(c));
  BOTH(r, MPI_Scan, MPI_Iscan, IN(in, in_place), out, n, TYPE(t), OP(op), COMM(c));
}
int b_reduce_scatter(const void *in, int in_place, void *out, const int *counts, uintptr_t t, uintptr_t op, uintptr_t c,
                     uintptr_t *r) {
  BOTH(r, MPI_Reduce_scatter, MPI_Ireduce_scatter, IN(in, in_place), out, counts, TYPE(t), OP(op), COMM(c));
}
int b_gather(const void *in, int n, void *out, uintptr_t t, int root, uintptr_t c, uintptr_t *r) {
  BOTH(r, MPI_Gather, MPI_Igather, in, n, TYPE(t), out, n, TYPE(t), root, COMM(c));
}
int b_scatter(const void *in, void *out, int n, uintptr_t t, int root, uintptr_t c, uintptr_t *r) {
  BOTH(r, MPI_Scatter, MPI_Iscatter, in, n, TYPE(t), out, n, TYPE(t), root, COMM(c));
}
int b_allgather(const void *in, int n, void *out, uintptr_t t, uintptr_t c, uintptr_t *r) {
  BOTH(r, MPI_Allgather, MPI_Iallgather, in, n, TYPE(t), out, n, TYPE(t), COMM(c));
}
int b_alltoall(const void *in, int n, void *out, uintptr_t t, uintptr_t c, uintptr_t *r) {
  BOTH(r, MPI_Alltoall, MPI_Ialltoall, in, n, TYPE(t), out, n, TYPE(t), COMM(c));
}
int b_gatherv(const void *in, int in_place, int n, void *out, const int *counts, const int *displs, uintptr_t t,
              int root, uintptr_t c, uintptr_t *r) {
  BOTH(r, MPI_Gatherv, MPI_Igatherv, IN(in, in_place), n, TYPE(t), out, counts, displs, TYPE(t), root, COMM(c));
}
int b_scatterv(const void *in, const int *counts, const int *displs, void *out, int in_place, int n, uintptr_t t,
               int root, uintptr_t c, uintptr_t *r) {
  BOTH(r, MPI_Scatterv, MPI_Iscatterv, in, counts, displs, TYPE(t), IN(out, in_place), n, TYPE(t), root, COMM(c));
}
int b_allgatherv(const void *in, int in_place, int n, void *out, const int *counts, const int *displs, uintptr_t t,
                 uintptr_t c, uintptr_t *r) {
  BOTH(r, MPI_Allgatherv, MPI_Iallgatherv, IN(in, in_place), n, TYPE(t), out, counts, displs, TYPE(t), COMM(c));
}
int b_alltoallv(const void *in, int in_place, const int *scounts, const int *sdispls, void *out, const int *rcounts,
                const int *rdispls, uintptr_t t, uintptr_t c, uintptr_t *r) {
  BOTH(r, MPI_Alltoallv, MPI_Ialltoallv, IN(in, in_place), scounts, sdispls, TYPE(t), out, rcounts, rdispls, TYPE(t),
       COMM(c));
}

#define WIN(x) ((MPI_Win)(x))
int b_win_allocate(int64_t n, uintptr_t c, void **memory, uintptr_t *win) {
  MPI_Win w = MPI_WIN_NULL;
  int e = MPI_Win_allocate((MPI_Aint)n, 1, MPI_INFO_NULL, COMM(c), memory, &w);
  if (!e) e = MPI_Win_set_errhandler(w, MPI_ERRORS_RETURN);
  if (!e) e = MPI_Win_lock_all(0, w);
  *win = (uintptr_t)w;
  return e;
}
int b_win_free(uintptr_t *win) {
  MPI_Win w = WIN(*win);
  int e = MPI_Win_unlock_all(w);
  if (!e) e = MPI_Win_free(&w);
  *win = (uintptr_t)w;
  return e;
}
int b_put(const void *p, int n, int target, int64_t at, uintptr_t win) {
  return MPI_Put(p, n, MPI_BYTE, target, (MPI_Aint)at, n, MPI_BYTE, WIN(win));
}
int b_win_flush(int target, uintptr_t win) { return MPI_Win_flush(target, WIN(win)); }
/* Synchronizes a window and drives progress. In some libraries MPI_Win_sync alone makes no
 * progress. A probe does if it finds nothing and, in MPICH, its communicator has other processes.
 * So it is for a tag that is hardly ever used: the highest one that every library has. */
int b_win_sync(uintptr_t win) {
  int flag, e = MPI_Win_sync(WIN(win));
  return e ? e : MPI_Iprobe(MPI_ANY_SOURCE, 32767, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

/* User operators. MPI passes no user data to them, so each slot has a function of its own. */
extern void goReduce(int slot, void *in, void *inout, int n);
#define SLOT(i)                                                    \
  static void op##i(void *in, void *io, int *n, MPI_Datatype *t) { \
    (void)t;                                                       \
    goReduce(i, in, io, *n);                                       \
  }
/* clang-format off */
SLOT(0) SLOT(1) SLOT(2) SLOT(3) SLOT(4) SLOT(5) SLOT(6) SLOT(7)
SLOT(8) SLOT(9) SLOT(10) SLOT(11) SLOT(12) SLOT(13) SLOT(14) SLOT(15)
    /* clang-format on */
    static MPI_User_function *const slots[B_OP_SLOTS] = {op0, op1, op2,  op3,  op4,  op5,  op6,  op7,
                                                         op8, op9, op10, op11, op12, op13, op14, op15};
int b_op_create(int slot, int commute, uintptr_t *op) {
  MPI_Op o;
  int e = MPI_Op_create(slots[slot], commute, &o);
  *op = (uintptr_t)o;
  return e;
}
int b_op_free(uintptr_t *op) {
  MPI_Op o = OP(*op);
  int e = MPI_Op_free(&o);
  *op = (uintptr_t)o;
  return e;
}
