/* Datatypes of native MPI. A type is its map: the bytes of every elementary piece, in order. The
 * constructors follow MPI's definitions element by element, which is slow and simple, so that
 * wintype.c can be compared with them. */
#include "core/privcomm.h"
#include "fake_install.h"
#include <stddef.h>
#include <string.h>

enum { TYPES = 512, PIECES = 256, PARTS = 8, ARGUMENTS = 64, TYPE = 0x400000 };

typedef struct piece {
  int64_t off, len;
  /* In the first half of a pair: the size of both halves with their gaps. In the second half: -1.
   * Otherwise: len. */
  int64_t whole;
} piece;

typedef struct type {
  MPI_Datatype handle;
  int refs, predefined, uncommitted, combiner;
  int n, ni, na, nc, nt, ints[ARGUMENTS];
  MPI_Aint addresses[ARGUMENTS];
  MPI_Count counts[ARGUMENTS]; /* the counts of a big-count function */
  MPI_Datatype types[PARTS];
  int64_t lb, extent;
  piece map[PIECES];
  void *attribute;
} type;

static type types[TYPES];
static int made;
static MPI_Type_delete_attr_function *deleted; /* the delete callback of the one keyval */
static int keyval_is_free = 1;
enum { KEYVAL = 77 };

static type *new_type(int combiner) {
  FAKE_ASSERT(made < TYPES, "the fake has room for %d types", TYPES);
  type *t = &types[made];
  *t = (type){.handle = (MPI_Datatype)(uintptr_t)(TYPE + 16 * made), .refs = 1, .combiner = combiner};
  made++;
  return t;
}

/* ---- predefined types ---- */

static type *named(MPI_Datatype handle, int64_t size) {
  type *t = new_type(MPI_COMBINER_NAMED);
  t->handle = handle, t->predefined = 1, t->extent = size, t->n = 1;
  t->map[0] = (piece){0, size, size};
  return t;
}

static void pair(MPI_Datatype handle, int64_t first, int64_t at, int64_t second, int64_t whole) {
  type *t = named(handle, whole);
  t->n = 2;
  t->map[0] = (piece){0, first, whole};
  t->map[1] = (piece){at, second, -1};
}

#define PAIR(HANDLE, V, I)        \
  pair(HANDLE, sizeof(V),         \
       offsetof(                  \
           struct {               \
             V v;                 \
             I i;                 \
           },                     \
           i),                    \
       sizeof(I), sizeof(struct { \
         V v;                     \
         I i;                     \
       }))

static void predefined(void) {
  const struct {
    MPI_Datatype handle;
    size_t size;
  } plain[] = {
      {MPI_BYTE, 1},
      {MPI_PACKED, 1},
      {MPI_CHAR, 1},
      {MPI_SIGNED_CHAR, 1},
      {MPI_UNSIGNED_CHAR, 1},
      {MPI_SHORT, sizeof(short)},
      {MPI_INT, sizeof(int)},
      {MPI_UNSIGNED, sizeof(int)},
      {MPI_LONG, sizeof(long)},
      {MPI_UNSIGNED_LONG, sizeof(long)},
      {MPI_FLOAT, sizeof(float)},
      {MPI_DOUBLE, sizeof(double)},
      {MPI_LONG_DOUBLE, sizeof(long double)},
      {MPI_INT8_T, 1},
      {MPI_INT16_T, 2},
      {MPI_INT32_T, 4},
      {MPI_INT64_T, 8},
      {MPI_UINT8_T, 1},
      {MPI_UINT16_T, 2},
      {MPI_UINT32_T, 4},
      {MPI_UINT64_T, 8},
      {MPI_AINT, sizeof(MPI_Aint)},
      {MPI_COUNT, sizeof(MPI_Count)},
      {MPI_C_BOOL, 1},
      {MPI_LOGICAL, 4},
      {MPI_C_FLOAT_COMPLEX, 8},
      {MPI_C_DOUBLE_COMPLEX, 16},
      {MPI_C_LONG_DOUBLE_COMPLEX, 32},
      {MPI_CHARACTER, 1},
      {MPI_REAL, 4},
  };
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) named(plain[i].handle, (int64_t)plain[i].size);
  PAIR(MPI_FLOAT_INT, float, int);
  PAIR(MPI_DOUBLE_INT, double, int);
  PAIR(MPI_LONG_INT, long, int);
  PAIR(MPI_2INT, int, int);
  PAIR(MPI_SHORT_INT, short, int);
  PAIR(MPI_LONG_DOUBLE_INT, long double, int);
}

static type *find(MPI_Datatype handle) {
  for (int i = 0; i < made; i++)
    if (types[i].handle == handle) return &types[i];
  test_fail(__FILE__, __LINE__, "a native function got a datatype that is none");
}

static type *type_of(MPI_Datatype handle) {
  type *t = find(handle);
  FAKE_ASSERT(t->refs > 0, "a native function got a datatype that is freed");
  return t;
}

/* ---- derived types ---- */

static void put(type *t, int64_t at, MPI_Datatype of, int64_t n) {
  const type *part = type_of(of);
  for (int64_t i = 0; i < n; i++)
    for (int k = 0; k < part->n; k++) {
      FAKE_ASSERT(t->n < PIECES, "the fake has room for %d pieces", PIECES);
      piece p = part->map[k];
      p.off += at + i * part->extent;
      t->map[t->n++] = p;
    }
}

/* Appends the elements of an array that belong to a subarray or to a process of a distributed
 * array: those whose every coordinate belongs to it. */
static void choose(type *t, int dims, const int *sizes, int c_order, int (*mine)(const type *, int dim, int at)) {
  int64_t all = 1, extent = type_of(t->types[0])->extent;
  for (int d = 0; d < dims; d++) all *= sizes[d];
  for (int64_t i = 0; i < all; i++) {
    int64_t rest = i;
    int yes = 1;
    for (int k = 0; k < dims; k++) { /* the fastest dimension first */
      int d = c_order ? dims - 1 - k : k;
      yes &= mine(t, d, (int)(rest % sizes[d]));
      rest /= sizes[d];
    }
    if (yes) put(t, i * extent, t->types[0], 1);
  }
  t->lb = 0, t->extent = all * extent;
}

static int in_subarray(const type *t, int d, int at) {
  int dims = t->ints[0], size = t->ints[1 + dims + d], start = t->ints[1 + 2 * dims + d];
  return at >= start && at < start + size;
}

static int in_darray(const type *t, int d, int at) {
  int rank = t->ints[1], dims = t->ints[2];
  const int *sizes = t->ints + 3, *how = sizes + dims, *arg = how + dims, *grid = arg + dims;
  for (int k = dims - 1; k > d; k--) rank /= grid[k]; /* the grid is always in the order of C */
  if (how[d] == MPI_DISTRIBUTE_NONE) return 1;
  int block = arg[d] != MPI_DISTRIBUTE_DFLT_DARG ? arg[d]
              : how[d] == MPI_DISTRIBUTE_BLOCK   ? (sizes[d] + grid[d] - 1) / grid[d]
                                                 : 1;
  return at / block % grid[d] == rank % grid[d];
}

/* Sets *first and *end to the bounds of a type's bytes. */
static void bounds(const type *t, int64_t *first, int64_t *end) {
  *first = *end = 0;
  for (int i = 0; i < t->n; i++) {
    int64_t from = t->map[i].off, to = from + t->map[i].len;
    if (i == 0 || from < *first) *first = from;
    if (i == 0 || to > *end) *end = to;
  }
}

static void construct(type *t) {
  const int *ints = t->ints, n = ints[0];
  MPI_Datatype of = t->types[0];
  int64_t step = type_of(of)->extent, first, end;
  for (int i = 0; i < n; i++) switch (t->combiner) {
    case MPI_COMBINER_CONTIGUOUS: put(t, i * step, of, 1); break;
    case MPI_COMBINER_VECTOR: put(t, i * ints[2] * step, of, ints[1]); break;
    case MPI_COMBINER_HVECTOR: put(t, i * (int64_t)t->addresses[0], of, ints[1]); break;
    case MPI_COMBINER_INDEXED: put(t, ints[1 + n + i] * step, of, ints[1 + i]); break;
    case MPI_COMBINER_HINDEXED: put(t, t->addresses[i], of, ints[1 + i]); break;
    case MPI_COMBINER_INDEXED_BLOCK: put(t, ints[2 + i] * step, of, ints[1]); break;
    case MPI_COMBINER_HINDEXED_BLOCK: put(t, t->addresses[i], of, ints[1]); break;
    case MPI_COMBINER_STRUCT: put(t, t->addresses[i], t->types[i], ints[1 + i]); break;
    }
  if (t->combiner == MPI_COMBINER_DUP || t->combiner == MPI_COMBINER_RESIZED) put(t, 0, of, 1);
  bounds(t, &first, &end);
  t->lb = first, t->extent = end - first;
  switch (t->combiner) {
  case MPI_COMBINER_DUP: t->lb = type_of(of)->lb, t->extent = step; break;
  case MPI_COMBINER_CONTIGUOUS: t->lb = type_of(of)->lb, t->extent = n * step; break;
  case MPI_COMBINER_RESIZED: t->lb = t->addresses[0], t->extent = t->addresses[1]; break;
  case MPI_COMBINER_SUBARRAY: choose(t, n, ints + 1, ints[1 + 3 * n] == MPI_ORDER_C, in_subarray); break;
  case MPI_COMBINER_DARRAY: choose(t, ints[2], ints + 3, ints[3 + 4 * ints[2]] == MPI_ORDER_C, in_darray); break;
  }
}

MPI_Datatype fake_type(int combiner, int ni, const int *ints, int na, const MPI_Aint *addresses, int nt,
                       const MPI_Datatype *parts) {
  type *t = new_type(combiner);
  FAKE_ASSERT(ni <= ARGUMENTS && na <= ARGUMENTS && nt <= PARTS, "the fake has no room for so many arguments");
  t->ni = ni, t->na = na, t->nt = nt;
  for (int i = 0; i < ni; i++) t->ints[i] = ints[i];
  for (int i = 0; i < na; i++) t->addresses[i] = addresses[i];
  for (int i = 0; i < nt; i++) {
    t->types[i] = parts[i];
    if (!type_of(parts[i])->predefined) type_of(parts[i])->refs++;
  }
  construct(t);
  return t->handle;
}

MPI_Datatype fake_f90(int combiner, int64_t size) {
  type *t = named((MPI_Datatype)(uintptr_t)(TYPE + 16 * made), size);
  t->combiner = combiner, t->ni = combiner == MPI_COMBINER_F90_INTEGER ? 1 : 2;
  return t->handle;
}

MPI_Datatype fake_big_count(MPI_Datatype handle) {
  const type *of = type_of(handle);
  FAKE_ASSERT(of->nt > 0 && of->combiner != MPI_COMBINER_DUP, "the type's constructor has no big-count form");
  type *t = type_of(fake_type(of->combiner, of->ni, of->ints, of->na, of->addresses, of->nt, of->types));
  /* The integers from `first` to `end` are counts in the big-count form, in which addresses are
   * counts too. */
  int first = t->combiner == MPI_COMBINER_SUBARRAY ? 1 : t->combiner == MPI_COMBINER_DARRAY ? 3 : 0;
  int end = t->combiner == MPI_COMBINER_SUBARRAY ? t->ni - 1
            : t->combiner == MPI_COMBINER_DARRAY ? 3 + t->ints[2]
                                                 : t->ni;
  t->ni = t->na = 0;
  for (int i = 0; i < of->ni; i++)
    if (i < first || i >= end) t->ints[t->ni++] = of->ints[i];
    else t->counts[t->nc++] = of->ints[i];
  for (int i = 0; i < of->na; i++) t->counts[t->nc++] = of->addresses[i];
  return t->handle;
}

MPI_Datatype fake_huge(int combiner, int ni, const int *ints, int nc, const MPI_Count *counts) {
  type *t = new_type(combiner);
  FAKE_ASSERT(ni <= ARGUMENTS && nc <= ARGUMENTS, "the fake has no room for so many arguments");
  t->ni = ni, t->nc = nc, t->nt = 1, t->types[0] = MPI_BYTE;
  for (int i = 0; i < ni; i++) t->ints[i] = ints[i];
  for (int i = 0; i < nc; i++) t->counts[i] = counts[i];
  return t->handle;
}

MPI_Datatype fake_gapped(int64_t size, int64_t extent) {
  type *t = new_type(MPI_COMBINER_VECTOR);
  t->n = 1, t->extent = extent, t->map[0] = (piece){0, size, size};
  return t->handle;
}

void fake_uncommit(MPI_Datatype handle) { type_of(handle)->uncommitted = 1; }
int fake_committed(MPI_Datatype handle) { return !type_of(handle)->uncommitted; }

/* Drops a reference. The last one deletes the attribute, and drops the types from which this one
 * was made. */
static void drop(type *t) {
  FAKE_ASSERT(!t->predefined, "a predefined datatype is freed");
  if (--t->refs) return;
  t->refs = 1;
  if (t->attribute) deleted(t->handle, KEYVAL, t->attribute, NULL);
  t->refs = 0;
  for (int i = 0; i < t->nt; i++)
    if (!type_of(t->types[i])->predefined) drop(type_of(t->types[i]));
}

void fake_type_free(MPI_Datatype handle) { z_Type_free(&handle); }

int fake_types(void) {
  int n = 0;
  for (int i = 0; i < made; i++) n += types[i].predefined ? 0 : types[i].refs;
  return n;
}

int fake_map(MPI_Datatype handle, int whole, fake_piece *out, int room) {
  const type *t = type_of(handle);
  int n = 0;
  for (int i = 0; i < t->n; i++) {
    int64_t len = whole ? t->map[i].whole : t->map[i].len;
    if (len < 0) continue;
    if (n && out[n - 1].off + out[n - 1].len == t->map[i].off) {
      out[n - 1].len += len;
      continue;
    }
    FAKE_ASSERT(n < room, "the test has no room for the type map");
    out[n++] = (fake_piece){t->map[i].off, len};
  }
  return n;
}

/* ---- native inquiry functions ---- */

static int64_t size_of(const type *t) {
  int64_t size = 0;
  for (int i = 0; i < t->n; i++) size += t->map[i].len;
  return size;
}

static int Type_size(MPI_Datatype handle, int *size) {
  *size = (int)size_of(type_of(handle));
  return MPI_SUCCESS;
}

static int Type_size_x(MPI_Datatype handle, MPI_Count *size) {
  *size = size_of(type_of(handle));
  return MPI_SUCCESS;
}

static int Type_get_extent(MPI_Datatype handle, MPI_Aint *lb, MPI_Aint *extent) {
  *lb = type_of(handle)->lb, *extent = type_of(handle)->extent;
  return MPI_SUCCESS;
}

static int Type_get_true_extent(MPI_Datatype handle, MPI_Aint *lb, MPI_Aint *extent) {
  int64_t first, end;
  bounds(type_of(handle), &first, &end);
  *lb = first, *extent = end - first;
  return MPI_SUCCESS;
}

static int Type_get_envelope(MPI_Datatype handle, int *ni, int *na, int *nt, int *combiner) {
  const type *t = type_of(handle);
  if (t->nc) return MPI_ERR_TYPE;
  *ni = t->ni, *na = t->na, *nt = t->nt, *combiner = t->combiner;
  return MPI_SUCCESS;
}

static void contents_of(const type *t, int ints[], MPI_Aint addresses[], MPI_Datatype parts[]) {
  for (int i = 0; i < t->ni; i++) ints[i] = t->ints[i];
  for (int i = 0; i < t->na; i++) addresses[i] = t->addresses[i];
  for (int i = 0; i < t->nt; i++) {
    parts[i] = t->types[i];
    if (!type_of(parts[i])->predefined) type_of(parts[i])->refs++; /* the caller frees the type */
  }
}

static int Type_get_contents(MPI_Datatype handle, int ni, int na, int nt, int ints[], MPI_Aint addresses[],
                             MPI_Datatype parts[]) {
  const type *t = type_of(handle);
  FAKE_ASSERT(!t->predefined && !t->nc, "Type_get_contents got a type that has none, or of a big-count function");
  FAKE_ASSERT(ni >= t->ni && na >= t->na && nt >= t->nt, "Type_get_contents got too little room");
  contents_of(t, ints, addresses, parts);
  return MPI_SUCCESS;
}

#ifdef Z_HAVE_Type_get_envelope_c
static int Type_get_envelope_c(MPI_Datatype handle, MPI_Count *ni, MPI_Count *na, MPI_Count *nc, MPI_Count *nt,
                               int *combiner) {
  const type *t = type_of(handle);
  *ni = t->ni, *na = t->na, *nc = t->nc, *nt = t->nt, *combiner = t->combiner;
  return MPI_SUCCESS;
}

static int Type_get_contents_c(MPI_Datatype handle, MPI_Count ni, MPI_Count na, MPI_Count nc, MPI_Count nt, int ints[],
                               MPI_Aint addresses[], MPI_Count counts[], MPI_Datatype parts[]) {
  const type *t = type_of(handle);
  FAKE_ASSERT(!t->predefined, "Type_get_contents_c got a type that has none");
  FAKE_ASSERT(ni >= t->ni && na >= t->na && nc >= t->nc && nt >= t->nt, "Type_get_contents_c got too little room");
  for (int i = 0; i < t->nc; i++) counts[i] = t->counts[i];
  contents_of(t, ints, addresses, parts);
  return MPI_SUCCESS;
}
#endif

static int Type_free(MPI_Datatype *handle) {
  drop(type_of(*handle));
  *handle = MPI_DATATYPE_NULL;
  return MPI_SUCCESS;
}

static int Type_create_keyval(MPI_Type_copy_attr_function *copy, MPI_Type_delete_attr_function *del, int *keyval,
                              void *extra) {
  FAKE_ASSERT(keyval_is_free && copy == MPI_TYPE_NULL_COPY_FN && !extra,
              "the fake has one keyval, which is not copied");
  keyval_is_free = 0, deleted = del, *keyval = KEYVAL;
  return MPI_SUCCESS;
}

static int Type_free_keyval(int *keyval) {
  FAKE_ASSERT(*keyval == KEYVAL, "Type_free_keyval got a keyval that is none");
  keyval_is_free = 1, *keyval = MPI_KEYVAL_INVALID;
  return MPI_SUCCESS;
}

static int Type_set_attr(MPI_Datatype handle, int keyval, void *value) {
  FAKE_ASSERT(keyval == KEYVAL && !keyval_is_free, "Type_set_attr got a keyval that is none");
  type_of(handle)->attribute = value;
  return MPI_SUCCESS;
}

/* ---- moving data ---- */

/* Moves up to `bytes` bytes between packed memory and n elements. Returns the number of bytes
 * moved. */
static int64_t move(const type *t, char *base, int64_t n, char *packed, int64_t bytes, int pack) {
  int64_t done = 0;
  for (int64_t i = 0; i < n; i++)
    for (int k = 0; k < t->n && done < bytes; k++) {
      char *at = (char *)((uintptr_t)base + (uintptr_t)(i * t->extent + t->map[k].off));
      int64_t length = t->map[k].len < bytes - done ? t->map[k].len : bytes - done;
      if (pack) memcpy(packed + done, at, (size_t)length);
      else memcpy(at, packed + done, (size_t)length);
      done += length;
    }
  return done;
}

static int Pack(const void *in, int n, MPI_Datatype handle, void *out, int room, int *position, MPI_Comm comm) {
  const type *t = type_of(handle);
  (void)comm;
  FAKE_ASSERT(in, "MPICH's MPI_Pack refuses MPI_BOTTOM");
  fake.calls.pack++;
  if (n * size_of(t) > room - *position) return MPI_ERR_TRUNCATE;
  *position += (int)move(t, (char *)(uintptr_t)in, n, (char *)out + *position, room - *position, 1);
  return MPI_SUCCESS;
}

static int Unpack(const void *in, int bytes, int *position, void *out, int n, MPI_Datatype handle, MPI_Comm comm) {
  const type *t = type_of(handle);
  (void)comm;
  FAKE_ASSERT(out, "MPICH's MPI_Unpack refuses MPI_BOTTOM");
  fake.calls.unpack++;
  if (n * size_of(t) > bytes - *position) return MPI_ERR_TRUNCATE;
  *position += (int)move(t, out, n, (char *)(uintptr_t)in + *position, bytes - *position, 0);
  return MPI_SUCCESS;
}

/* Packs or unpacks by a message of this process to itself. */
static int Sendrecv(const void *from, int n, MPI_Datatype what, int dest, int tag, void *to, int m, MPI_Datatype as,
                    int source, int tag2, MPI_Comm comm, MPI_Status *status) {
  const type *a = type_of(what), *b = type_of(as);
  char packed[4096];
  FAKE_ASSERT(comm == z_self && dest == 0 && source == 0 && tag == tag2 && status == MPI_STATUS_IGNORE,
              "the fake sends to itself alone");
  FAKE_ASSERT(n * size_of(a) <= (int64_t)sizeof packed, "the fake has room for %zu bytes", sizeof packed);
  fake.calls.sendrecv++;
  int64_t bytes = move(a, (char *)(uintptr_t)from, n, packed, sizeof packed, 1);
  if (bytes > m * size_of(b)) return MPI_ERR_TRUNCATE;
  move(b, to, m, packed, bytes, 0);
  return MPI_SUCCESS;
}

void fake_install_types(void) {
  if (!made) predefined();
  FAKE(Type_size), FAKE(Type_size_x), FAKE(Type_get_extent), FAKE(Type_get_true_extent), FAKE(Type_get_envelope),
      FAKE(Type_get_contents);
#ifdef Z_HAVE_Type_get_envelope_c
  FAKE(Type_get_envelope_c), FAKE(Type_get_contents_c);
#endif
  FAKE(Type_free), FAKE(Type_create_keyval), FAKE(Type_free_keyval), FAKE(Type_set_attr);
  FAKE(Pack), FAKE(Unpack), FAKE(Sendrecv);
}
