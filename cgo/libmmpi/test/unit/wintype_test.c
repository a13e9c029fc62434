/* Datatypes as spans of bytes (wintype.c), compared with the fake's type maps. */
#include "test.h"
#include "type/wintype.h"

enum { ROOM = 512 };

static MPI_Datatype make(int combiner, int ni, const int *ints, int na, const MPI_Aint *addresses, int nt,
                         const MPI_Datatype *types) {
  return fake_type(combiner, ni, ints, na, addresses, nt, types);
}
#define INTS FAKE_INTS
#define AINTS FAKE_AINTS
#define OF FAKE_TYPES
#define NONE FAKE_NONE

static const zflat *flat(MPI_Datatype type, int elements) {
  int rc = -1;
  const zflat *f = zflat_get(type, elements, &rc);
  SAME(rc, MPI_SUCCESS);
  CHECK(f != NULL);
  return f;
}

/* Checks that the spans are the type map, in its order. */
static void as_map(MPI_Datatype type, int elements) {
  static fake_piece want[ROOM];
  const zflat *f = flat(type, elements);
  int n = fake_map(type, elements, want, ROOM);
  SAME(f->n, n);
  for (int i = 0; i < n; i++) {
    SAME(f->spans[i].off, want[i].off);
    SAME(f->spans[i].len, want[i].len);
  }
}

static void both(MPI_Datatype type) {
  as_map(type, 0);
  as_map(type, 1);
}

/* Checks the type of a constructor and, if the library has it, of its big-count form. */
static void both_forms(MPI_Datatype type) {
  both(type);
#ifdef Z_HAVE_Type_get_envelope_c
  both(fake_big_count(type));
#endif
}

TEST(predefined_types) {
  FAKE_WORLD(0, 2, 1);
  both(MPI_INT);
  both(MPI_LONG_DOUBLE);
  const zflat *f = flat(MPI_DOUBLE, 0);
  SAME(f->n, 1);
  SAME(f->spans[0].len, 8);
}

TEST(numbers_of_predefined_types) {
  FAKE_WORLD(0, 2, 1);
  const struct {
    MPI_Datatype type;
    int number;
  } want[] = {
      {MPI_BYTE, Z_U8},
      {MPI_PACKED, Z_U8},
      {MPI_SIGNED_CHAR, Z_I8},
      {MPI_UNSIGNED_CHAR, Z_U8},
      {MPI_SHORT, Z_I16},
      {MPI_INT, Z_I32},
      {MPI_UNSIGNED, Z_U32},
      {MPI_LONG, Z_I64},
      {MPI_UNSIGNED_LONG, Z_U64},
      {MPI_INT8_T, Z_I8},
      {MPI_INT64_T, Z_I64},
      {MPI_UINT16_T, Z_U16},
      {MPI_AINT, Z_I64},
      {MPI_FLOAT, Z_F32},
      {MPI_DOUBLE, Z_F64},
      {MPI_REAL, Z_F32},
      {MPI_LONG_DOUBLE, Z_FLONG},
      {MPI_C_BOOL, Z_L8},
      {MPI_LOGICAL, Z_L32},
      {MPI_C_FLOAT_COMPLEX, Z_C32},
      {MPI_C_DOUBLE_COMPLEX, Z_C64},
      {MPI_C_LONG_DOUBLE_COMPLEX, Z_CLONG},
      {MPI_CHARACTER, Z_U8},
      {MPI_FLOAT_INT, Z_FLOAT_INT},
      {MPI_DOUBLE_INT, Z_DOUBLE_INT},
      {MPI_LONG_INT, Z_LONG_INT},
      {MPI_2INT, Z_2INT},
      {MPI_SHORT_INT, Z_SHORT_INT},
      {MPI_LONG_DOUBLE_INT, Z_LONG_DOUBLE_INT},
  };
  for (int i = 0; i < COUNT(want); i++)
    if (flat(want[i].type, 1)->number != want[i].number)
      test_fail(__FILE__, __LINE__, "type %d of the list has number %d, want %d", i, flat(want[i].type, 1)->number,
                want[i].number);
  SAME(flat(fake_f90(MPI_COMBINER_F90_REAL, 8), 0)->number, Z_F64);
  SAME(flat(fake_f90(MPI_COMBINER_F90_COMPLEX, 8), 0)->number, Z_C32);
  SAME(flat(fake_f90(MPI_COMBINER_F90_INTEGER, 2), 0)->number, Z_I16);
}

TEST(pairs_with_and_without_their_gaps) {
  FAKE_WORLD(0, 2, 1);
  const MPI_Datatype pairs[] = {MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT,
                                MPI_2INT,      MPI_SHORT_INT,  MPI_LONG_DOUBLE_INT};
  for (int i = 0; i < COUNT(pairs); i++) both(pairs[i]);
  SAME(flat(MPI_SHORT_INT, 0)->n, 2);
  SAME(flat(MPI_SHORT_INT, 1)->n, 1);
  both(make(MPI_COMBINER_VECTOR, INTS(3, 2, 3), NONE, OF(MPI_SHORT_INT)));
}

TEST(mixed_types_have_no_one_number) {
  FAKE_WORLD(0, 2, 1);
  MPI_Datatype ints = make(MPI_COMBINER_VECTOR, INTS(2, 1, 2), NONE, OF(MPI_INT));
  SAME(flat(ints, 0)->number, Z_I32);
  SAME(flat(make(MPI_COMBINER_STRUCT, INTS(2, 1, 1), AINTS(0, 16), OF(MPI_INT, ints)), 0)->number, Z_I32);
  SAME(flat(make(MPI_COMBINER_STRUCT, INTS(2, 1, 1), AINTS(0, 16), OF(MPI_FLOAT, ints)), 0)->number, -1);
  SAME(
      flat(make(MPI_COMBINER_STRUCT, INTS(3, 1, 1, 1), AINTS(0, 16, 32), OF(MPI_FLOAT, MPI_INT, MPI_FLOAT)), 0)->number,
      -1);
}

TEST(the_constructors) {
  FAKE_WORLD(0, 2, 1);
  MPI_Datatype gap = make(MPI_COMBINER_RESIZED, NONE, AINTS(0, 8), OF(MPI_INT));
  const MPI_Datatype parts[] = {MPI_INT, gap, make(MPI_COMBINER_VECTOR, INTS(2, 1, 2), NONE, OF(MPI_SHORT))};
  for (int i = 0; i < COUNT(parts); i++) {
    MPI_Datatype p = parts[i];
    both(make(MPI_COMBINER_DUP, NONE, NONE, OF(p)));
    both_forms(make(MPI_COMBINER_CONTIGUOUS, INTS(3), NONE, OF(p)));
    both_forms(make(MPI_COMBINER_VECTOR, INTS(3, 2, 4), NONE, OF(p)));
    both_forms(make(MPI_COMBINER_VECTOR, INTS(3, 2, -4), NONE, OF(p)));
    both_forms(make(MPI_COMBINER_HVECTOR, INTS(3, 2), AINTS(100), OF(p)));
    both_forms(make(MPI_COMBINER_INDEXED, INTS(3, 2, 1, 3, 5, 0, 9), NONE, OF(p)));
    both_forms(make(MPI_COMBINER_HINDEXED, INTS(2, 2, 1), AINTS(40, -12), OF(p)));
    both_forms(make(MPI_COMBINER_INDEXED_BLOCK, INTS(3, 2, 7, 0, 3), NONE, OF(p)));
    both_forms(make(MPI_COMBINER_HINDEXED_BLOCK, INTS(3, 2), AINTS(60, 0, 30), OF(p)));
    both_forms(make(MPI_COMBINER_STRUCT, INTS(3, 1, 2, 1), AINTS(0, 24, 80), OF(MPI_CHAR, p, MPI_DOUBLE)));
    both_forms(make(MPI_COMBINER_RESIZED, NONE, AINTS(-4, 64), OF(p)));
    both_forms(
        make(MPI_COMBINER_CONTIGUOUS, INTS(2), NONE, OF(make(MPI_COMBINER_INDEXED, INTS(2, 1, 2, 3, 0), NONE, OF(p)))));
  }
}

TEST(empty_types_have_no_spans) {
  FAKE_WORLD(0, 2, 1);
  SAME(flat(make(MPI_COMBINER_CONTIGUOUS, INTS(0), NONE, OF(MPI_INT)), 0)->n, 0);
  both_forms(make(MPI_COMBINER_INDEXED, INTS(3, 1, 0, 1, 0, 5, 1), NONE,
                  OF(MPI_INT))); /* the empty block does not split the span */
}

TEST(subarrays) {
  FAKE_WORLD(0, 2, 1);
  MPI_Datatype gap = make(MPI_COMBINER_RESIZED, NONE, AINTS(0, 6), OF(MPI_SHORT));
  for (int order = 0; order < 2; order++) {
    int o = order ? MPI_ORDER_FORTRAN : MPI_ORDER_C;
    both_forms(make(MPI_COMBINER_SUBARRAY, INTS(1, 9, 4, 2, o), NONE, OF(MPI_INT)));
    both_forms(make(MPI_COMBINER_SUBARRAY, INTS(2, 4, 5, 2, 3, 1, 2, o), NONE, OF(MPI_INT)));
    both_forms(make(MPI_COMBINER_SUBARRAY, INTS(3, 4, 3, 5, 2, 3, 2, 2, 0, 1, o), NONE, OF(gap)));
  }
}

TEST(distributed_arrays) {
  FAKE_WORLD(0, 2, 1);
  const int hows[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE};
  for (int o = 0; o < 2; o++)
    for (int a = 0; a < 3; a++)
      for (int b = 0; b < 3; b++)
        for (int rank = 0; rank < 6; rank++) {
          int grid[2] = {hows[a] == MPI_DISTRIBUTE_NONE ? 1 : 2, hows[b] == MPI_DISTRIBUTE_NONE ? 1 : 3},
              size = grid[0] * grid[1];
          if (rank >= size) continue;
          int none = MPI_DISTRIBUTE_DFLT_DARG, order = o ? MPI_ORDER_FORTRAN : MPI_ORDER_C;
          both_forms(make(MPI_COMBINER_DARRAY,
                          INTS(size, rank, 2, 5, 7, hows[a], hows[b], none, none, grid[0], grid[1], order), NONE,
                          OF(MPI_INT)));
          if (hows[b] == MPI_DISTRIBUTE_CYCLIC)
            both_forms(make(MPI_COMBINER_DARRAY,
                            INTS(size, rank, 2, 5, 7, hows[a], hows[b], none, 2, grid[0], grid[1], order), NONE,
                            OF(MPI_SHORT)));
        }
}

#ifdef Z_HAVE_Type_get_envelope_c
/* Checks that the type is `blocks` spans of `length` bytes, one every `step`, from `first` on. */
static void are(MPI_Datatype type, int64_t blocks, int64_t first, int64_t length, int64_t step) {
  const zflat *f = flat(type, 0);
  SAME(f->n, blocks);
  for (int64_t i = 0; i < blocks; i++) {
    SAME(f->spans[i].off, first + i * step);
    SAME(f->spans[i].len, length);
  }
}

TEST(counts_beyond_an_int) {
  FAKE_WORLD(0, 2, 1);
  const MPI_Count G = 1 << 30;
  int order = MPI_ORDER_C, how = MPI_DISTRIBUTE_CYCLIC, block = MPI_DISTRIBUTE_BLOCK, none = MPI_DISTRIBUTE_DFLT_DARG;
  are(fake_huge(MPI_COMBINER_CONTIGUOUS, NONE, FAKE_COUNTS(5 * G)), 1, 0, 5 * G, 0);
  are(fake_huge(MPI_COMBINER_VECTOR, NONE, FAKE_COUNTS(3, 3 * G, 7 * G)), 3, 0, 3 * G, 7 * G);
  are(fake_huge(MPI_COMBINER_HVECTOR, NONE, FAKE_COUNTS(3, 3 * G, 7 * G)), 3, 0, 3 * G, 7 * G);
  are(fake_huge(MPI_COMBINER_INDEXED, NONE, FAKE_COUNTS(2, 3 * G, 3 * G, G, 7 * G)), 2, G, 3 * G, 6 * G);
  are(fake_huge(MPI_COMBINER_HINDEXED, NONE, FAKE_COUNTS(2, 3 * G, 3 * G, G, 7 * G)), 2, G, 3 * G, 6 * G);
  are(fake_huge(MPI_COMBINER_INDEXED_BLOCK, NONE, FAKE_COUNTS(2, 3 * G, G, 7 * G)), 2, G, 3 * G, 6 * G);
  are(fake_huge(MPI_COMBINER_HINDEXED_BLOCK, NONE, FAKE_COUNTS(2, 3 * G, G, 7 * G)), 2, G, 3 * G, 6 * G);
  are(fake_huge(MPI_COMBINER_STRUCT, NONE, FAKE_COUNTS(1, 3 * G, 7 * G)), 1, 7 * G, 3 * G, 0);
  are(fake_huge(MPI_COMBINER_SUBARRAY, INTS(2, order), FAKE_COUNTS(2, 9 * G, 2, 3 * G, 0, 5 * G)), 2, 5 * G, 3 * G,
      9 * G);
  are(fake_huge(MPI_COMBINER_DARRAY, INTS(3, 2, 1, block, none, 3, order), FAKE_COUNTS(9 * G)), 1, 6 * G, 3 * G, 0);
  are(fake_huge(MPI_COMBINER_DARRAY, INTS(3, 1, 1, how, G, 3, order), FAKE_COUNTS(9 * G)), 3, G, G, 3 * G);
}
#endif

TEST(neighbours_are_one_span) {
  FAKE_WORLD(0, 2, 1);
  SAME(flat(make(MPI_COMBINER_CONTIGUOUS, INTS(200), NONE, OF(MPI_BYTE)), 0)->n, 1);
}

/* ---- caching, and memory ---- */

TEST(kept_as_long_as_the_type) {
  FAKE_WORLD(0, 2, 1);
  ztype_get(MPI_INT);
  long before = fake_blocks();
  int types = fake_types();
  MPI_Datatype inner = make(MPI_COMBINER_VECTOR, INTS(2, 1, 2), NONE, OF(MPI_INT));
  MPI_Datatype type = make(MPI_COMBINER_STRUCT, INTS(2, 1, 1), AINTS(0, 40), OF(inner, MPI_INT));
  const zflat *f = flat(type, 0);
  CHECK(flat(type, 0) == f);
  CHECK(flat(type, 1) != f);
  fake_type_free(inner);
  fake_type_free(type);
  SAME(fake_types(), types);
  SAME(fake_blocks(), before);
}

TEST(what_has_no_flat_form) {
  FAKE_WORLD(0, 2, 1);
  int rc = 0;
  CHECK(zflat_get(MPI_DATATYPE_NULL, 0, &rc) == NULL);
  SAME(rc, MPI_ERR_TYPE);
}

/* Every allocation fails once: the result is MPI_ERR_NO_MEM, nothing is lost, and the next try
 * succeeds. */
TEST(without_memory) {
  FAKE_WORLD(0, 2, 1);
  MPI_Datatype inner = make(MPI_COMBINER_SUBARRAY, INTS(2, 4, 5, 2, 3, 1, 2, MPI_ORDER_C), NONE, OF(MPI_INT));
  MPI_Datatype type = make(MPI_COMBINER_STRUCT, INTS(3, 1, 1, 2), AINTS(0, 100, 200), OF(MPI_SHORT_INT, inner, inner));
  ztype_get(MPI_INT), ztype_get(MPI_SHORT_INT), ztype_get(inner), ztype_get(type);
  long before = fake_blocks();
  int types = fake_types(), tries = 0;
  for (;; tries++) {
    int rc = -1;
    fake_no_memory(tries);
    const zflat *f = zflat_get(type, 0, &rc);
    if (!fake_memory_failed()) break;
    CHECK(f == NULL);
    SAME(rc, MPI_ERR_NO_MEM);
    SAME(fake_blocks(), before);
    SAME(fake_types(), types);
  }
  CHECK(tries > 20);
  fake_no_memory(-1);
  as_map(type, 0);
}
