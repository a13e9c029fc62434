/* The collectives with counts per rank: gaps, zeros, other orders, derived types, IN_PLACE, and
 * types that differ between the two sides. */
#include "check.h"

static int value(int from, int to, int i) { return from * 1000000 + to * 10000 + i % 10000; }
/* the number of elements that rank p has for rank q, which may be 0 */
static int amount(int p, int q, int scale) { return (p * 3 + q * 5) % 4 == 1 ? 0 : ((p + 2 * q) % 5 + 1) * scale; }

int main(int argc, char **argv) {
  start(&argc, &argv);
  static const int scales[] = {1, 50, 9000};
  int *sc = malloc(np * sizeof *sc), *sd = malloc(np * sizeof *sd), *rc = malloc(np * sizeof *rc),
      *rd = malloc(np * sizeof *rd);
  for (int s = 0; s < 3; s++) {
    int scale = scales[s], room = 6 * scale + 3, total = np * room;
    int *a = malloc(total * sizeof *a), *b = malloc(total * sizeof *b);
    uint64_t h = 0;
#define CLEAR()                                                \
  do {                                                         \
    for (int i_ = 0; i_ < total; i_++) a[i_] = -2, b[i_] = -1; \
  } while (0)
#define EXPECT(what, p, q, at, n, gap)                                                                \
  do {                                                                                                \
    for (int i_ = 0; i_ < room - 2; i_++) {                                                           \
      int w_ = i_ < (n) ? value(p, q, i_) : (gap);                                                    \
      if (b[(at) + i_] != w_) {                                                                       \
        failed(__FILE__, __LINE__, "%s from %d: [%d] is %d, want %d", what, p, i_, b[(at) + i_], w_); \
        break;                                                                                        \
      }                                                                                               \
    }                                                                                                 \
  } while (0)
    for (int root = 0; root < np; root++)
      for (int in_place = 0; in_place < 2; in_place++) {
        /* gatherv: blocks in reverse order, with gaps */
        CLEAR();
        int n = amount(me, root, scale);
        for (int p = 0; p < np; p++) rc[p] = amount(p, root, scale), rd[p] = (np - 1 - p) * room + 1;
        for (int i = 0; i < n; i++) a[i] = value(me, root, i);
        if (in_place && me == root)
          for (int i = 0; i < n; i++) b[rd[me] + i] = a[i];
        MPI_Gatherv(in_place && me == root ? MPI_IN_PLACE : a, n, MPI_INT, b, rc, rd, MPI_INT, root, MPI_COMM_WORLD);
        if (me == root)
          for (int p = 0; p < np; p++) EXPECT("gatherv", p, root, rd[p], rc[p], -1);
        if (me == root) h = digest(h, b, total * sizeof *b);
        CLEAR();
        for (int p = 0; p < np; p++) {
          sc[p] = amount(root, p, scale), sd[p] = (np - 1 - p) * room + 2;
          for (int i = 0; i < sc[p]; i++) a[sd[p] + i] = value(root, p, i);
        }
        n = amount(root, me, scale);
        if (in_place && me == root) {
          MPI_Scatterv(a, sc, sd, MPI_INT, MPI_IN_PLACE, n, MPI_INT, root, MPI_COMM_WORLD);
        } else {
          MPI_Scatterv(a, sc, sd, MPI_INT, b, n, MPI_INT, root, MPI_COMM_WORLD);
          EXPECT("scatterv", root, me, 0, n, -1);
          h = digest(h, b, room * sizeof *b);
        }
      }
    for (int in_place = 0; in_place < 2; in_place++) {
      CLEAR();
      int n = amount(me, 0, scale);
      for (int p = 0; p < np; p++) rc[p] = amount(p, 0, scale), rd[p] = (p * 7 % np + (p * 7 / np) * 0) * room;
      for (int p = 0; p < np; p++) rd[p] = ((p + 1) % np) * room + 1;
      for (int i = 0; i < n; i++) *(in_place ? &b[rd[me] + i] : &a[i]) = value(me, 0, i);
      MPI_Allgatherv(in_place ? MPI_IN_PLACE : a, n, MPI_INT, b, rc, rd, MPI_INT, MPI_COMM_WORLD);
      for (int p = 0; p < np; p++) EXPECT("allgatherv", p, 0, rd[p], rc[p], -1);
      h = digest(h, b, total * sizeof *b);
      CLEAR();
      for (int i = 0; i < scale; i++) *(in_place ? &b[me * scale + i] : &a[i]) = value(me, 1, i);
      MPI_Allgather(in_place ? MPI_IN_PLACE : a, scale, MPI_INT, b, scale, MPI_INT, MPI_COMM_WORLD);
      for (int i = 0; i < np * scale; i++)
        if (b[i] != value(i / scale, 1, i % scale)) {
          failed(__FILE__, __LINE__, "allgather at %d", i);
          break;
        }
      for (int root = 0; root < np; root++) {
        CLEAR();
        for (int i = 0; i < scale; i++) *(in_place && me == root ? &b[me * scale + i] : &a[i]) = value(me, 2, i);
        MPI_Gather(in_place && me == root ? MPI_IN_PLACE : a, scale, MPI_INT, b, scale, MPI_INT, root, MPI_COMM_WORLD);
        if (me == root)
          for (int i = 0; i < np * scale; i++)
            if (b[i] != value(i / scale, 2, i % scale)) {
              failed(__FILE__, __LINE__, "gather at %d", i);
              break;
            }
        CLEAR();
        for (int i = 0; i < np * scale; i++) a[i] = value(i / scale, 3, i % scale);
        int *to = in_place && me == root ? MPI_IN_PLACE : b;
        MPI_Scatter(a, scale, MPI_INT, to, scale, MPI_INT, root, MPI_COMM_WORLD);
        if (to == b)
          for (int i = 0; i < scale; i++)
            if (b[i] != value(me, 3, i)) {
              failed(__FILE__, __LINE__, "scatter at %d", i);
              break;
            }
      }
    }
    CLEAR();
    for (int p = 0; p < np; p++) {
      sc[p] = amount(me, p, scale), sd[p] = (np - 1 - p) * room, rc[p] = amount(p, me, scale),
      rd[p] = ((p + 2) % np) * room + 1;
      for (int i = 0; i < sc[p]; i++) a[sd[p] + i] = value(me, p, i);
    }
    MPI_Alltoallv(a, sc, sd, MPI_INT, b, rc, rd, MPI_INT, MPI_COMM_WORLD);
    for (int p = 0; p < np; p++) EXPECT("alltoallv", p, me, rd[p], rc[p], -1);
    h = digest(h, b, total * sizeof *b);
    /* in place the two sides' counts must be the same both ways */
    CLEAR();
    for (int p = 0; p < np; p++) {
      rc[p] = ((p + me) % 3) * scale, rd[p] = p * room + 1;
      for (int i = 0; i < rc[p]; i++) b[rd[p] + i] = value(me, p, i);
    }
    MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, b, rc, rd, MPI_INT, MPI_COMM_WORLD);
    for (int p = 0; p < np; p++) EXPECT("alltoallv in place", p, me, rd[p], rc[p], -1);
    CLEAR();
    for (int p = 0; p < np; p++)
      for (int i = 0; i < scale; i++) b[p * scale + i] = value(me, p, i);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, scale, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < np * scale; i++)
      if (b[i] != value(i / scale, me, i % scale)) {
        failed(__FILE__, __LINE__, "alltoall in place at %d", i);
        break;
      }
    h = digest(h, b, total * sizeof *b);
    line("scale %d: %016llx", scale, (unsigned long long)h);
    free(a), free(b);
  }
  /* Derived types: a column is sent and a row received, and vice versa. */
  enum { R = 40 };
  MPI_Datatype column, spaced;
  MPI_Type_vector(R, 1, np, MPI_INT, &column);
  MPI_Type_create_resized(column, 0, sizeof(int), &spaced);
  MPI_Type_commit(&column), MPI_Type_commit(&spaced);
  int *m = malloc(R * np * sizeof *m), *t = malloc(R * np * sizeof *t);
  for (int i = 0; i < R * np; i++) m[i] = value(me, i % np, i / np), t[i] = -1;
  MPI_Alltoall(m, 1, spaced, t, R, MPI_INT, MPI_COMM_WORLD); /* transposes */
  for (int i = 0; i < R * np; i++)
    if (t[i] != value(i / R, me, i % R)) {
      failed(__FILE__, __LINE__, "columns to rows at %d", i);
      break;
    }
  for (int i = 0; i < R * np; i++) m[i] = -1;
  MPI_Alltoall(t, R, MPI_INT, m, 1, spaced, MPI_COMM_WORLD);
  for (int i = 0; i < R * np; i++)
    if (m[i] != value(me, i % np, i / np)) {
      failed(__FILE__, __LINE__, "rows to columns at %d", i);
      break;
    }
  for (int root = 0; root < np; root++) {
    for (int i = 0; i < R * np; i++) m[i] = me == root ? value(root, i % np, i / np) : -1, t[i] = -1;
    MPI_Scatter(m, 1, spaced, t, R, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; i < R; i++) SAME(t[i], value(root, me, i), "scattered column");
    for (int i = 0; i < R * np; i++) m[i] = -1;
    MPI_Gather(t, R, MPI_INT, m, 1, spaced, root, MPI_COMM_WORLD);
    if (me == root)
      for (int i = 0; i < R * np; i++) SAME(m[i], value(root, i % np, i / np), "gathered columns");
    for (int i = 0; i < R * np; i++) m[i] = me == root ? i : -1;
    MPI_Bcast(m, 1, column, root, MPI_COMM_WORLD);
    for (int i = 0; i < R * np; i++) SAME(m[i], me == root || i % np == 0 ? i : -1, "bcast of a column");
  }
  for (int i = 0; i < R * np; i++) m[i] = -1;
  for (int i = 0; i < R; i++) t[i] = value(me, 7, i);
  MPI_Allgather(t, R, MPI_INT, m, 1, spaced, MPI_COMM_WORLD);
  for (int i = 0; i < R * np; i++) SAME(m[i], value(i % np, 7, i / np), "allgathered columns");

  /* Alltoallw: a different type for each partner, byte displacements. */
  MPI_Datatype *st = malloc(np * sizeof *st), *rt = malloc(np * sizeof *rt);
  for (int i = 0; i < R * np; i++) m[i] = value(me, i % np, i / np), t[i] = -1;
  for (int p = 0; p < np; p++) {
    int odd = (p + me) % 2;
    sc[p] = (p + me) % 3 == 2 ? 0 : 1, sd[p] = p * (int)sizeof(int), st[p] = column;
    rc[p] = (p + me) % 3 == 2 ? 0 : R / (odd ? R : 1), rd[p] = p * R * (int)sizeof(int);
    if (odd) MPI_Type_contiguous(R, MPI_INT, &rt[p]), MPI_Type_commit(&rt[p]);
    else rt[p] = MPI_INT;
  }
  MPI_Alltoallw(m, sc, sd, st, t, rc, rd, rt, MPI_COMM_WORLD);
  for (int p = 0; p < np; p++) {
    for (int i = 0; i < R; i++) SAME(t[p * R + i], (p + me) % 3 == 2 ? -1 : value(p, me, i), "alltoallw");
    if ((p + me) % 2) MPI_Type_free(&rt[p]);
  }
  line("types: %016llx", (unsigned long long)digest(0, t, R * np * sizeof *t));
  MPI_Type_free(&column), MPI_Type_free(&spaced);
  free(m), free(t), free(st), free(rt), free(sc), free(sd), free(rc), free(rd);
  return finish();
}
