/* The properties of a datatype, which are queried once, and packing and unpacking (type.c). */
#include "core/privcomm.h"
#include "test.h"
#include "type/use.h"
#include <limits.h>

static const ztype *known(MPI_Datatype type) {
  const ztype *t = ztype_get(type);
  CHECK(t != NULL);
  return t;
}

static MPI_Datatype contiguous(int n, MPI_Datatype of) {
  return fake_type(MPI_COMBINER_CONTIGUOUS, FAKE_INTS(n), FAKE_NONE, FAKE_TYPES(of));
}
static MPI_Datatype dup(MPI_Datatype of) { return fake_type(MPI_COMBINER_DUP, FAKE_NONE, FAKE_NONE, FAKE_TYPES(of)); }

static MPI_Datatype vector(int n, int length, int stride, MPI_Datatype of) {
  return fake_type(MPI_COMBINER_VECTOR, FAKE_INTS(n, length, stride), FAKE_NONE, FAKE_TYPES(of));
}

static MPI_Datatype resized(MPI_Aint lb, MPI_Aint extent, MPI_Datatype of) {
  return fake_type(MPI_COMBINER_RESIZED, FAKE_NONE, FAKE_AINTS(lb, extent), FAKE_TYPES(of));
}

/* ---- properties ---- */

TEST(predefined_types_without_gaps_are_contiguous) {
  FAKE_WORLD(0, 2, 1);
  const ztype *t = known(MPI_DOUBLE);
  CHECK(t->contiguous && t->predefined);
  SAME(t->size, 8);
  SAME(t->extent, 8);
  t = known(MPI_DOUBLE_INT);
  CHECK(!t->contiguous && t->predefined);
  SAME(t->size, 12);
  SAME(t->extent, 16);
  SAME(fake.calls.commit, 0); /* a predefined type needs no test whether it is committed */
}

TEST(made_of_one_without_gaps_is_contiguous) {
  FAKE_WORLD(0, 2, 1);
  CHECK(known(contiguous(3, MPI_INT))->contiguous);
  CHECK(known(dup(MPI_INT))->contiguous);
  CHECK(known(dup(contiguous(3, dup(MPI_INT))))->contiguous);
  CHECK(known(resized(0, 4, MPI_INT))->contiguous);
  SAME(known(contiguous(3, MPI_INT))->size, 12);
  CHECK(!known(contiguous(3, MPI_INT))->predefined);
}

TEST(gaps_and_other_constructors_are_not) {
  FAKE_WORLD(0, 2, 1);
  CHECK(!known(resized(0, 8, MPI_INT))->contiguous);       /* a gap at the end */
  CHECK(!known(resized(-4, 4, MPI_INT))->contiguous);      /* another lower bound */
  CHECK(!known(contiguous(2, MPI_SHORT_INT))->contiguous); /* gaps inside */
  /* no gap at the end, but its part has a gap */
  CHECK(!known(resized(0, 8, vector(2, 1, 2, MPI_INT)))->contiguous);
  CHECK(!known(vector(2, 1, 2, MPI_INT))->contiguous);
  /* no gap: the type is packed all the same, which is correct but slow */
  CHECK(!known(vector(2, 1, 1, MPI_INT))->contiguous);
  /* Two integers in reverse order: without gaps, but not in order. */
  CHECK(!known(fake_type(MPI_COMBINER_INDEXED, FAKE_INTS(2, 1, 1, 1, 0), FAKE_NONE, FAKE_TYPES(MPI_INT)))->contiguous);
}

TEST(extents_are_the_native_ones) {
  FAKE_WORLD(0, 2, 1);
  const ztype *t = known(resized(-8, 32, vector(2, 1, 3, MPI_INT)));
  SAME(t->size, 8);
  SAME(t->extent, 32);
  SAME(t->true_lb, 0);
  SAME(t->true_extent, 16);
}

TEST(null_type_has_no_properties) {
  FAKE_WORLD(0, 2, 1);
  CHECK(ztype_get(MPI_DATATYPE_NULL) == NULL);
  MPI_Datatype type = contiguous(2, MPI_INT);
  fake_uncommit(type);
  long before = fake_blocks();
  CHECK(ztype_get(type) == NULL);
  SAME(fake_blocks(), before);
  char bytes[8];
  SAME(ztype_pack(bytes, 1, type, bytes, MPI_COMM_SELF), MPI_ERR_TYPE);
  SAME(ztype_unpack(bytes, 8, bytes, 1, type, MPI_COMM_SELF), MPI_ERR_TYPE);
}

TEST(parameterized_types_of_fortran_are_predefined) {
  FAKE_WORLD(0, 2, 1);
  CHECK(known(fake_f90(MPI_COMBINER_F90_REAL, 8))->predefined);
  CHECK(known(contiguous(2, fake_f90(MPI_COMBINER_F90_INTEGER, 4)))
            ->contiguous); /* the fake ends the test if the part, which is predefined, is freed */
}

TEST(types_of_big_count_functions) {
  FAKE_WORLD(0, 2, 1);
  MPI_Datatype type = fake_big_count(contiguous(4, MPI_BYTE));
#ifdef Z_HAVE_Type_get_envelope_c
  CHECK(known(type)->contiguous);
#else
  CHECK(ztype_get(type) == NULL); /* this library lacks such functions, so the fake returns an error */
#endif
}

/* ---- lifetime of the properties ---- */

TEST(properties_are_queried_once) {
  FAKE_WORLD(0, 2, 1);
  MPI_Datatype type = contiguous(2, MPI_INT);
  const ztype *t = known(type);
  CHECK(known(type) == t);
  SAME(fake.calls.commit, 1);
}

TEST(freed_type_leaves_the_cache) {
  FAKE_WORLD(0, 2, 1);
  known(MPI_INT), known(MPI_SHORT_INT);
  long before = fake_blocks();
  int types = fake_types();
  MPI_Datatype inner = dup(contiguous(3, MPI_INT)), type = contiguous(2, inner);
  types++; /* the type from which inner was made */
  CHECK(known(type)->contiguous);
  SAME(zmap_count(&z_types), 3);
  fake_type_free(type);
  SAME(zmap_count(&z_types), 2);
  fake_type_free(inner);
  SAME(fake_types(), types); /* all that the query has allocated has been freed */
  SAME(fake_blocks(), before);
}

TEST(a_type_in_use_is_freed_with_its_last_use) {
  FAKE_WORLD(0, 2, 1);
  MPI_Datatype type = vector(2, 1, 2, MPI_INT), same = type;
  CHECK(known(type)->predefined == 0);
  ztype_retain(type), ztype_retain(type), ztype_retain(MPI_INT);
  SAME(z_Type_free(&same), MPI_SUCCESS);
  CHECK(same == MPI_DATATYPE_NULL);
  ztype_release(type);
  SAME(fake_types(), 1);
  ztype_release(type), ztype_release(MPI_INT);
  SAME(fake_types(), 0);
}

TEST(a_type_in_use_that_is_not_freed_stays) {
  FAKE_WORLD(0, 2, 1);
  MPI_Datatype type = vector(2, 1, 2, MPI_INT);
  ztype_retain(type), ztype_release(type);
  SAME(fake_types(), 1);
  SAME(z_Type_free(&type), MPI_SUCCESS);
  SAME(fake_types(), 0);
}

TEST(without_memory_there_is_no_type) {
  FAKE_WORLD(0, 2, 1);
  MPI_Datatype type = contiguous(2, MPI_INT);
  fake_no_memory(0);
  CHECK(ztype_get(type) == NULL);
  CHECK(fake_memory_failed());
  CHECK(known(type)->contiguous); /* the next query succeeds */
}

/* ---- pack and unpack ---- */

TEST(packs_and_unpacks_what_has_gaps) {
  FAKE_WORLD(0, 2, 1);
  MPI_Datatype type = resized(0, 16, vector(2, 1, 2, MPI_INT)); /* ints 0 and 2 of four */
  int in[12], packed[6], out[12];
  for (int i = 0; i < 12; i++) in[i] = i, out[i] = -1;
  SAME(ztype_pack(in, 3, type, packed, MPI_COMM_SELF), MPI_SUCCESS);
  for (int i = 0; i < 6; i++) SAME(packed[i], 2 * i);
  SAME(ztype_unpack(packed, sizeof packed, out, 3, type, MPI_COMM_SELF), MPI_SUCCESS);
  for (int i = 0; i < 12; i++) SAME(out[i], i % 2 ? -1 : i);
}

TEST(less_than_the_buffer_has_room_for) {
  FAKE_WORLD(0, 2, 1);
  MPI_Datatype type = resized(0, 16, vector(2, 1, 2, MPI_INT));
  int packed[3] = {7, 8, 9}, out[8] = {0};
  /* One element and the first half of the second. */
  SAME(ztype_unpack(packed, sizeof packed, out, 2, type, MPI_COMM_SELF), MPI_SUCCESS);
  const int want[8] = {7, 0, 8, 0, 9, 0, 0, 0};
  for (int i = 0; i < 8; i++) SAME(out[i], want[i]);
  SAME(fake.calls.unpack, 1);
  SAME(fake.calls.sendrecv, 1); /* only the native library can place a part of an element */
}

TEST(more_than_the_buffer_has_room_for) {
  FAKE_WORLD(0, 2, 1);
  int packed[3] = {7, 8, 9}, out[4] = {0};
  SAME(ztype_unpack(packed, 12, out, 1, vector(2, 1, 2, MPI_INT), MPI_COMM_SELF), MPI_ERR_TRUNCATE);
  for (int i = 0; i < 4; i++) SAME(out[i], 0);
}

TEST(empty_messages_move_no_bytes) {
  FAKE_WORLD(0, 2, 1);
  MPI_Datatype type = vector(2, 1, 2, MPI_INT), hollow = contiguous(0, MPI_INT);
  SAME(ztype_pack(NULL, 0, type, NULL, MPI_COMM_SELF), MPI_SUCCESS);
  SAME(ztype_pack(NULL, 5, hollow, NULL, MPI_COMM_SELF), MPI_SUCCESS);
  SAME(ztype_unpack(NULL, 0, NULL, 5, type, MPI_COMM_SELF), MPI_SUCCESS);
  SAME(ztype_unpack(NULL, 0, NULL, 5, hollow, MPI_COMM_SELF), MPI_SUCCESS);
  SAME(ztype_unpack(NULL, 1, NULL, 5, hollow, MPI_COMM_SELF), MPI_ERR_TRUNCATE);
  SAME(fake.calls.pack + fake.calls.unpack + fake.calls.sendrecv, 0);
}

/* MPI_BOTTOM: the type contains the addresses. */
TEST(from_and_to_the_bottom_of_memory) {
  FAKE_WORLD(0, 2, 1);
  int a = 1, b = 2, packed[2] = {0, 0};
  MPI_Datatype type =
      fake_type(MPI_COMBINER_HINDEXED, FAKE_INTS(2, 1, 1), FAKE_AINTS((MPI_Aint)&b, (MPI_Aint)&a), FAKE_TYPES(MPI_INT));
  SAME(ztype_pack(MPI_BOTTOM, 1, type, packed, MPI_COMM_SELF), MPI_SUCCESS);
  SAME(packed[0], 2);
  SAME(packed[1], 1);
  packed[0] = 20, packed[1] = 10;
  SAME(ztype_unpack(packed, 8, MPI_BOTTOM, 1, type, MPI_COMM_SELF), MPI_SUCCESS);
  SAME(a, 10);
  SAME(b, 20);
  SAME(fake.calls.pack + fake.calls.unpack, 0);
}

/* ---- more elements than an int counts: pieces, whose memory is never touched ---- */

enum { MEBI = 1 << 20 };
static char *const in = (char *)0x100000000000, *const out = (char *)0x200000000000;
static int64_t moved;
static int pieces, fail_at;

static int piece(const char *from, const char *to, int n, int bytes, int64_t from_step, int64_t to_step) {
  CHECK(from == in + moved * from_step && to == out + moved * to_step);
  CHECK(n > 0 && bytes == n * MEBI);
  moved += n;
  return ++pieces == fail_at ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int pack_piece(const void *from, int n, MPI_Datatype type, void *to, int bytes, int *position, MPI_Comm comm) {
  (void)type, (void)comm;
  SAME(*position, 0);
  return piece(from, to, n, bytes, 2 * MEBI, MEBI);
}

static int unpack_piece(const void *from, int bytes, int *position, void *to, int n, MPI_Datatype type, MPI_Comm comm) {
  (void)type, (void)comm;
  SAME(*position, 0);
  return piece(from, to, n, bytes, MEBI, 2 * MEBI);
}

TEST(large_counts_go_in_pieces) {
  FAKE_WORLD(0, 2, 1);
  real.Pack = pack_piece, real.Unpack = unpack_piece;
  MPI_Datatype type = fake_gapped(MEBI, 2 * MEBI);
  SAME(ztype_pack(in, 3000, type, out, MPI_COMM_SELF), MPI_SUCCESS);
  SAME(moved, 3000);
  SAME(pieces, 3);
  moved = pieces = 0;
  SAME(ztype_unpack(in, (int64_t)3000 * MEBI, out, 4000, type, MPI_COMM_SELF), MPI_SUCCESS);
  SAME(moved, 3000);
  SAME(pieces, 3);
}

TEST(the_first_piece_that_fails_is_the_last) {
  FAKE_WORLD(0, 2, 1);
  real.Pack = pack_piece, real.Unpack = unpack_piece;
  MPI_Datatype type = fake_gapped(MEBI, 2 * MEBI);
  fail_at = 2;
  SAME(ztype_pack(in, 3000, type, out, MPI_COMM_SELF), MPI_ERR_OTHER);
  SAME(pieces, 2);
}

/* ---- more bytes than an int counts ---- */

static int64_t large_bytes; /* the bytes of the type that was made last */
static int large_freed, large_sent;
#define LARGE ((MPI_Datatype)(uintptr_t)0x4fffff0)

#ifdef Z_HAVE_Type_contiguous_c
static int large_type(MPI_Count n, MPI_Datatype of, MPI_Datatype *out) {
  CHECK(of == MPI_PACKED);
  large_bytes = n, *out = LARGE;
  return MPI_SUCCESS;
}
#else
static int large_piece(int n, MPI_Datatype of, MPI_Datatype *out) {
  CHECK(of == MPI_PACKED);
  large_bytes = n, *out = MPI_BYTE;
  return MPI_SUCCESS;
}
static int large_type(int n, const int lengths[], const MPI_Aint at[], const MPI_Datatype types[], MPI_Datatype *out) {
  CHECK(n == 2 && types[0] == MPI_BYTE && types[1] == MPI_PACKED);
  SAME(at[0], 0);
  SAME(at[1], lengths[0] * large_bytes);
  large_bytes = lengths[0] * large_bytes + lengths[1], *out = LARGE;
  return MPI_SUCCESS;
}
#endif
static int large_commit(MPI_Datatype *type) {
  CHECK(*type == LARGE);
  return MPI_SUCCESS;
}
static int large_free(MPI_Datatype *type) {
  large_freed += *type == LARGE;
  return MPI_SUCCESS;
}
static int large_message(const void *from, int n, MPI_Datatype what, int dest, int tag, void *to, int m,
                         MPI_Datatype as, int source, int tag2, MPI_Comm comm, MPI_Status *status) {
  (void)dest, (void)tag, (void)source, (void)tag2, (void)status;
  CHECK(from == in && to == out && comm == z_self && n == 1 && m == 1 && (what == LARGE) != (as == LARGE));
  large_sent++;
  return MPI_SUCCESS;
}

TEST(an_element_beyond_an_int_goes_by_a_message) {
  FAKE_WORLD(0, 2, 1);
  const int64_t bytes = ((int64_t)5 << 30) + 77;
  MPI_Datatype type = fake_gapped(bytes, (int64_t)1 << 33);
  CHECK(ztype_get(type) != NULL);
#ifdef Z_HAVE_Type_contiguous_c
  real.Type_contiguous_c = large_type;
#else
  real.Type_contiguous = large_piece, real.Type_create_struct = large_type;
#endif
  real.Type_commit = large_commit, real.Type_free = large_free, real.Sendrecv = large_message;
  large_freed = large_sent = 0;
  SAME(ztype_pack(in, 1, type, out, MPI_COMM_SELF), MPI_SUCCESS);
  SAME(large_bytes, bytes);
  SAME(ztype_unpack(in, bytes, out, 1, type, MPI_COMM_SELF), MPI_SUCCESS);
  SAME(large_bytes, bytes);
  SAME(ztype_unpack(in, bytes - 5, out, 1, type, MPI_COMM_SELF), MPI_SUCCESS); /* a part of the element */
  SAME(large_bytes, bytes - 5);
  SAME(large_sent, 3);
  SAME(large_freed, 3);
}

#ifdef Z_HAVE_Type_contiguous_c
static int made_type(MPI_Count n, MPI_Datatype of, MPI_Datatype *out) {
  CHECK(n > INT_MAX);
  *out = contiguous(2, of);
  return MPI_SUCCESS;
}
#else
static int made_piece(int n, MPI_Datatype of, MPI_Datatype *out) {
  CHECK(n > 1);
  *out = contiguous(2, of);
  return MPI_SUCCESS;
}
static int made_type(int n, const int lengths[], const MPI_Aint at[], const MPI_Datatype types[], MPI_Datatype *out) {
  CHECK(n == 2 && lengths[0] > 0 && at[0] == 0);
  *out = contiguous(2, types[1]);
  return MPI_SUCCESS;
}
#endif
static int made_commit(MPI_Datatype *type) {
  CHECK(ztype_get(*type) != NULL);
  return MPI_SUCCESS;
}

TEST(type_for_a_large_count_stays_while_a_request_uses_it) {
  FAKE_WORLD(0, 2, 1);
#ifdef Z_HAVE_Type_contiguous_c
  real.Type_contiguous_c = made_type;
#else
  real.Type_contiguous = made_piece, real.Type_create_struct = made_type;
#endif
  real.Type_commit = made_commit;
  const int types = fake_types();
  zmany m;
  SAME(zmany_begin(&m, (int64_t)INT_MAX + 1, MPI_INT), MPI_SUCCESS);
  const MPI_Datatype used = m.type;
  ztype_retain(used);
  ztype_end(&m);
  SAME(fake_types(), types + 1);
  ztype_release(used);
  SAME(fake_types(), types);
}
