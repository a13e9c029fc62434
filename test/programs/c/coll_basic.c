/* Every collective of MPI-1 with predefined operators, every root, sizes from 0 to 300 000 ints. */
#include "check.h"

static long long got_sum;
#define GOT(p, n) (got_sum = (long long)digest((uint64_t)got_sum, p, (size_t)(n) * sizeof *(p)))

static int value(int rank, int i) { return (int)(mix((uint64_t)rank << 32 | (unsigned)i) & 0xffff); }

int main(int argc, char **argv) {
  /* 240: on 7 ranks the result of a small allgather is then no longer a small broadcast */
  static const int sizes[] = {0, 1, 5, 240, 1000, 17000, 300000};
  start(&argc, &argv);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int s = 0; s < 7; s++) {
    int n = sizes[s], total = n * np;
    if (n == 300000 && np > 4) continue;
    int *a = malloc((n + 1) * sizeof *a), *b = malloc((n + 1) * sizeof *b), *all = malloc((total + 1) * sizeof *all),
        *each = malloc((total + 1) * sizeof *each);
    for (int root = 0; root < np; root++) {
      if (n >= 17000 && root != 0 && root != np - 1) continue;
      for (int i = 0; i < n; i++) a[i] = me == root ? value(root, i) : -1;
      MPI_Bcast(a, n, MPI_INT, root, MPI_COMM_WORLD);
      for (int i = 0; i < n; i++)
        if (a[i] != value(root, i)) {
          failed(__FILE__, __LINE__, "bcast %d root %d", n, root);
          break;
        }

      for (int i = 0; i < n; i++) a[i] = value(me, i), b[i] = -1;
      MPI_Reduce(a, b, n, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
      for (int i = 0; i < n; i++) {
        int want = 0;
        for (int p = 0; p < np; p++) want += value(p, i);
        if (b[i] != (me == root ? want : -1)) {
          failed(__FILE__, __LINE__, "reduce %d root %d: [%d] = %d want %d", n, root, i, b[i], want);
          break;
        }
      }
      memset(all, 0xff, (total + 1) * sizeof *all);
      MPI_Gather(a, n, MPI_INT, all, n, MPI_INT, root, MPI_COMM_WORLD);
      for (int i = 0; i < total; i++)
        if (all[i] != (me == root ? value(i / n, i % n) : -1)) {
          failed(__FILE__, __LINE__, "gather %d root %d at %d", n, root, i);
          break;
        }
      for (int i = 0; i < total; i++) all[i] = me == root ? value(100 + i / n, i % n) : -1;
      memset(b, 0xff, (n + 1) * sizeof *b);
      MPI_Scatter(all, n, MPI_INT, b, n, MPI_INT, root, MPI_COMM_WORLD);
      for (int i = 0; i < n; i++)
        if (b[i] != value(100 + me, i)) {
          failed(__FILE__, __LINE__, "scatter %d root %d", n, root);
          break;
        }
      SAME(b[n], -1, "word past the end");
      GOT(b, n);
    }
    memset(all, 0xff, (total + 1) * sizeof *all);
    for (int i = 0; i < n; i++) a[i] = value(me, i);
    MPI_Allgather(a, n, MPI_INT, all, n, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < total; i++)
      if (all[i] != value(i / n, i % n)) {
        failed(__FILE__, __LINE__, "allgather %d at %d", n, i);
        break;
      }
    SAME(all[total], -1, "word past the end");
    GOT(all, total);
    for (int i = 0; i < total; i++) each[i] = value(me * np + i / n, i % n);
    memset(all, 0xff, (total + 1) * sizeof *all);
    MPI_Alltoall(each, n, MPI_INT, all, n, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < total; i++)
      if (all[i] != value(i / n * np + me, i % n)) {
        failed(__FILE__, __LINE__, "alltoall %d at %d", n, i);
        break;
      }
    SAME(all[total], -1, "word past the end");
    GOT(all, total);
    static const struct {
      MPI_Op op;
      const char *name;
    } * op, ops[] = {{0, "sum"}, {0, "prod"}, {0, "max"},  {0, "min"}, {0, "band"},
                     {0, "bor"}, {0, "bxor"}, {0, "land"}, {0, "lor"}, {0, "lxor"}};
    MPI_Op handles[] = {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR};
    for (int o = 0; o < 10; o++) {
      op = &ops[o];
      for (int form = 0; form < 5; form++) { /* allreduce, scan, exscan, reduce_scatter_block, reduce_scatter */
        int in_place = (o + form) % 2, len = form >= 3 ? total : n;
        int first = 0, last = np - 1, from = 0, count = n;
        if (n > 1000 && o > 2) continue;
        for (int i = 0; i < len; i++) each[i] = o >= 7 ? value(me, i) % 3 == 0 : value(me, i);
        memset(all, 0xff, (total + 1) * sizeof *all);
        if (in_place) memcpy(all, each, len * sizeof *all);
        void *send = in_place ? MPI_IN_PLACE : each;
        int *counts = malloc(np * sizeof *counts);
        for (int p = 0; p < np; p++) counts[p] = n;
        if (form == 0) MPI_Allreduce(send, all, n, MPI_INT, handles[o], MPI_COMM_WORLD);
        if (form == 1) MPI_Scan(send, all, n, MPI_INT, handles[o], MPI_COMM_WORLD), last = me;
        if (form == 2) MPI_Exscan(send, all, n, MPI_INT, handles[o], MPI_COMM_WORLD), last = me - 1;
        if (form == 3) MPI_Reduce_scatter_block(send, all, n, MPI_INT, handles[o], MPI_COMM_WORLD), from = me * n;
        if (form == 4) {
          /* uneven: elements are moved from the last rank to the first */
          if (np > 1) counts[0] += n / 2, counts[np - 1] -= n / 2;
          MPI_Reduce_scatter(send, all, counts, MPI_INT, handles[o], MPI_COMM_WORLD);
          for (int p = 0; p < me; p++) from += counts[p];
          count = counts[me];
        }
        free(counts);
        if (last < first) continue; /* rank 0 of an exscan: undefined */
        for (int i = 0; i < count; i++) {
          int want = 0;
          for (int p = first; p <= last; p++) {
            int v = o >= 7 ? value(p, from + i) % 3 == 0 : value(p, from + i);
            if (p == first) {
              want = v;
              continue;
            }
            switch (o) {
            case 0: want += v; break;
            case 1: want = (int)((unsigned)want * (unsigned)v); break;
            case 2: want = want > v ? want : v; break;
            case 3: want = want < v ? want : v; break;
            case 4: want &= v; break;
            case 5: want |= v; break;
            case 6: want ^= v; break;
            case 7: want = want && v; break;
            case 8: want = want || v; break;
            case 9: want = !want != !v; break;
            }
          }
          if (all[i] != want) {
            failed(__FILE__, __LINE__, "%s form %d of %d: [%d] = %d, want %d", op->name, form, n, i, all[i], want);
            break;
          }
        }
        GOT(all, count);
      }
    }
    free(a), free(b), free(all), free(each);
    MPI_Barrier(MPI_COMM_WORLD);
    line("%d: %016llx", n, (unsigned long long)got_sum);
  }
  /* A barrier must work: no process leaves it before the last has entered it. */
  for (int last = 0; last < np; last++) {
    int token = 0;
    if (me == last) {
      for (int p = 0; p < np; p++)
        if (p != me) MPI_Recv(&token, 1, MPI_INT, p, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else MPI_Send(&token, 1, MPI_INT, last, 5, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  /* Many small collectives in a row with rotating roots must not mix. */
  for (int i = 0; i < 300; i++) {
    int x = me == i % np ? i : -1, y = me + i, z = 0;
    MPI_Bcast(&x, 1, MPI_INT, i % np, MPI_COMM_WORLD);
    SAME(x, i, "bcast in a row");
    MPI_Allreduce(&y, &z, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    SAME(z, np * (np - 1) / 2 + np * i, "allreduce in a row");
    MPI_Reduce(&y, &z, 1, MPI_INT, MPI_MAX, i % np, MPI_COMM_WORLD);
    if (me == i % np) SAME(z, np - 1 + i, "reduce in a row");
  }
  return finish();
}
