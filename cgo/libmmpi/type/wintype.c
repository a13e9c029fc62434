/* Datatypes as spans of bytes: what the engine's thread at the target, whose MPI library may be
 * another one, can go by. A type is taken apart by MPI_Type_get_contents once; the result is kept
 * until the type is freed. */
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

static zflat *empty(void) {
  zflat *l = calloc(1, sizeof *l);
  if (l) l->number = Z_BYTES;
  return l;
}

/* Of different elements there is no one number. Z_BYTES: there are none yet. */
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

/* -1: nothing can be computed with it, but bytes can be moved. */
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

/* Pairs: where the second part lies, as C lays them out. */
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

/* A type without parts. f90: 'r', 'c', 'i' for a parameterized type of Fortran, else 0. */
static int leaf(MPI_Datatype type, int elements, char f90, zflat **out) {
  int size, rc = real.Type_size(type, &size), number;
  pair p;
  if (rc) return rc;
  if (pair_of(type, &p)) {
    mix(*out, p.number);
    if (elements) return add_span(out, 0, p.whole);
    rc = add_span(out, 0, p.first);
    return rc ? rc : add_span(out, p.at, p.second);
  }
  switch (f90) {
  case 'r': number = real_number((size_t)size); break;
  case 'c': number = complex_number((size_t)size); break;
  case 'i': number = integer((size_t)size, 1); break;
  default: number = number_of(type, (size_t)size);
  }
  if (number < 0) (*out)->number = -1;
  else mix(*out, number);
  return add_span(out, 0, size);
}

/* ---- derived types ---- */

static int flatten(MPI_Datatype type, int elements, zflat **out);

/* What a derived type is made of. */
typedef struct part {
  zflat *flat;
  MPI_Aint extent;
} part;

/* n of a part one after the other from `at` on. */
static int repeat(zflat **out, const part *p, int64_t at, int64_t n) {
  int rc = MPI_SUCCESS;
  if (p->flat->n == 1 && p->flat->spans[0].len == p->extent)
    return add_span(out, at + p->flat->spans[0].off, n * p->extent);
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < p->flat->n && !rc; k++)
      rc = add_span(out, at + i * p->extent + p->flat->spans[k].off, p->flat->spans[k].len);
  return rc;
}

/* Elements of an array by lists of indices, the fastest dimension first. */
static int tuples(zflat **out, const part *p, int dims, int *const *index, const int *count, const int *size, int dim,
                  int64_t offset) {
  int64_t step = p->extent;
  int rc = MPI_SUCCESS;
  for (int d = 0; d < dim; d++) step *= size[d];
  for (int i = 0; i < count[dim] && !rc; i++) {
    int64_t at = offset + index[dim][i] * step;
    rc = dim == 0 ? repeat(out, p, at, 1) : tuples(out, p, dims, index, count, size, dim - 1, at);
  }
  return rc;
}

/* Below the standard ABI Open MPI 6.0 and MPICH 5.0 give back constants of their own for orders and
 * distributions, in place of the program's. No two of them are alike. */
#ifdef Z_STANDARD_ABI
enum { OMPI_ORDER_C = 0, MPICH_ORDER_C = 56, OMPI_NONE = 2, MPICH_NONE = 123, OMPI_BLOCK = 0, MPICH_BLOCK = 121 };
enum { OMPI_DARG = -1, MPICH_DARG = -49767 };
#define IS(x, standard, openmpi, mpich) ((x) == (standard) || (x) == (openmpi) || (x) == (mpich))
#else
#define IS(x, standard, openmpi, mpich) ((x) == (standard))
#endif

/* Which indices of a dimension of `size` a process has whose coordinate is `me` of n. The list has
 * room for all. */
static int distribution(int size, int how, int arg, int n, int me, int *list) {
  int count = 0, block = arg;
  if (IS(how, MPI_DISTRIBUTE_NONE, OMPI_NONE, MPICH_NONE)) block = size;
  else if (IS(arg, MPI_DISTRIBUTE_DFLT_DARG, OMPI_DARG, MPICH_DARG))
    block = IS(how, MPI_DISTRIBUTE_BLOCK, OMPI_BLOCK, MPICH_BLOCK) ? (size + n - 1) / n : 1;
  for (int i = 0; i < size; i++)
    if (i / block % n == me) list[count++] = i;
  return count;
}

/* Subarrays and distributed arrays. */
static int array(zflat **out, const part *p, int combiner, const int *ints) {
  int dims = combiner == MPI_COMBINER_SUBARRAY ? ints[0] : ints[2], rc = MPI_SUCCESS;
  const int *sizes = combiner == MPI_COMBINER_SUBARRAY ? ints + 1 : ints + 3;
  const int *hows = sizes + dims, *args = hows + dims, *grid = args + dims; /* subarray: sub-sizes, starts */
  int order = combiner == MPI_COMBINER_SUBARRAY ? args[dims] : grid[dims], rank = ints[1];
  int *index[dims], count[dims], size[dims];
  memset(index, 0, sizeof index);
  for (int k = dims - 1; k >= 0; k--) { /* the last dimension of the grid of processes varies fastest */
    int d = IS(order, MPI_ORDER_C, OMPI_ORDER_C, MPICH_ORDER_C) ? dims - 1 - k : k;
    size[d] = sizes[k];
    if (!(index[d] = malloc(((size_t)sizes[k] + 1) * sizeof(int)))) {
      rc = MPI_ERR_NO_MEM;
      continue;
    }
    if (combiner == MPI_COMBINER_SUBARRAY) {
      count[d] = hows[k];
      for (int i = 0; i < hows[k]; i++) index[d][i] = args[k] + i;
    } else {
      count[d] = distribution(sizes[k], hows[k], args[k], grid[k], rank % grid[k], index[d]);
      rank /= grid[k];
    }
  }
  if (!rc) rc = tuples(out, p, dims, index, count, size, dims - 1, 0);
  for (int d = 0; d < dims; d++) free(index[d]);
  return rc;
}

static int derived(int combiner, const int *ints, const MPI_Aint *addresses, const part *parts, zflat **out) {
  const part *p = parts;
  int n = ints[0], rc = MPI_SUCCESS;
  switch (combiner) {
  case MPI_COMBINER_DUP:
  case MPI_COMBINER_RESIZED: return repeat(out, p, 0, 1);
  case MPI_COMBINER_CONTIGUOUS: return repeat(out, p, 0, n);
  case MPI_COMBINER_SUBARRAY:
  case MPI_COMBINER_DARRAY: return array(out, p, combiner, ints);
  }
  for (int i = 0; i < n && !rc; i++) {
    switch (combiner) {
    case MPI_COMBINER_VECTOR: rc = repeat(out, p, (int64_t)i * ints[2] * p->extent, ints[1]); break;
    case MPI_COMBINER_HVECTOR: rc = repeat(out, p, i * (int64_t)addresses[0], ints[1]); break;
    case MPI_COMBINER_INDEXED: rc = repeat(out, p, ints[1 + n + i] * (int64_t)p->extent, ints[1 + i]); break;
    case MPI_COMBINER_HINDEXED: rc = repeat(out, p, addresses[i], ints[1 + i]); break;
    case MPI_COMBINER_INDEXED_BLOCK: rc = repeat(out, p, ints[2 + i] * (int64_t)p->extent, ints[1]); break;
    case MPI_COMBINER_HINDEXED_BLOCK: rc = repeat(out, p, addresses[i], ints[1]); break;
    case MPI_COMBINER_STRUCT: rc = repeat(out, &parts[i], addresses[i], ints[1 + i]); break;
    default: rc = MPI_ERR_TYPE;
    }
  }
  return rc;
}

/* Takes the type's own list of parts apart. */
static int contents(MPI_Datatype type, int elements, int ni, int na, int nt, int combiner, zflat **out) {
  int *ints = malloc(((size_t)ni + 1) * sizeof *ints), rc = MPI_ERR_NO_MEM;
  MPI_Aint *addresses = malloc(((size_t)na + 1) * sizeof *addresses), lb;
  MPI_Datatype *types = malloc(((size_t)nt + 1) * sizeof *types);
  part *parts = calloc((size_t)nt + 1, sizeof *parts);
  if (ints && addresses && types && parts) rc = real.Type_get_contents(type, ni, na, nt, ints, addresses, types);
  for (int i = 0; i < nt && !rc; i++) {
    if (!(parts[i].flat = empty())) rc = MPI_ERR_NO_MEM;
    else if (!(rc = flatten(types[i], elements, &parts[i].flat)))
      rc = real.Type_get_extent(types[i], &lb, &parts[i].extent);
    if (parts[i].flat) mix(*out, parts[i].flat->number);
    const ztype *t = ztype_get(types[i]);
    if (!t || !t->predefined) real.Type_free(&types[i]);
  }
  if (!rc && ni == 0) ints[0] = 1;
  if (!rc) rc = derived(combiner, ints, addresses, parts, out);
  for (int i = 0; i < nt && parts; i++) free(parts[i].flat);
  free(ints), free(addresses), free(types), free(parts);
  return rc;
}

static int flatten(MPI_Datatype type, int elements, zflat **out) {
  zmade m;
  int rc = ztype_made(type, &m);
  if (rc || m.counts) return rc ? rc : MPI_ERR_TYPE; /* of a big-count function: its contents have another form */
  switch (m.combiner) {
  case MPI_COMBINER_NAMED: return leaf(type, elements, 0, out);
  case MPI_COMBINER_F90_REAL: return leaf(type, elements, 'r', out);
  case MPI_COMBINER_F90_COMPLEX: return leaf(type, elements, 'c', out);
  case MPI_COMBINER_F90_INTEGER: return leaf(type, elements, 'i', out);
  }
  return contents(type, elements, (int)m.ints, (int)m.addresses, (int)m.types, m.combiner, out);
}

const zflat *zflat_get(MPI_Datatype type, int elements, int *rc) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  ztype *t = (ztype *)(uintptr_t)ztype_get(type);
  if (!t) {
    *rc = MPI_ERR_TYPE;
    return NULL;
  }
  z_lock(&lock);
  zflat *f = t->flat[elements];
  *rc = MPI_SUCCESS;
  if (!f) {
    *rc = (f = empty()) ? flatten(type, elements, &f) : MPI_ERR_NO_MEM;
    if (*rc) free(f), f = NULL;
    t->flat[elements] = f;
  }
  z_unlock(&lock);
  return f;
}
