/* Datatypes as spans of bytes, the form that the engine at the target can use, whose MPI library
 * may be another one. MPI_Type_get_contents yields a type's parts; the result is cached until the
 * type is freed. */
#include "type/wintype.h"
#include "core/job.h"
#include "type/type.h"
#include <limits.h>
#include <stddef.h>
#include <string.h>

/* ---- growing lists ---- */

static int add_span(zflat **list, int64_t off, int64_t len) {
  zflat *l = *list;
  if (len == 0) return MPI_SUCCESS;
  if (l->n && l->spans[l->n - 1].off + l->spans[l->n - 1].len == off) {
    l->spans[l->n - 1].len += len;
    return MPI_SUCCESS;
  }
  if (l->n == l->room) {
    l = realloc(l, sizeof *l + (size_t)(2 * l->room + 4) * sizeof *l->spans);
    if (!l) return MPI_ERR_NO_MEM;
    l->room = 2 * l->room + 4;
    *list = l;
  }
  l->spans[l->n++] = (z_span){off, len};
  return MPI_SUCCESS;
}

/* Appends data to a list in the form ZFLAT_SIGNATURE. */
static int add_run(zflat **list, int is_long, int64_t len) {
  zflat *l = *list;
  if (l->n && l->spans[l->n - 1].off == is_long) {
    l->spans[l->n - 1].len += len;
    return MPI_SUCCESS;
  }
  /* A span is only joined with one that ends where it begins, which no offset in this form does */
  int rc = add_span(list, is_long - 1 - INT_MAX, len);
  if (!rc && len) (*list)->spans[(*list)->n - 1].off = is_long;
  return rc;
}

/* Appends a piece of an element to a list, if the list's form has such pieces. */
static int add_piece(zflat **list, int is_long, int64_t off, int64_t len) {
  switch ((*list)->form) {
  case ZFLAT_LONGS: return is_long ? add_span(list, off, len) : MPI_SUCCESS;
  case ZFLAT_REST: return is_long ? MPI_SUCCESS : add_span(list, off, len);
  case ZFLAT_SIGNATURE: return add_run(list, is_long, len);
  default: return add_span(list, off, len);
  }
}

static zflat *empty(int form) {
  zflat *l = calloc(1, sizeof *l);
  if (l) l->number = Z_BYTES, l->form = form;
  return l;
}

/* Combines the z_number of a list of spans with that of further elements: it becomes -1 if the
 * elements differ. Z_BYTES means that there are no elements yet. */
static void mix(zflat *l, int number) {
  if (l->number == Z_BYTES) l->number = number;
  else if (number != Z_BYTES && number != l->number) l->number = -1;
}

/* ---- predefined types ---- */

static int integer(size_t size, int is_signed) {
  switch (size) {
  case 1: return is_signed ? Z_I8 : Z_U8;
  case 2: return is_signed ? Z_I16 : Z_U16;
  case 4: return is_signed ? Z_I32 : Z_U32;
  case 8: return is_signed ? Z_I64 : Z_U64;
  }
  return -1;
}
static int real_number(size_t size) { return size == 4 ? Z_F32 : size == 8 ? Z_F64 : -1; }
static int complex_number(size_t size) { return size == 8 ? Z_C32 : size == 16 ? Z_C64 : -1; }
static int logical(size_t size) {
  return size == 1 ? Z_L8 : size == 2 ? Z_L16 : size == 4 ? Z_L32 : size == 8 ? Z_L64 : -1;
}

static int one_of(MPI_Datatype type, const MPI_Datatype *list, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (list[i] != MPI_DATATYPE_NULL && list[i] == type) return 1;
  return 0;
}
#define ONE_OF(type, ...) \
  one_of(type, (const MPI_Datatype[]){__VA_ARGS__}, sizeof(MPI_Datatype[]){__VA_ARGS__} / sizeof(MPI_Datatype))

/* Returns the number (z_number) by which the engine knows the elements of a predefined type of
 * `size` bytes, or -1 if its bytes can be moved but nothing can be computed with them. */
static int number_of(MPI_Datatype t, size_t size) {
  if (ONE_OF(t, MPI_BYTE, MPI_PACKED)) return Z_U8;
  if (ONE_OF(t, MPI_CHAR)) return CHAR_MIN < 0 ? Z_I8 : Z_U8;
  if (ONE_OF(t, MPI_SIGNED_CHAR, MPI_SHORT, MPI_INT, MPI_LONG, MPI_LONG_LONG, MPI_INT8_T, MPI_INT16_T, MPI_INT32_T,
             MPI_INT64_T, MPI_AINT, MPI_OFFSET, MPI_COUNT, MPI_INTEGER, MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4,
             MPI_INTEGER8, MPI_WCHAR))
    return integer(size, 1);
  if (ONE_OF(t, MPI_UNSIGNED_CHAR, MPI_UNSIGNED_SHORT, MPI_UNSIGNED, MPI_UNSIGNED_LONG, MPI_UNSIGNED_LONG_LONG,
             MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T, MPI_CHARACTER))
    return integer(size, 0);
  if (ONE_OF(t, MPI_LONG_DOUBLE)) return Z_FLONG;
  if (ONE_OF(t, MPI_FLOAT, MPI_DOUBLE, MPI_REAL, MPI_DOUBLE_PRECISION, MPI_REAL4, MPI_REAL8)) return real_number(size);
  if (ONE_OF(t, MPI_C_LONG_DOUBLE_COMPLEX, MPI_CXX_LONG_DOUBLE_COMPLEX)) return Z_CLONG;
  if (ONE_OF(t, MPI_C_COMPLEX, MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_COMPLEX, MPI_DOUBLE_COMPLEX, MPI_COMPLEX8,
             MPI_COMPLEX16, MPI_CXX_FLOAT_COMPLEX, MPI_CXX_DOUBLE_COMPLEX))
    return complex_number(size);
  if (ONE_OF(t, MPI_C_BOOL, MPI_CXX_BOOL, MPI_LOGICAL)) return logical(size);
  return -1;
}

/* The layout in C of a pair type such as MPI_DOUBLE_INT, in bytes: the size of the first part, the
 * offset and the size of the second part, and the whole size. */
typedef struct pair {
  int number;
  int64_t first, at, second, whole;
} pair;

#define PAIR(NUMBER, V, I)         \
  (pair) {                         \
    NUMBER, sizeof(V),             \
        offsetof(                  \
            struct {               \
              V v;                 \
              I i;                 \
            },                     \
            i),                    \
        sizeof(I), sizeof(struct { \
          V v;                     \
          I i;                     \
        })                         \
  }

static int pair_of(MPI_Datatype t, pair *p) {
  if (ONE_OF(t, MPI_FLOAT_INT)) *p = PAIR(Z_FLOAT_INT, float, int);
  else if (ONE_OF(t, MPI_DOUBLE_INT)) *p = PAIR(Z_DOUBLE_INT, double, int);
  else if (ONE_OF(t, MPI_LONG_INT)) *p = PAIR(Z_LONG_INT, long, int);
  else if (ONE_OF(t, MPI_2INT, MPI_2INTEGER)) *p = PAIR(Z_2INT, int, int);
  else if (ONE_OF(t, MPI_SHORT_INT)) *p = PAIR(Z_SHORT_INT, short, int);
  else if (ONE_OF(t, MPI_LONG_DOUBLE_INT)) *p = PAIR(Z_LONG_DOUBLE_INT, long double, int);
  else if (ONE_OF(t, MPI_2REAL)) *p = PAIR(Z_2FLOAT, float, float);
  else if (ONE_OF(t, MPI_2DOUBLE_PRECISION)) *p = PAIR(Z_2DOUBLE, double, double);
  else return 0;
  return 1;
}

/* Appends the spans of one element of a type that has no parts to *out. f90 is 'r', 'c' or 'i' for
 * a real, complex or integer type of MPI_Type_create_f90_…, otherwise 0. Returns an MPI error
 * class. */
static int leaf(MPI_Datatype type, char f90, zflat **out) {
  int size, rc = real.Type_size(type, &size), number;
  pair p;
  if (rc) return rc;
  if (pair_of(type, &p)) {
    mix(*out, p.number);
    if ((*out)->form == ZFLAT_ELEMENTS) return add_span(out, 0, p.whole);
    rc = add_piece(out, p.number == Z_LONG_DOUBLE_INT, 0, p.first);
    return rc ? rc : add_piece(out, 0, p.at, p.second);
  }
  switch (f90) {
  case 'r': number = real_number((size_t)size); break;
  case 'c': number = complex_number((size_t)size); break;
  case 'i': number = integer((size_t)size, 1); break;
  default: number = number_of(type, (size_t)size);
  }
  if (number < 0) (*out)->number = -1;
  else mix(*out, number);
  return add_piece(out, number == Z_FLONG || number == Z_CLONG, 0, size);
}

/* ---- derived types ---- */

static int flatten(MPI_Datatype type, zflat **out);

/* A part of a derived type: one of the types from which the type was made. */
typedef struct part {
  zflat *flat;     /* the spans of the part's type */
  MPI_Aint extent; /* the extent of the part's type in bytes */
} part;

/* Does the work of `repeat` for the form ZFLAT_SIGNATURE. */
static int repeat_runs(zflat **out, const zflat *of, int64_t n) {
  int rc = MPI_SUCCESS;
  if (of->n == 1 && n > 0) return add_run(out, (int)of->spans[0].off, n * of->spans[0].len);
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < of->n && !rc; k++) rc = add_run(out, (int)of->spans[k].off, of->spans[k].len);
  return rc;
}

/* Appends the spans of n consecutive copies of a part to *out, from offset `at` on. Returns an MPI
 * error class. */
static int repeat(zflat **out, const part *p, int64_t at, int64_t n) {
  int rc = MPI_SUCCESS;
  if ((*out)->form == ZFLAT_SIGNATURE) return repeat_runs(out, p->flat, n);
  if (p->flat->n == 1 && p->flat->spans[0].len == p->extent)
    return add_span(out, at + p->flat->spans[0].off, n * p->extent);
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < p->flat->n && !rc; k++)
      rc = add_span(out, at + i * p->extent + p->flat->spans[k].off, p->flat->spans[k].len);
  return rc;
}

/* The indices of one dimension of an array that a type selects, of `size` indices in all: blocks of
 * `block` indices from index `first` on, one every `step`, up to `end`. */
typedef struct dimension {
  int64_t size, first, block, step, end;
} dimension;

/* Appends the spans of the selected elements of an array to *out, in the dimensions 0 to dim, of
 * which dimension 0 varies fastest. `offset` is the offset in bytes of the element that has index 0
 * in all these dimensions. Returns an MPI error class. */
static int chosen(zflat **out, const part *p, const dimension *dims, int dim, int64_t offset) {
  const dimension *d = &dims[dim];
  int64_t unit = p->extent;
  int rc = MPI_SUCCESS;
  for (int k = 0; k < dim; k++) unit *= dims[k].size;
  for (int64_t from = d->first; from < d->end && !rc; from += d->step) {
    int64_t n = d->end - from < d->block ? d->end - from : d->block;
    if (dim == 0) rc = repeat(out, p, offset + from * unit, n);
    else
      for (int64_t i = 0; i < n && !rc; i++) rc = chosen(out, p, dims, dim - 1, offset + (from + i) * unit);
  }
  return rc;
}

/* Below the standard ABI, Open MPI 6.0 and MPICH 5.0 return their own constants for orders and
 * distributions instead of the program's. All these numbers differ. */
#ifdef Z_STANDARD_ABI
enum { OMPI_ORDER_C = 0, MPICH_ORDER_C = 56, OMPI_NONE = 2, MPICH_NONE = 123, OMPI_BLOCK = 0, MPICH_BLOCK = 121 };
enum { OMPI_DARG = -1, MPICH_DARG = -49767 };
#define IS(x, standard, openmpi, mpich) ((x) == (standard) || (x) == (openmpi) || (x) == (mpich))
#else
#define IS(x, standard, openmpi, mpich) ((x) == (standard))
#endif

/* Returns the indices of a dimension of `size` indices that belong to the process with coordinate
 * `me` of n in that dimension; how and arg are the arguments of MPI_Type_create_darray. */
static dimension distribution(int64_t size, int64_t how, int64_t arg, int64_t n, int64_t me) {
  int64_t block = arg;
  if (IS(how, MPI_DISTRIBUTE_NONE, OMPI_NONE, MPICH_NONE)) block = size;
  else if (IS(arg, MPI_DISTRIBUTE_DFLT_DARG, OMPI_DARG, MPICH_DARG))
    block = IS(how, MPI_DISTRIBUTE_BLOCK, OMPI_BLOCK, MPICH_BLOCK) ? (size + n - 1) / n : 1;
  return (dimension){size, me * block, block, n * block, size};
}

/* Appends the spans of a subarray or a distributed array (combiner) of elements *p to *out; args
 * are the arguments of the constructor. Returns an MPI error class. */
static int array(zflat **out, const part *p, int combiner, const int64_t *args) {
  int subarray = combiner == MPI_COMBINER_SUBARRAY, n = (int)(subarray ? args[0] : args[2]);
  const int64_t *sizes = subarray ? args + 1 : args + 3;
  /* of a subarray: the sub-sizes and the starts */
  const int64_t *hows = sizes + n, *darg = hows + n, *grid = darg + n;
  int64_t order = subarray ? darg[n] : grid[n], rank = args[1];
  dimension dims[n];
  for (int k = n - 1; k >= 0; k--) { /* the last dimension of the process grid varies fastest */
    int d = IS(order, MPI_ORDER_C, OMPI_ORDER_C, MPICH_ORDER_C) ? n - 1 - k : k;
    if (subarray) dims[d] = (dimension){sizes[k], darg[k], hows[k], hows[k], darg[k] + hows[k]};
    else {
      dims[d] = distribution(sizes[k], hows[k], darg[k], grid[k], rank % grid[k]);
      rank /= grid[k];
    }
  }
  return chosen(out, p, dims, n - 1, 0);
}

static int derived(int combiner, const int64_t *args, const part *parts, zflat **out) {
  const part *p = parts;
  int64_t n = args[0];
  int rc = MPI_SUCCESS;
  switch (combiner) {
  case MPI_COMBINER_DUP:
  case MPI_COMBINER_RESIZED: return repeat(out, p, 0, 1);
  case MPI_COMBINER_CONTIGUOUS: return repeat(out, p, 0, n);
  case MPI_COMBINER_SUBARRAY:
  case MPI_COMBINER_DARRAY: return array(out, p, combiner, args);
  }
  for (int64_t i = 0; i < n && !rc; i++) {
    switch (combiner) {
    case MPI_COMBINER_VECTOR: rc = repeat(out, p, i * args[2] * p->extent, args[1]); break;
    case MPI_COMBINER_HVECTOR: rc = repeat(out, p, i * args[2], args[1]); break;
    case MPI_COMBINER_INDEXED: rc = repeat(out, p, args[1 + n + i] * p->extent, args[1 + i]); break;
    case MPI_COMBINER_HINDEXED: rc = repeat(out, p, args[1 + n + i], args[1 + i]); break;
    case MPI_COMBINER_INDEXED_BLOCK: rc = repeat(out, p, args[2 + i] * p->extent, args[1]); break;
    case MPI_COMBINER_HINDEXED_BLOCK: rc = repeat(out, p, args[2 + i], args[1]); break;
    case MPI_COMBINER_STRUCT: rc = repeat(out, &parts[i], args[1 + n + i], args[1 + i]); break;
    default: rc = MPI_ERR_TYPE;
    }
  }
  return rc;
}

static int64_t *append(int64_t *to, const int *from, MPI_Count n) {
  for (MPI_Count i = 0; i < n; i++) *to++ = from[i];
  return to;
}

/* Stores the arguments of a type's constructor in args, except the datatypes, which go to types.
 * They are in the order of the constructor, whichever of its two forms the program has called. The
 * counts of a big-count function are in an array of their own, and its addresses are counts too.
 * Returns an MPI error code. */
static int arguments(MPI_Datatype type, const zmade *m, int64_t *args, MPI_Datatype *types) {
  int *ints = malloc(((size_t)m->ints + 1) * sizeof *ints), rc = MPI_ERR_NO_MEM;
  MPI_Aint *addresses = malloc(((size_t)m->addresses + 1) * sizeof *addresses);
  MPI_Count *counts = malloc(((size_t)m->counts + 1) * sizeof *counts), before = m->ints;
  if (ints && addresses && counts) rc = ztype_contents(type, m, ints, addresses, counts, types);
  if (!rc) {
    if (m->combiner == MPI_COMBINER_SUBARRAY) before = 1; /* the number of dimensions */
    /* the size, the rank and the number of dimensions */
    if (m->combiner == MPI_COMBINER_DARRAY) before = 3;
    args = append(args, ints, before);
    for (MPI_Count i = 0; i < m->counts; i++) *args++ = counts[i];
    args = append(args, ints + before, m->ints - before);
    for (MPI_Count i = 0; i < m->addresses; i++) *args++ = addresses[i];
  }
  free(ints), free(addresses), free(counts);
  return rc;
}

/* Appends the spans of one element of a derived type, whose constructor is *m, to *out. Returns an
 * MPI error code. */
static int contents(MPI_Datatype type, const zmade *m, zflat **out) {
  int64_t *args = calloc((size_t)(m->ints + m->addresses + m->counts) + 1, sizeof *args);
  MPI_Datatype *types = malloc(((size_t)m->types + 1) * sizeof *types);
  part *parts = calloc((size_t)m->types + 1, sizeof *parts);
  MPI_Aint lb;
  int rc = args && types && parts ? arguments(type, m, args, types) : MPI_ERR_NO_MEM;
  MPI_Count got = rc ? 0 : m->types;
  for (MPI_Count i = 0; i < got; i++) {
    if (!rc && !(parts[i].flat = empty((*out)->form))) rc = MPI_ERR_NO_MEM;
    if (!rc) rc = flatten(types[i], &parts[i].flat);
    if (!rc) rc = real.Type_get_extent(types[i], &lb, &parts[i].extent);
    if (!rc) mix(*out, parts[i].flat->number);
    const ztype *t = ztype_get(types[i]);
    if (!t || !t->predefined) real.Type_free(&types[i]);
  }
  if (!rc) rc = derived(m->combiner, args, parts, out);
  for (MPI_Count i = 0; i < got; i++) free(parts[i].flat);
  free(args), free(types), free(parts);
  return rc;
}

static int flatten(MPI_Datatype type, zflat **out) {
  zmade m;
  int rc = ztype_made(type, &m);
  if (rc) return rc;
  switch (m.combiner) {
  case MPI_COMBINER_NAMED: return leaf(type, 0, out);
  case MPI_COMBINER_F90_REAL: return leaf(type, 'r', out);
  case MPI_COMBINER_F90_COMPLEX: return leaf(type, 'c', out);
  case MPI_COMBINER_F90_INTEGER: return leaf(type, 'i', out);
  }
  return contents(type, &m, out);
}

_Static_assert((int)ZFLAT_FORMS == (int)ZTYPE_FORMS, "a type has room for all forms");

const zflat *zflat_get(MPI_Datatype type, int form, int *rc) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  ztype *t = (ztype *)(uintptr_t)ztype_get(type);
  if (!t) {
    *rc = MPI_ERR_TYPE;
    return NULL;
  }
  z_lock(&lock);
  zflat *f = t->flat[form];
  *rc = MPI_SUCCESS;
  if (!f) {
    *rc = (f = empty(form)) ? flatten(type, &f) : MPI_ERR_NO_MEM;
    if (*rc) free(f), f = NULL;
    t->flat[form] = f;
  }
  z_unlock(&lock);
  return f;
}
