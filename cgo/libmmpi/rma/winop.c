/* Operations on windows that span clusters: the program's arguments are converted to those of
 * z_rma. */
#include "core/privcomm.h"
#include "rma/win.h"
#include "type/exchange.h"
#include "type/op.h"
#include "type/pieces.h"
#include <string.h>

/* One side of a one-sided operation: memory and the layout of the data in it. */
typedef struct side {
  z_view view;  /* the memory as spans of bytes */
  z_span whole; /* the only span of a contiguous type, to which `view` refers */
  int number;   /* the common type of all elements (zflat), or Z_BYTES if it is not needed */
  void *staged; /* a copy of the data, if they are in memory of a device, otherwise NULL */
} side;

/* The arguments of a call of a one-sided function, such as MPI_Get_accumulate. */
typedef struct call {
  const char *function; /* the name of the MPI function */
  int verb, fn;         /* the kind of the operation, such as Z_GET, and its operator (z_fn) */
  /* the memory whose data are sent, with data_count elements of data_type */
  const void *data;
  int data_count;
  MPI_Datatype data_type;
  /* the memory into which the result is received, with result_count elements of result_type */
  void *result;
  int result_count;
  MPI_Datatype result_type;
  int target; /* the rank of the target */
  /* the displacement in the target's window, in its displacement units */
  MPI_Aint disp;
  int count;         /* the number of elements at the target */
  MPI_Datatype type; /* the type of the elements at the target */
} call;

static int describe(side *s, const void *buf, int64_t count, MPI_Datatype type, int form) {
  const ztype *t = ztype_get(type);
  int rc = MPI_ERR_TYPE;
  if (count < 0) return MPI_ERR_COUNT;
  if (!t) return rc;
  s->view.base = (void *)(uintptr_t)buf;
  const zflat *f = form || !t->contiguous ? zflat_get(type, form, &rc) : NULL;
  if (!f && (form || !t->contiguous)) return rc;
  if (form == ZFLAT_ELEMENTS && f->number < 0) return MPI_ERR_TYPE;
  s->number = form == ZFLAT_LONGS ? Z_FLONG : f && form == ZFLAT_ELEMENTS ? f->number : Z_BYTES;
  if (t->contiguous) {
    s->whole = (z_span){0, count * t->size};
    s->view.spans = &s->whole, s->view.n = 1, s->view.count = 1;
  } else {
    s->view.spans = f->spans, s->view.n = f->n, s->view.count = count, s->view.extent = t->extent;
  }
  return MPI_SUCCESS;
}

/* If the data of a side are in memory of a device, marks its view, or, for data to be sent, copies
 * them to memory of the host, which the caller frees. Returns an MPI error class. */
static int stage(side *s, int64_t count, MPI_Datatype type, int sends) {
  const void *there;
  const ztype *t = ztype_get(type);
  const zdriver *device = zpiece_device(t, type, s->view.base, count * t->size, &there);
  s->view.device = device && !sends;
  if (!device || !sends) return MPI_SUCCESS;
  int64_t bytes = zpiece_bytes(&s->view);
  if (!(s->staged = malloc((size_t)bytes + 1))) return MPI_ERR_NO_MEM;
  int rc = zpiece_gather(device, there, &s->view, s->staged);
  s->whole = (z_span){0, bytes};
  s->view = (z_view){.base = s->staged, .count = 1, .spans = &s->whole, .n = 1};
  return rc;
}

/* Returns whether the bytes that a call accesses are in the target's window, and sets *first and
 * *end to their bounds as offsets in that window. For dynamic windows only the target knows, so the
 * answer is 1, without bounds. */
static int in_range(const zwin *w, const call *k, int64_t *first, int64_t *end) {
  const ztype *t = ztype_get(k->type);
  const zshape *s = &w->shapes[k->target];
  if (w->flavor == MPI_WIN_FLAVOR_DYNAMIC || k->count == 0 || t->size == 0) return 1;
  int64_t at = k->disp * s->unit + t->true_lb, last = at + (k->count - 1) * t->extent;
  *first = at < last ? at : last;
  *end = (at < last ? last : at) + t->true_extent;
  return *first >= 0 && *end <= s->bytes;
}

/* Converts a call to an operation of the engine on the bytes of its types that `form` lists
 * (zflat). Raises errors and returns the code for the program. */
static int prepare(zwin *w, const call *k, int form, z_rma *op, side sides[3]) {
  int sends = k->verb != Z_GET && !(k->verb == Z_FETCH && k->fn == Z_NO_OP);
  int receives = k->verb != Z_PUT && k->verb != Z_ACCUMULATE;
  int64_t first = 0, end = 0;
  int rc = describe(&sides[1], NULL, k->count, k->type, form);
  if (!rc && sends) rc = describe(&sides[0], k->data, k->data_count, k->data_type, form);
  if (!rc && sends) rc = stage(&sides[0], k->data_count, k->data_type, 1);
  if (!rc && receives) rc = describe(&sides[2], k->result, k->result_count, k->result_type, form);
  if (!rc && receives) rc = stage(&sides[2], k->result_count, k->result_type, 0);
  if (rc) return zwin_raise(w, rc, k->function, zexchange_blame(zdevice_blame("a count or datatype cannot be used")));
  if (k->fn > Z_NO_OP && sides[0].number != sides[1].number)
    return zwin_raise(w, MPI_ERR_TYPE, k->function, "origin and target have different elements");
  if ((rc = zwin_check_target(w, k->target, k->function))) return rc;
  if (!in_range(w, k, &first, &end))
    return zwin_raise(w, MPI_ERR_RMA_RANGE, k->function, "the target's memory is not in its window");
  *op = (z_rma){.verb = k->verb,
                .fn = k->fn,
                .number = sides[1].number,
                .target = k->target,
                .disp = k->disp,
                .data = sides[0].view,
                .there = sides[1].view,
                .result = sides[2].view};
  return MPI_SUCCESS;
}

/* An operation of which a part has not been handed to the engine, because too much was in
 * flight. */
typedef struct rest {
  /* the window of the operation */
  zwin *w;
  /* the number by which the engine knows the part that is left, or 0 once all has been handed
   * over */
  uint64_t left;
  /* the error of the engine (enum z_error), or Z_OK */
  int failed;
} rest;

static int issued(void *arg) {
  rest *r = arg;
  if (r->left && !r->failed) r->failed = Z_GUARDED(ze_win_more(r->w->id, &r->left));
  return !r->left || r->failed;
}

static int hand_over(zwin *w, const call *k, const z_rma *op, z_cell *cell) {
  rest r = {.w = w};
  r.failed = Z_GUARDED(ze_win_op(w->id, op, cell, &r.left));
  if (!r.failed && r.left) z_wait_links(issued, &r);
  /* the operation on this process's own memory completes here, since a program may do nothing but
   * wait for its effect */
  if (k->target == w->comm->rank) z_poll();
  return r.failed ? zwin_raise_engine(w, r.failed, k->function) : MPI_SUCCESS;
}

/* Starts the operation of a call on the bytes of its types that `form` lists (zflat). */
static int issue(zwin *w, const call *k, int form, z_cell *cell) {
  side sides[3] = {0};
  z_rma op;
  int rc = prepare(w, k, form, &op, sides);
  if (!rc) rc = hand_over(w, k, &op, cell);
  free(sides[0].staged);
  return rc;
}

/* Starts a call's operation; *cell is done when its results have arrived. Where formats of long
 * double differ, a put or get of a type that has long doubles is two operations, because the target
 * must know which bytes to convert: the long doubles, and before them everything else. Answers come
 * in order, so the cell of the last one is enough. */
static int operate(zwin *w, const call *k, z_cell *cell) {
  int elements = k->verb == Z_ACCUMULATE || k->verb == Z_FETCH, rc = MPI_SUCCESS;
  const ztype *t = ztype_get(k->type);
  if (elements || !t || !t->longs) return issue(w, k, elements ? ZFLAT_ELEMENTS : ZFLAT_SPANS, cell);
  const zflat *others = zflat_get(k->type, ZFLAT_REST, &rc);
  if (others && others->n) rc = issue(w, k, ZFLAT_REST, NULL);
  return rc ? rc : issue(w, k, ZFLAT_LONGS, cell);
}

static int now(MPI_Win win, const call *k) {
  zwin *w = zwin_find(win);
  return k->target == MPI_PROC_NULL ? MPI_SUCCESS : operate(w, k, NULL);
}

static int by_request(MPI_Win win, const call *k, MPI_Request *request) {
  zwin *w = zwin_find(win);
  zreq *r = zreq_new(w->comm, ZREQ_SEND, k->function);
  int rc = MPI_SUCCESS;
  if (k->target == MPI_PROC_NULL) r->cell.done = 1;
  else rc = operate(w, k, &r->cell);
  if (rc) zreq_free(r);
  else *request = r->handle;
  return rc;
}

/* ---- operators ---- */

static int bad_operator(MPI_Win win, const char *function) {
  return zwin_raise(zwin_find(win), MPI_ERR_OP, function, "only predefined operators can be used on windows");
}

/* ---- the functions ---- */

#define WRITES(VERB, FN, NAME)                                                                                \
  (call) {                                                                                                    \
    .function = NAME, .verb = VERB, .fn = FN, .data = from, .data_count = n, .data_type = ft, .target = rank, \
    .disp = disp, .count = m, .type = tt                                                                      \
  }
#define READS(VERB, FN, NAME)                                                                                       \
  (call) {                                                                                                          \
    .function = NAME, .verb = VERB, .fn = FN, .result = from, .result_count = n, .result_type = ft, .target = rank, \
    .disp = disp, .count = m, .type = tt                                                                            \
  }
#define BOTH(VERB, FN, NAME)                                                                                    \
  (call) {                                                                                                      \
    .function = NAME, .verb = VERB, .fn = FN, .data = from, .data_count = n, .data_type = ft, .result = result, \
    .result_count = rn, .result_type = rt, .target = rank, .disp = disp, .count = m, .type = tt                 \
  }

int z_Put(const void *from, int n, MPI_Datatype ft, int rank, MPI_Aint disp, int m, MPI_Datatype tt, MPI_Win win) {
  return now(win, &WRITES(Z_PUT, Z_REPLACE, "MPI_Put"));
}
int z_Rput(const void *from, int n, MPI_Datatype ft, int rank, MPI_Aint disp, int m, MPI_Datatype tt, MPI_Win win,
           MPI_Request *request) {
  return by_request(win, &WRITES(Z_PUT, Z_REPLACE, "MPI_Rput"), request);
}
int z_Get(void *from, int n, MPI_Datatype ft, int rank, MPI_Aint disp, int m, MPI_Datatype tt, MPI_Win win) {
  return now(win, &READS(Z_GET, Z_NO_OP, "MPI_Get"));
}
int z_Rget(void *from, int n, MPI_Datatype ft, int rank, MPI_Aint disp, int m, MPI_Datatype tt, MPI_Win win,
           MPI_Request *request) {
  return by_request(win, &READS(Z_GET, Z_NO_OP, "MPI_Rget"), request);
}
int z_Accumulate(const void *from, int n, MPI_Datatype ft, int rank, MPI_Aint disp, int m, MPI_Datatype tt, MPI_Op op,
                 MPI_Win win) {
  int fn = zop_fn(op);
  return fn ? now(win, &WRITES(Z_ACCUMULATE, fn, "MPI_Accumulate")) : bad_operator(win, "MPI_Accumulate");
}
int z_Raccumulate(const void *from, int n, MPI_Datatype ft, int rank, MPI_Aint disp, int m, MPI_Datatype tt, MPI_Op op,
                  MPI_Win win, MPI_Request *request) {
  int fn = zop_fn(op);
  return fn ? by_request(win, &WRITES(Z_ACCUMULATE, fn, "MPI_Raccumulate"), request)
            : bad_operator(win, "MPI_Raccumulate");
}
int z_Get_accumulate(const void *from, int n, MPI_Datatype ft, void *result, int rn, MPI_Datatype rt, int rank,
                     MPI_Aint disp, int m, MPI_Datatype tt, MPI_Op op, MPI_Win win) {
  int fn = zop_fn(op);
  return fn ? now(win, &BOTH(Z_FETCH, fn, "MPI_Get_accumulate")) : bad_operator(win, "MPI_Get_accumulate");
}
int z_Rget_accumulate(const void *from, int n, MPI_Datatype ft, void *result, int rn, MPI_Datatype rt, int rank,
                      MPI_Aint disp, int m, MPI_Datatype tt, MPI_Op op, MPI_Win win, MPI_Request *request) {
  int fn = zop_fn(op);
  return fn ? by_request(win, &BOTH(Z_FETCH, fn, "MPI_Rget_accumulate"), request)
            : bad_operator(win, "MPI_Rget_accumulate");
}

int z_Fetch_and_op(const void *from, void *result, MPI_Datatype type, int rank, MPI_Aint disp, MPI_Op op, MPI_Win win) {
  enum { n = 1, rn = 1, m = 1 };
  MPI_Datatype ft = type, rt = type, tt = type;
  int fn = zop_fn(op);
  return fn ? now(win, &BOTH(Z_FETCH, fn, "MPI_Fetch_and_op")) : bad_operator(win, "MPI_Fetch_and_op");
}

/* Returns whether compare and swap is defined for a type: one of integers, logical values or bytes.
 * A type whose z_number is -1 may be one of these for which there is no arithmetic. */
static int swappable(MPI_Datatype type) {
  int rc;
  const zflat *f = zflat_get(type, ZFLAT_ELEMENTS, &rc);
  return f && (f->number < Z_F32 || f->number > Z_CLONG) && f->number < Z_FLOAT_INT;
}

int z_Compare_and_swap(const void *value, const void *compare, void *result, MPI_Datatype type, int rank, MPI_Aint disp,
                       MPI_Win win) {
  enum { rn = 1, m = 1, n = 2 };
  char from[64]; /* the new value and the value to compare with */
  MPI_Datatype ft = type, rt = type, tt = type;
  const ztype *t = ztype_get(type);
  if (!t || !t->predefined || !t->contiguous || t->size > (int)sizeof from / 2 || !swappable(type))
    return zwin_raise(zwin_find(win), MPI_ERR_TYPE, "MPI_Compare_and_swap",
                      "the type must be of integers, logical values or bytes");
  if (rank == MPI_PROC_NULL) return MPI_SUCCESS; /* the buffers may be NULL */
  if (!value || !compare) return zwin_raise(zwin_find(win), MPI_ERR_BUFFER, "MPI_Compare_and_swap", "a buffer is NULL");
  int rc = ztype_pack(value, 1, type, from, z_private);
  if (!rc) rc = ztype_pack(compare, 1, type, from + t->size, z_private);
  if (rc) return zwin_raise(zwin_find(win), rc, "MPI_Compare_and_swap", zdevice_blame("a buffer cannot be read"));
  return now(win, &BOTH(Z_SWAP, Z_REPLACE, "MPI_Compare_and_swap"));
}
