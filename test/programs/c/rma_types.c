/* Windows and datatypes: derived types at the origin and at the target, every way to make one, by
 * MPI 4's big-count functions too, also with gaps of more bytes than an int counts; every
 * predefined operator with every kind of predefined type, compared with MPI_Reduce_local of the
 * same library. An MPI 3 library makes the same types by short functions, and prints so. */
#include "check.h"
#include <complex.h>
#include <stdbool.h>
#include <sys/mman.h>

#if MPI_VERSION >= 4
#define C(X) MPI_Type_##X##_c
typedef MPI_Count count_, place_;
#else
#define C(X) MPI_Type_##X
typedef int count_;
typedef MPI_Aint place_;
#endif

enum { BYTES = 1 << 16 };

static MPI_Win w;
static unsigned char *mine;
static MPI_Datatype made[32];
static int types;

static void add(MPI_Datatype t) { MPI_Type_commit(&t), made[types++] = t; }

static void make_types(void) {
  MPI_Datatype t, u;
  int lengths[3] = {2, 1, 3}, displs[3] = {9, 1, 5}, sizes[3] = {4, 5, 6}, subs[3] = {2, 3, 2}, starts[3] = {1, 1, 3};
  MPI_Aint at[3] = {40, 0, 17};
  MPI_Type_dup(MPI_INT, &t), add(t);
  MPI_Type_contiguous(5, MPI_SHORT, &t), add(t);
  MPI_Type_vector(4, 2, 5, MPI_INT, &t), add(t);
  MPI_Type_create_hvector(3, 2, 20, MPI_INT, &t), add(t);
  MPI_Type_indexed(3, lengths, displs, MPI_INT, &t), add(t);
  MPI_Type_create_hindexed(3, lengths, at, MPI_BYTE, &t), add(t);
  MPI_Type_create_indexed_block(3, 2, displs, MPI_INT, &t), add(t);
  MPI_Type_create_hindexed_block(3, 4, at, MPI_CHAR, &t), add(t);
  MPI_Datatype parts[3] = {MPI_DOUBLE, MPI_CHAR, MPI_SHORT};
  MPI_Aint places[3] = {8, 0, 2};
  MPI_Type_create_struct(3, lengths, places, parts, &t), add(t);
  MPI_Type_create_subarray(3, sizes, subs, starts, MPI_ORDER_C, MPI_INT, &t), add(t);
  MPI_Type_create_subarray(3, sizes, subs, starts, MPI_ORDER_FORTRAN, MPI_SHORT, &t), add(t);
  int grid[2] = {2, 3}, global[2] = {8, 13}, how[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC},
      arg[2] = {MPI_DISTRIBUTE_DFLT_DARG, 2};
  MPI_Type_create_darray(6, 4, 2, global, how, arg, grid, MPI_ORDER_C, MPI_INT, &t), add(t);
  MPI_Type_create_darray(6, 3, 2, global, how, arg, grid, MPI_ORDER_FORTRAN, MPI_INT, &t), add(t);
  MPI_Type_create_resized(MPI_INT, 0, 12, &t), add(t);
  MPI_Type_vector(2, 1, 3, made[8], &u), MPI_Type_contiguous(2, u, &t), MPI_Type_free(&u), add(t);
  add(MPI_DOUBLE_INT), types--;
}

/* Makes types by the big-count forms of all constructors that have one. */
static void make_big_types(void) {
  MPI_Datatype t;
  count_ lengths[3] = {1, 3, 2}, displs[3] = {4, 0, 8}, sizes[3] = {3, 6, 5}, subs[3] = {2, 2, 3},
         starts[3] = {0, 3, 1}, global[2] = {9, 11};
  place_ at[3] = {24, 0, 52}, places[3] = {16, 0, 64};
  MPI_Datatype parts[3] = {MPI_DOUBLE, MPI_CHAR, made[2]};
  int grid[2] = {3, 2}, how[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK}, arg[2] = {2, MPI_DISTRIBUTE_DFLT_DARG};
  C(contiguous)(3, made[2], &t), add(t);
  C(vector)(3, 2, 4, MPI_SHORT, &t), add(t);
  C(create_hvector)(4, 1, 24, MPI_DOUBLE_INT, &t), add(t);
  C(indexed)(3, lengths, displs, MPI_INT, &t), add(t);
  C(create_hindexed)(3, lengths, at, MPI_INT, &t), add(t);
  C(create_indexed_block)(3, 2, displs, MPI_SHORT, &t), add(t);
  C(create_hindexed_block)(3, 5, at, MPI_CHAR, &t), add(t);
  C(create_struct)(3, lengths, places, parts, &t), add(t);
  C(create_subarray)(3, sizes, subs, starts, MPI_ORDER_C, MPI_SHORT, &t), add(t);
  C(create_subarray)(3, sizes, subs, starts, MPI_ORDER_FORTRAN, MPI_INT, &t), add(t);
  C(create_darray)(6, 3, 2, global, how, arg, grid, MPI_ORDER_C, MPI_SHORT, &t), add(t);
  C(create_darray)(6, 4, 2, global, how, arg, grid, MPI_ORDER_FORTRAN, MPI_INT, &t), add(t);
  C(create_resized)(made[4], -8, 120, &t), add(t);
#if MPI_VERSION < 4
  if (me == 0) fputs("big-count forms: skipped, this MPI library has none (short ones in their place)\n", stderr);
#endif
}

/* Puts the elements of one type here to those of another type of the same size there, and gets them
 * back. */
static void through(MPI_Datatype from, MPI_Datatype to, const char *what, int n, int m) {
  static unsigned char out[BYTES], in[BYTES], want[BYTES], packed[BYTES];
  int next = (me + 1) % np, last = (me + np - 1) % np, position = 0;
  MPI_Win_fence(0, w);
  memset(mine, 0xa5, BYTES), memset(want, 0xa5, BYTES), memset(in, 0x11, BYTES);
  fill(out, BYTES, last);
  MPI_Pack(out + 256, n, from, packed, BYTES, &position, MPI_COMM_SELF);
  int size = position;
  position = 0;
  MPI_Unpack(packed, size, &position, want + 512, m, to, MPI_COMM_SELF);
  fill(out, BYTES, me);
  MPI_Win_fence(0, w);
  MPI_Put(out + 256, n, from, next, 512, m, to, w);
  MPI_Win_fence(0, w);
  CHECK(!memcmp(mine, want, BYTES), "put of %s", what);
  MPI_Get(in + 256, n, from, next, 512, m, to, w);
  MPI_Win_fence(0, w);
  position = 0, memset(want, 0x11, BYTES);
  position = 0;
  MPI_Pack(out + 256, n, from, packed, BYTES, &position, MPI_COMM_SELF);
  position = 0;
  MPI_Unpack(packed, size, &position, want + 256, n, from, MPI_COMM_SELF);
  CHECK(!memcmp(in, want, BYTES), "get of %s", what);
}

static void moves(void) {
  char what[64];
  MPI_Win_create(mine, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w);
  for (int i = 0; i < types; i++) {
    int size;
    MPI_Datatype bytes;
    snprintf(what, sizeof what, "type %d", i);
    through(made[i], made[i], what, 3, 3);
    MPI_Type_size(made[i], &size);
    /* another shape with the same number of bytes: signatures differ, so only where MPI allows
     * it */
    MPI_Type_create_hvector(size, 1, 3, MPI_BYTE, &bytes);
    MPI_Type_commit(&bytes);
    if (i == 7 || i == 5) through(made[i], bytes, what, 2, 2), through(bytes, made[i], what, 2, 2);
    MPI_Type_free(&bytes);
  }
  MPI_Win_fence(MPI_MODE_NOSUCCEED, w);
  MPI_Win_free(&w);
  for (int i = 0; i < types; i++) MPI_Type_free(&made[i]);
}

/* ---- gaps of more bytes than an int counts ---- */

#define FAR ((int64_t)3 << 30)
enum { PART = 8, ROOM = 1 << 12 };

/* Makes types of PART bytes at the beginning and PART more FAR after it, in every way in which a
 * constructor can place them. */
static void make_far_types(void) {
  MPI_Datatype t, parts[2] = {MPI_INT64_T, MPI_BYTE};
  count_ lengths[2] = {PART, PART}, mixed[2] = {1, PART};
  place_ at[2] = {0, FAR};
  types = 0;
  C(create_hvector)(2, PART, FAR, MPI_BYTE, &t), add(t);
  C(create_hindexed)(2, lengths, at, MPI_BYTE, &t), add(t);
  C(create_hindexed_block)(2, PART, at, MPI_BYTE, &t), add(t);
  C(create_struct)(2, mixed, at, parts, &t), add(t);
  C(create_resized)(MPI_INT64_T, 0, FAR, &t), C(contiguous)(2, t, &made[types]), MPI_Type_free(&t), add(made[types]);
#if MPI_VERSION >= 4
  MPI_Count sizes[2] = {2, FAR}, subs[2] = {2, PART}, starts[2] = {0, 0}, global = 2 * FAR;
  int how = MPI_DISTRIBUTE_CYCLIC, arg = PART, grid = FAR / PART;
  MPI_Type_vector_c(2, PART, FAR, MPI_BYTE, &t), add(t);
  MPI_Type_indexed_c(2, lengths, at, MPI_BYTE, &t), add(t);
  MPI_Type_create_indexed_block_c(2, PART, at, MPI_BYTE, &t), add(t);
  MPI_Type_create_subarray_c(2, sizes, subs, starts, MPI_ORDER_C, MPI_BYTE, &t), add(t);
  MPI_Type_create_darray_c(grid, 0, 1, &global, &how, &arg, &grid, MPI_ORDER_C, MPI_BYTE, &t), add(t);
#else /* replaces the types that cannot be made with an int */
  for (int i = 0; i < 5; i++) MPI_Type_dup(made[i], &t), add(t);
#endif
}

/* Returns memory that is allocated only where it is written to. */
static unsigned char *vast(void) {
  void *p = mmap(NULL, FAR + ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) perror("mmap"), MPI_Abort(MPI_COMM_WORLD, 1);
  return p;
}

static void far_moves(void) {
  unsigned char *here = vast(), *there = vast(), want[2 * PART], got[2 * PART], packed[2 * PART];
  int next = (me + 1) % np, last = (me + np - 1) % np;
  make_far_types();
  MPI_Win_create(here, FAR + ROOM, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w);
  for (int i = 0; i < types; i++) {
    MPI_Datatype other = made[(i + 1) % types];
    int at = 64 + 2 * PART * i;
    fill(packed, sizeof packed, 100 + me * 64 + i), fill(want, sizeof want, 100 + last * 64 + i);
    memcpy(there + at, packed, PART), memcpy(there + at + FAR, packed + PART, PART);
    MPI_Win_fence(0, w);
    MPI_Put(there + at, 1, made[i], next, at, 1, other, w);
    MPI_Win_fence(0, w);
    CHECK(!memcmp(here + at, want, PART) && !memcmp(here + at + FAR, want + PART, PART), "far put of type %d", i);
    MPI_Get(got, sizeof got, MPI_BYTE, next, at, 1, made[i], w);
    memset(there + at, 0, PART), memset(there + at + FAR, 0, PART);
    MPI_Get(there + at, 1, other, next, at, 1, made[i], w);
    MPI_Win_fence(0, w);
    CHECK(!memcmp(got, packed, sizeof got), "far get of type %d", i);
    CHECK(!memcmp(there + at, packed, PART) && !memcmp(there + at + FAR, packed + PART, PART), "far get to type %d", i);
  }
  /* No bytes beside them have changed: 64 bytes before the first, PART after each. */
  for (int i = 0; i < ROOM - PART; i++) {
    int inside = i >= 64 && i < 64 + 2 * PART * types && (i - 64) % (2 * PART) < PART;
    if (!inside) CHECK(!here[i] && !here[i + FAR], "byte %d beside far types", i);
  }
  int64_t add_[2] = {me + 1, 10 * (me + 1)}, *first = (int64_t *)(here + 1024),
          *second = (int64_t *)(here + 1024 + FAR);
  MPI_Datatype numbers;
  C(create_hvector)(2, 1, FAR, MPI_INT64_T, &numbers), MPI_Type_commit(&numbers);
  *first = 5, *second = 6;
  MPI_Win_fence(0, w);
  MPI_Accumulate(add_, 2, MPI_INT64_T, next, 1024, 1, numbers, MPI_SUM, w);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, w);
  SAME(*first, 5 + last + 1, "the near sum");
  SAME(*second, 6 + 10 * (last + 1), "the far sum");
  MPI_Type_free(&numbers);
  MPI_Win_free(&w);
  for (int i = 0; i < types; i++) MPI_Type_free(&made[i]);
  munmap(here, FAR + ROOM), munmap(there, FAR + ROOM);
}

/* ---- operators ---- */

typedef struct kind {
  MPI_Datatype type;
  const char *name;
  /* The size of an element in bytes, and the operators: bit 0 order, 1 field, 2 logic, 3 bits, 4
   * location. */
  int bytes, groups;
} kind;

static void element(unsigned char *p, const kind *k, int i, int who) {
  int v = 1 + (int)(mix((uint64_t)i * 64 + who) % 3);
  memset(p, 0, k->bytes);
#define SET(T, V)            \
  do {                       \
    T x = (T)(V);            \
    memcpy(p, &x, sizeof x); \
  } while (0)
  if (k->type == MPI_FLOAT) SET(float, v * 0.5f);
  else if (k->type == MPI_DOUBLE) SET(double, v * 0.25);
  else if (k->type == MPI_LONG_DOUBLE) SET(long double, v * 0.25L);
  else if (k->type == MPI_C_FLOAT_COMPLEX) SET(float complex, v + 2 * I);
  else if (k->type == MPI_C_DOUBLE_COMPLEX) SET(double complex, v - 1 * I);
  else if (k->type == MPI_C_BOOL) SET(bool, v & 1);
  else if (k->type == MPI_FLOAT_INT) {
    struct {
      float a;
      int b;
    } x = {v, who * 10 + i};
    memcpy(p, &x, sizeof x);
  } else if (k->type == MPI_DOUBLE_INT) {
    struct {
      double a;
      int b;
    } x;
    memset(&x, 0, sizeof x), x.a = v, x.b = who * 10 + i;
    memcpy(p, &x, sizeof x);
  } else if (k->type == MPI_LONG_INT) {
    struct {
      long a;
      int b;
    } x;
    memset(&x, 0, sizeof x), x.a = v, x.b = who * 10 + i;
    memcpy(p, &x, sizeof x);
  } else if (k->type == MPI_SHORT_INT) {
    struct {
      short a;
      int b;
    } x;
    memset(&x, 0, sizeof x), x.a = v, x.b = who * 10 + i;
    memcpy(p, &x, sizeof x);
  } else if (k->type == MPI_2INT) {
    int x[2] = {v, who * 10 + i};
    memcpy(p, x, sizeof x);
  } else if (k->bytes == 1) SET(int8_t, v);
  else if (k->bytes == 2) SET(int16_t, v);
  else if (k->bytes == 4) SET(int32_t, v);
  else SET(int64_t, v);
}

static void operators(void) {
  enum { N = 9 };
  const kind kinds[] = {{MPI_SIGNED_CHAR, "signed char", 1, 15},
                        {MPI_SHORT, "short", 2, 15},
                        {MPI_INT, "int", 4, 15},
                        {MPI_LONG, "long", 8, 15},
                        {MPI_UNSIGNED_CHAR, "unsigned char", 1, 15},
                        {MPI_UNSIGNED_SHORT, "unsigned short", 2, 15},
                        {MPI_UNSIGNED, "unsigned", 4, 15},
                        {MPI_UINT64_T, "uint64", 8, 15},
                        {MPI_LONG_LONG, "long long", 8, 15},
                        {MPI_FLOAT, "float", 4, 3},
                        {MPI_DOUBLE, "double", 8, 3},
                        {MPI_LONG_DOUBLE, "long double", 16, 3},
                        {MPI_C_FLOAT_COMPLEX, "float complex", 8, 2},
                        {MPI_C_DOUBLE_COMPLEX, "double complex", 16, 2},
                        {MPI_C_BOOL, "bool", 1, 4},
                        {MPI_BYTE, "byte", 1, 8},
                        {MPI_FLOAT_INT, "float int", 8, 16},
                        {MPI_DOUBLE_INT, "double int", 16, 16},
                        {MPI_LONG_INT, "long int", 16, 16},
                        {MPI_SHORT_INT, "short int", 8, 16},
                        {MPI_2INT, "2int", 8, 16}};
  const struct {
    MPI_Op op;
    const char *name;
    int group;
  } ops[] = {{MPI_MAX, "max", 1},   {MPI_MIN, "min", 1},   {MPI_SUM, "sum", 2},        {MPI_PROD, "prod", 2},
             {MPI_LAND, "land", 4}, {MPI_LOR, "lor", 4},   {MPI_LXOR, "lxor", 4},      {MPI_BAND, "band", 8},
             {MPI_BOR, "bor", 8},   {MPI_BXOR, "bxor", 8}, {MPI_MAXLOC, "maxloc", 16}, {MPI_MINLOC, "minloc", 16}};
  unsigned char *slots, out[N * 16], want[N * 16], old[N * 16];
  int next = (me + 1) % np, last = (me + np - 1) % np;
  MPI_Win_allocate(N * 16, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &slots, &w);
  MPI_Win_fence(0, w);
  for (unsigned k = 0; k < sizeof kinds / sizeof *kinds; k++)
    for (unsigned o = 0; o < sizeof ops / sizeof *ops; o++) {
      const kind *t = &kinds[k];
      if (!(t->groups & ops[o].group)) continue;
      for (int i = 0; i < N; i++) element(slots + i * t->bytes, t, i, me), element(want + i * t->bytes, t, i, me);
      for (int i = 0; i < N; i++) element(out + i * t->bytes, t, i, 20 + last);
      MPI_Reduce_local(out, want, N, t->type, ops[o].op);
      for (int i = 0; i < N; i++) element(out + i * t->bytes, t, i, 20 + me);
      memset(old, 0, sizeof old);
      MPI_Win_fence(0, w);
      if (o % 2) MPI_Accumulate(out, N, t->type, next, 0, N, t->type, ops[o].op, w);
      else MPI_Get_accumulate(out, N, t->type, old, N, t->type, next, 0, N, t->type, ops[o].op, w);
      MPI_Win_fence(0, w);
      int values = t->bytes == 16 && t->type == MPI_LONG_DOUBLE           ? 10
                   : t->type == MPI_DOUBLE_INT || t->type == MPI_LONG_INT ? 12
                                                                          : t->bytes;
      for (int i = 0; i < N; i++)
        CHECK(!memcmp(slots + i * t->bytes, want + i * t->bytes, values), "%s of %s", ops[o].name, t->name);
      for (int i = 0; i < N && o % 2 == 0; i++) {
        unsigned char was[16];
        element(was, t, i, next);
        CHECK(!memcmp(old + i * t->bytes, was, values == 8 && t->type == MPI_SHORT_INT ? 2 : values),
              "old value, %s of %s", ops[o].name, t->name);
      }
      MPI_Win_fence(0, w);
    }
  /* Accumulates through derived types of one kind of element. */
  MPI_Datatype every, block;
  int *numbers = (int *)slots, ten[12];
  C(vector)(4, 1, 3, MPI_INT, &every), C(contiguous)(2, MPI_INT, &block);
  MPI_Type_commit(&every), MPI_Type_commit(&block);
  for (int i = 0; i < 12; i++) numbers[i] = i, ten[i] = 10 * i;
  MPI_Win_fence(0, w);
  MPI_Accumulate(ten, 2, block, next, 0, 1, every, MPI_SUM, w);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, w);
  for (int i = 0; i < 12; i++) SAME(numbers[i], i % 3 ? i : i + 10 * (i / 3), "sum in a vector");
  MPI_Type_free(&every), MPI_Type_free(&block);
  MPI_Win_free(&w);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  mine = malloc(BYTES);
  make_types();
  make_big_types();
  moves();
  far_moves();
  operators();
  free(mine);
  return finish();
}
