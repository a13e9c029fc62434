/* Many communicators at once, and many made and freed in a row; each keeps its messages apart. */
#include "check.h"

enum { LIVE = 40 };

int main(int argc, char **argv) {
  start(&argc, &argv);
  int rounds = argc > 1 ? atoi(argv[1]) : 300;
  MPI_Comm c[LIVE];
  int colours[LIVE];
  uint64_t h = 0;
  for (int i = 0; i < LIVE; i++) {
    colours[i] = i % 4 == 0 ? 0 : (me >> (i % 3)) % 2;
    if (i % 4 == 0) MPI_Comm_dup(i >= 8 && i % 8 == 0 ? c[i - 8] : MPI_COMM_WORLD, &c[i]);
    else MPI_Comm_split(MPI_COMM_WORLD, colours[i], i % 2 ? me : -me, &c[i]);
  }
  /* one message to the right in each, all outstanding at once, all with the same tag */
  MPI_Request r[2 * LIVE];
  int in[LIVE], out[LIVE], rank, size;
  for (int i = LIVE - 1; i >= 0; i--) {
    MPI_Comm_rank(c[i], &rank), MPI_Comm_size(c[i], &size);
    out[i] = 1000 * i + me;
    MPI_Irecv(&in[i], 1, MPI_INT, i % 3 ? (rank + size - 1) % size : MPI_ANY_SOURCE, 1, c[i], &r[i]);
  }
  for (int i = 0; i < LIVE; i++) {
    MPI_Comm_rank(c[i], &rank), MPI_Comm_size(c[i], &size);
    MPI_Isend(&out[i], 1, MPI_INT, (rank + 1) % size, 1, c[i], &r[LIVE + i]);
  }
  MPI_Waitall(2 * LIVE, r, MPI_STATUSES_IGNORE);
  for (int i = 0; i < LIVE; i++) {
    int world, want;
    MPI_Comm_rank(c[i], &rank), MPI_Comm_size(c[i], &size);
    MPI_Group g, w;
    MPI_Comm_group(c[i], &g), MPI_Comm_group(MPI_COMM_WORLD, &w);
    want = (rank + size - 1) % size;
    MPI_Group_translate_ranks(g, 1, &want, w, &world);
    MPI_Group_free(&g), MPI_Group_free(&w);
    SAME(in[i], 1000 * i + world, "message in its communicator");
    h = digest(h, &in[i], sizeof in[i]);
  }
  /* collectives on all of them, overlapping */
  int sums[LIVE], x = me;
  for (int i = 0; i < LIVE; i++) MPI_Iallreduce(&x, &sums[i], 1, MPI_INT, MPI_SUM, c[i], &r[i]);
  MPI_Waitall(LIVE, r, MPI_STATUSES_IGNORE);
  for (int i = 0; i < LIVE; i++) {
    int want = 0;
    for (int p = 0; p < np; p++)
      if (i % 4 == 0 || (p >> (i % 3)) % 2 == colours[i]) want += p;
    SAME(sums[i], want, "sum in its communicator");
  }
  h = digest(h, sums, sizeof sums);
  for (int i = 0; i < LIVE; i++) MPI_Comm_free(&c[i]);
  for (int i = 0; i < rounds; i++) {
    MPI_Comm d, e;
    int y = -1, z = me + i;
    MPI_Comm_dup(MPI_COMM_WORLD, &d);
    MPI_Comm_split(d, (me + i) % 2, -me, &e);
    MPI_Sendrecv(&z, 1, MPI_INT, (me + 1) % np, 0, &y, 1, MPI_INT, (me + np - 1) % np, 0, d, MPI_STATUS_IGNORE);
    SAME(y, (me + np - 1) % np + i, "message");
    MPI_Allreduce(MPI_IN_PLACE, &y, 1, MPI_INT, MPI_SUM, e);
    h = digest(h, &y, sizeof y);
    MPI_Comm_free(i % 2 ? &d : &e);
    MPI_Comm_free(i % 2 ? &e : &d);
  }
  line("%016llx", (unsigned long long)h);
  return finish();
}
