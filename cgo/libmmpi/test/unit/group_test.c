/* Groups of virtual ranks (comm/group.c). This process is rank 4 of clusters of 3, 4 and 2: virtual
 * ranks 3 to 6 are of this cluster. */
#include "comm/group.h"
#include "test.h"

static void world(void) { FAKE_WORLD(4, 3, 4, 2); }

#define RANKS(...) \
  COUNT(((int32_t[]){__VA_ARGS__})), (const int32_t[]) { __VA_ARGS__ }

static MPI_Group group(int n, const int32_t *ranks) {
  MPI_Group g;
  SAME(zgroup_new(ranks, n, &g), MPI_SUCCESS);
  return g;
}
#define GROUP(...) group(RANKS(__VA_ARGS__))

/* Checks a group's members and frees it. */
static void is(MPI_Group g, int n, const int32_t *ranks) {
  const zgroup *z = zgroup_get(g);
  CHECK(z != NULL);
  SAME(z->size, n);
  for (int i = 0; i < n; i++) SAME(z->rank[i], ranks[i]);
  int size = -1;
  SAME(z_Group_size(g, &size), MPI_SUCCESS);
  SAME(size, n);
  SAME(z_Group_free(&g), MPI_SUCCESS);
  CHECK(g == MPI_GROUP_NULL);
}

static int nothing_left(void) { return fake.groups == 0; }

TEST(a_group_has_its_ranks_in_order) {
  world();
  is(GROUP(8, 0, 4), RANKS(8, 0, 4));
  CHECK(nothing_left());
}

TEST(the_empty_group) {
  world();
  MPI_Group g = group(0, (const int32_t[]){0}), native;
  CHECK(g == MPI_GROUP_EMPTY);
  SAME(zgroup_native(g, &native), MPI_SUCCESS);
  CHECK(native == MPI_GROUP_EMPTY);
  int size = -1;
  SAME(z_Group_size(g, &size), MPI_SUCCESS);
  SAME(size, 0);
  SAME(z_Group_free(&g), MPI_SUCCESS);
  CHECK(g == MPI_GROUP_NULL);
}

TEST(union_intersection_difference) {
  world();
  MPI_Group a = GROUP(5, 1, 8), b = GROUP(8, 2, 5, 0), out;
  SAME(z_Group_union(a, b, &out), MPI_SUCCESS);
  is(out, RANKS(5, 1, 8, 2, 0));
  SAME(z_Group_intersection(a, b, &out), MPI_SUCCESS);
  is(out, RANKS(5, 8)); /* in the order of the first group */
  SAME(z_Group_difference(a, b, &out), MPI_SUCCESS);
  is(out, RANKS(1));
  SAME(z_Group_difference(a, a, &out), MPI_SUCCESS);
  CHECK(out == MPI_GROUP_EMPTY);
  SAME(z_Group_union(a, MPI_GROUP_EMPTY, &out), MPI_SUCCESS);
  is(out, RANKS(5, 1, 8));
  SAME(z_Group_intersection(MPI_GROUP_EMPTY, a, &out), MPI_SUCCESS);
  CHECK(out == MPI_GROUP_EMPTY);
  z_Group_free(&a), z_Group_free(&b);
  CHECK(nothing_left());
}

TEST(include_and_exclude) {
  world();
  MPI_Group g = GROUP(5, 1, 8, 3), out;
  SAME(z_Group_incl(g, 2, (const int[]){3, 0}, &out), MPI_SUCCESS);
  is(out, RANKS(3, 5));
  SAME(z_Group_excl(g, 2, (const int[]){3, 0}, &out), MPI_SUCCESS);
  is(out, RANKS(1, 8));
  SAME(z_Group_incl(g, 0, NULL, &out), MPI_SUCCESS);
  CHECK(out == MPI_GROUP_EMPTY);
  SAME(z_Group_excl(g, 0, NULL, &out), MPI_SUCCESS);
  is(out, RANKS(5, 1, 8, 3));
  z_Group_free(&g);
}

TEST(invalid_ranks_are_errors) {
  world();
  MPI_Group g = GROUP(5, 1, 8), out;
  long before = fake_blocks();
  SAME(z_Group_incl(g, 1, (const int[]){3}, &out), MPI_ERR_RANK);
  SAME(z_Group_incl(g, 1, (const int[]){-1}, &out), MPI_ERR_RANK);
  SAME(z_Group_incl(g, 2, (const int[]){1, 1}, &out), MPI_ERR_RANK); /* a rank occurs twice */
  SAME(z_Group_incl(g, 4, (const int[]){0, 1, 2, 0}, &out), MPI_ERR_RANK);
  SAME(z_Group_incl(g, -1, NULL, &out), MPI_ERR_ARG);
  SAME(z_Group_excl(g, 1, (const int[]){3}, &out), MPI_ERR_RANK);
  SAME(z_Group_range_incl(g, 1, (int[][3]){{0, 3, 1}}, &out), MPI_ERR_RANK);
  SAME(z_Group_range_incl(g, 1, (int[][3]){{0, 2, 0}}, &out), MPI_ERR_ARG);
  SAME(z_Group_range_incl(g, 2, (int[][3]){{0, 2, 1}, {0, 0, 1}}, &out), MPI_ERR_RANK);
  SAME(fake_blocks(), before);
  SAME(fake.raised, 9);
  CHECK(fake.raised_on == MPI_COMM_WORLD);
  z_Group_free(&g);
  CHECK(nothing_left());
}

TEST(ranges) {
  world();
  MPI_Group g = GROUP(8, 7, 6, 5, 4, 3), out;
  SAME(z_Group_range_incl(g, 2, (int[][3]){{5, 1, -2}, {0, 0, 1}}, &out), MPI_SUCCESS);
  is(out, RANKS(3, 5, 7, 8));
  SAME(z_Group_range_excl(g, 1, (int[][3]){{0, 4, 2}}, &out), MPI_SUCCESS);
  is(out, RANKS(7, 5, 3));
  SAME(z_Group_range_incl(g, 1, (int[][3]){{3, 2, 1}}, &out), MPI_SUCCESS); /* a range without members */
  CHECK(out == MPI_GROUP_EMPTY);
  /* a stride beyond the range of int */
  SAME(z_Group_range_incl(g, 1, (int[][3]){{1, 5, 2147483647}}, &out), MPI_SUCCESS);
  is(out, RANKS(7));
  z_Group_free(&g);
}

TEST(translate_compare_and_rank) {
  world();
  MPI_Group a = GROUP(5, 4, 8), b = GROUP(8, 5, 2), c = GROUP(8, 4, 5), d = GROUP(5, 4, 8), out;
  int ranks[4], result, rank;
  SAME(z_Group_translate_ranks(a, 4, (const int[]){0, MPI_PROC_NULL, 1, 2}, b, ranks), MPI_SUCCESS);
  SAME(ranks[0], 1);
  SAME(ranks[1], MPI_PROC_NULL);
  SAME(ranks[2], MPI_UNDEFINED);
  SAME(ranks[3], 0);
  SAME(z_Group_translate_ranks(a, 1, (const int[]){3}, b, ranks), MPI_ERR_RANK);
  z_Group_compare(a, d, &result);
  SAME(result, MPI_IDENT);
  z_Group_compare(a, c, &result);
  SAME(result, MPI_SIMILAR);
  z_Group_compare(a, b, &result);
  SAME(result, MPI_UNEQUAL);
  z_Group_incl(a, 2, (const int[]){0, 1}, &out);
  z_Group_compare(a, out, &result);
  SAME(result, MPI_UNEQUAL);
  fake_no_memory(0);
  z_Group_compare(a, c, &result);
  SAME(result, MPI_SIMILAR);
  fake_no_memory(0);
  z_Group_compare(a, b, &result);
  SAME(result, MPI_UNEQUAL);
  z_Group_rank(a, &rank);
  SAME(rank, 1); /* this process is virtual rank 4 */
  z_Group_rank(b, &rank);
  SAME(rank, MPI_UNDEFINED);
  z_Group_free(&a), z_Group_free(&b), z_Group_free(&c), z_Group_free(&d), z_Group_free(&out);
}

TEST(invalid_groups_are_errors) {
  world();
  MPI_Group g = GROUP(1, 2), gone = g, out;
  int n;
  z_Group_free(&g);
  SAME(z_Group_size(gone, &n), MPI_ERR_GROUP);
  SAME(z_Group_rank(MPI_GROUP_NULL, &n), MPI_ERR_GROUP);
  SAME(z_Group_union(MPI_GROUP_EMPTY, gone, &out), MPI_ERR_GROUP);
  SAME(z_Group_incl(gone, 0, NULL, &out), MPI_ERR_GROUP);
  SAME(z_Group_range_incl(gone, 0, NULL, &out), MPI_ERR_GROUP);
  SAME(z_Group_compare(gone, gone, &n), MPI_ERR_GROUP);
  SAME(z_Group_translate_ranks(gone, 0, NULL, MPI_GROUP_EMPTY, NULL), MPI_ERR_GROUP);
  SAME(z_Group_free(&gone), MPI_ERR_GROUP);
  SAME(zgroup_native(gone, &out), MPI_ERR_GROUP);
  SAME(fake.raised, 8); /* the caller raises the last error */
}

/* ---- native groups ---- */

TEST(a_native_group_of_members_here) {
  world();
  MPI_Group g = GROUP(6, 3), elsewhere = GROUP(3, 7), native, whole;
  SAME(zgroup_native(g, &native), MPI_SUCCESS);
  int ranks[2];
  CHECK(!real.Comm_group(MPI_COMM_WORLD, &whole));
  CHECK(!real.Group_translate_ranks(native, 2, (const int[]){0, 1}, whole, ranks));
  SAME(ranks[0], 3);
  SAME(ranks[1], 0);
  real.Group_free(&native), real.Group_free(&whole);
  SAME(zgroup_native(elsewhere, &native), MPI_ERR_GROUP);
  z_Group_free(&g), z_Group_free(&elsewhere);
  CHECK(nothing_left());
}

TEST(a_native_group_becomes_one_of_virtual_ranks) {
  world();
  MPI_Group whole, native, g;
  CHECK(!real.Comm_group(MPI_COMM_WORLD, &whole));
  CHECK(!real.Group_incl(whole, 2, (const int[]){3, 1}, &native));
  real.Group_free(&whole);
  SAME(zgroup_wrap(&native, &g), MPI_SUCCESS);
  CHECK(native == MPI_GROUP_NULL); /* the wrapped group has been freed */
  is(g, RANKS(6, 4));
  native = MPI_GROUP_EMPTY;
  SAME(zgroup_wrap(&native, &g), MPI_SUCCESS);
  CHECK(g == MPI_GROUP_EMPTY);
  CHECK(nothing_left());
}

TEST(cluster_has_its_own_virtual_ranks) {
  world();
  for (int v = 0; v < 9; v++) SAME(zcluster_has(v), v >= 3 && v < 7);
}

TEST(without_memory) {
  world();
  MPI_Group a = GROUP(5, 1, 8), b = GROUP(8, 2), out;
  long before = fake_blocks();
  int groups = fake.groups, ranks[3];
#define EACH(CALL)               \
  for (int i = 0;; i++) {        \
    fake_no_memory(i);           \
    int rc = CALL;               \
    if (!fake_memory_failed()) { \
      SAME(rc, MPI_SUCCESS);     \
      CHECK(i > 0);              \
      break;                     \
    }                            \
    SAME(rc, MPI_ERR_NO_MEM);    \
    SAME(fake_blocks(), before); \
    SAME(fake.groups, groups);   \
  }                              \
  fake_no_memory(-1)
  EACH(zgroup_new((const int32_t[]){1}, 1, &out));
  z_Group_free(&out);
  EACH(z_Group_union(a, b, &out));
  z_Group_free(&out);
  EACH(z_Group_difference(a, b, &out));
  z_Group_free(&out);
  EACH(z_Group_incl(a, 1, (const int[]){1}, &out));
  z_Group_free(&out);
  EACH(z_Group_excl(a, 1, (const int[]){1}, &out));
  z_Group_free(&out);
  EACH(z_Group_range_incl(a, 1, (int[][3]){{0, 1, 1}}, &out));
  z_Group_free(&out);
  EACH(z_Group_translate_ranks(a, 1, (const int[]){1}, b, ranks));
  MPI_Group here = GROUP(4);
  before = fake_blocks(), groups = fake.groups;
  EACH(zgroup_native(here, &out));
  real.Group_free(&out);
  MPI_Group native;
  CHECK(!real.Comm_group(MPI_COMM_WORLD, &native));
  fake_no_memory(1);
  SAME(zgroup_wrap(&native, &out), MPI_ERR_NO_MEM);
  SAME(fake_blocks(), before);
  fake_no_memory(-1);
}
