/* Groups: every operation on them, comparison, translation between groups and communicators. */
#include "check.h"

static void members(const char *what, MPI_Group g, int n, const int *want) {
  MPI_Group world;
  int size, rank, of_mine = MPI_UNDEFINED, ranks[64], translated[64];
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_size(g, &size);
  SAME(size, n, what);
  for (int i = 0; i < n; i++) {
    ranks[i] = i;
    if (want[i] == me) of_mine = i;
  }
  MPI_Group_rank(g, &rank);
  SAME(rank, of_mine, what);
  MPI_Group_translate_ranks(g, n, ranks, world, translated);
  for (int i = 0; i < n && i < size; i++) SAME(translated[i], want[i], what);
  MPI_Group_free(&world);
  char text[500];
  int at = 0;
  text[0] = 0;
  for (int i = 0; i < size && i < n; i++) at += sprintf(text + at, " %d", translated[i]);
  if (me == 0) line("%s:%s", what, text);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  MPI_Group world, even, odd, low, g, h;
  int a[64], n = 0, result, ranks[3], out[3];
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  for (int i = 0; i < np; i++) a[i] = i;
  members("world", world, np, a);
  for (int i = np - 1; i >= 0; i--)
    if (i % 2 == 0) a[n++] = i;
  MPI_Group_incl(world, n, a, &even);
  members("even, backwards", even, n, a);
  MPI_Group_excl(world, n, a, &odd);
  n = 0;
  for (int i = 1; i < np; i += 2) a[n++] = i;
  members("odd", odd, n, a);
  int range[1][3] = {{0, (np - 1) / 2, 1}};
  MPI_Group_range_incl(world, 1, range, &low);
  n = 0;
  for (int i = 0; i <= (np - 1) / 2; i++) a[n++] = i;
  members("low", low, n, a);
  MPI_Group_range_excl(world, 1, range, &g);
  n = 0;
  for (int i = (np - 1) / 2 + 1; i < np; i++) a[n++] = i;
  members("high", g, n, a);
  MPI_Group_free(&g);
  CHECK(g == MPI_GROUP_NULL, "free left the handle");
  int back[2][3] = {{np - 1, np - 1, 1}, {0, 0, 1}};
  MPI_Group_range_incl(world, np > 1 ? 2 : 1, back, &g);
  a[0] = np - 1, a[1] = 0;
  members("last and first", g, np > 1 ? 2 : 1, a);
  MPI_Group_free(&g);
  int down[1][3] = {{np - 1, 0, -2}};
  MPI_Group_range_incl(world, 1, down, &g);
  n = 0;
  for (int i = np - 1; i >= 0; i -= 2) a[n++] = i;
  members("down by two", g, n, a);
  MPI_Group_free(&g);

  MPI_Group_union(odd, even, &g); /* the first group, then the members that only the second has */
  n = 0;
  for (int i = 1; i < np; i += 2) a[n++] = i;
  for (int i = np - 1; i >= 0; i--)
    if (i % 2 == 0) a[n++] = i;
  members("union", g, n, a);
  MPI_Group_compare(g, world, &result);
  SAME(result, np == 1 ? MPI_IDENT : MPI_SIMILAR, "union compared with the world");
  MPI_Group_free(&g);
  MPI_Group_intersection(even, low, &g); /* in the order of the first group */
  n = 0;
  for (int i = (np - 1) / 2; i >= 0; i--)
    if (i % 2 == 0) a[n++] = i;
  members("intersection", g, n, a);
  MPI_Group_free(&g);
  MPI_Group_difference(even, low, &g);
  n = 0;
  for (int i = np - 1; i > (np - 1) / 2; i--)
    if (i % 2 == 0) a[n++] = i;
  members("difference", g, n, a);
  MPI_Group_free(&g);
  MPI_Group_intersection(even, odd, &g);
  members("nothing", g, 0, a);
  MPI_Group_compare(g, MPI_GROUP_EMPTY, &result);
  SAME(result, MPI_IDENT, "empty compared with empty");
  if (g != MPI_GROUP_EMPTY) MPI_Group_free(&g);
  MPI_Group_incl(world, 0, NULL, &g);
  MPI_Group_union(g, low, &h);
  MPI_Group_compare(h, low, &result);
  SAME(result, MPI_IDENT, "union with nothing");
  MPI_Group_free(&h);
  if (g != MPI_GROUP_EMPTY) MPI_Group_free(&g);
  MPI_Group_compare(even, odd, &result);
  SAME(result, MPI_UNEQUAL, "even compared with odd");

  ranks[0] = 0, ranks[1] = MPI_PROC_NULL, ranks[2] = np - 1;
  MPI_Group_translate_ranks(world, 3, ranks, odd, out);
  SAME(out[0], MPI_UNDEFINED, "translated 0");
  SAME(out[1], MPI_PROC_NULL, "translated PROC_NULL");
  SAME(out[2], (np - 1) % 2 ? (np - 2) / 2 : MPI_UNDEFINED, "translated last");

  MPI_Comm c;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &c);
  MPI_Comm_group(c, &g);
  for (int i = 0; i < np; i++) a[i] = np - 1 - i;
  members("reversed", g, np, a);
  MPI_Comm_free(&c); /* the group stays valid */
  members("reversed, its communicator freed", g, np, a);
  MPI_Group_free(&g);
  MPI_Comm_group(MPI_COMM_SELF, &g);
  MPI_Group_compare(g, world, &result);
  SAME(result, np == 1 ? MPI_IDENT : MPI_UNEQUAL, "self compared with the world");
  MPI_Group_free(&g);
  MPI_Group_free(&world), MPI_Group_free(&even), MPI_Group_free(&odd), MPI_Group_free(&low);
  return finish();
}
