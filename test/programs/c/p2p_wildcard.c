/* ANY_SOURCE and ANY_TAG over all ranks of the world, the receiver itself included: no message is
 * lost or duplicated, and the messages of one sender are never overtaken, in any mixture of
 * outstanding receives. */
#include "check.h"

enum { M = 120, LARGE = 100000 };

typedef struct {
  int sender, sequence, of_tag;
} head;

static int length(int sender, int i) { return i % 29 == 7 ? LARGE + sender : i % 5 == 2 ? 1500 : (int)sizeof(head); }

/* Every rank sends its numbered messages to `root`, tag `i % tags`. */
static MPI_Request *send_all(int root, int tags, char **keep) {
  MPI_Request *r = malloc(M * sizeof *r);
  int per_tag[8] = {0};
  size_t at = 0;
  *keep = calloc(1, (size_t)M * (LARGE + 64));
  for (int i = 0; i < M; i++) {
    head *h = (head *)(*keep + at);
    int tag = i % tags, n = length(me, i);
    *h = (head){me, i, per_tag[tag]++};
    if (i % 7 == 3) MPI_Issend(h, n, MPI_BYTE, root, tag, MPI_COMM_WORLD, &r[i]);
    else MPI_Isend(h, n, MPI_BYTE, root, tag, MPI_COMM_WORLD, &r[i]);
    at += (n + 15) / 16 * 16;
  }
  return r;
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  for (int root = 0; root < np; root++) {
    /* 1. One receive at a time, with any tag from any source. 2. Fixed tags from any source. 3. A
     * mixture outstanding at once. */
    for (int phase = 1; phase <= 3; phase++) {
      int tags = phase == 2 ? 4 : 3, total = np * M;
      char *keep;
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Request *sends = send_all(root, tags, &keep);
      if (me == root) {
        int *next = calloc(np * 8, sizeof *next), *count = calloc(np, sizeof *count);
        long sum = 0;
        if (phase <= 2) {
          char *in = malloc(LARGE + 64);
          for (int k = 0; k < total; k++) {
            MPI_Status st;
            int n, want = phase == 1 ? MPI_ANY_TAG : k * tags / total;
            MPI_Recv(in, LARGE + 64, MPI_BYTE, MPI_ANY_SOURCE, want, MPI_COMM_WORLD, &st);
            MPI_Get_count(&st, MPI_BYTE, &n);
            head *h = (head *)in;
            CHECK(h->sender == st.MPI_SOURCE && st.MPI_TAG == h->sequence % tags, "envelope and message differ");
            CHECK(n == length(h->sender, h->sequence), "length %d", n);
            if (phase == 1) SAME(h->sequence, next[h->sender]++, "sequence");
            else {
              SAME(st.MPI_TAG, want, "tag");
              SAME(h->of_tag, next[h->sender * 8 + want]++, "sequence in the tag");
            }
            count[h->sender]++;
            sum += h->sequence * (h->sender + 1);
          }
          free(in);
        } else {
          /* `per` receives from each rank and `wild` from any source at once, in an order that
           * depends on the rank. Every sender has enough messages for all of these, so they all
           * complete; the other messages are received by wildcards. */
          uint64_t state = 77 + root;
          int per = M / 4, wild = M / 2, posted = 0, *left = malloc(np * sizeof *left), left_wild = wild,
              left_all = per * np + wild;
          char *in = malloc((size_t)total * (LARGE + 64));
          MPI_Request *r = malloc(total * sizeof *r);
          MPI_Status *st = malloc(total * sizeof *st);
          for (int i = 0; i < np; i++) left[i] = per;
          while (left_all > 0) {
            int which = below(&state, np + 1);
            int source = which == np ? MPI_ANY_SOURCE : which;
            int *l = which == np ? &left_wild : &left[which];
            if (*l == 0) continue;
            (*l)--, left_all--;
            MPI_Irecv(in + (size_t)posted * (LARGE + 64), LARGE + 64, MPI_BYTE, source, MPI_ANY_TAG, MPI_COMM_WORLD,
                      &r[posted]);
            posted++;
          }
          for (; posted < total; posted++)
            MPI_Irecv(in + (size_t)posted * (LARGE + 64), LARGE + 64, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG,
                      MPI_COMM_WORLD, &r[posted]);
          MPI_Waitall(total, r, st);
          for (int k = 0; k < total; k++) {
            head *h = (head *)(in + (size_t)k * (LARGE + 64));
            int n;
            MPI_Get_count(&st[k], MPI_BYTE, &n);
            CHECK(h->sender == st[k].MPI_SOURCE && st[k].MPI_TAG == h->sequence % tags, "envelope and message differ");
            CHECK(n == length(h->sender, h->sequence), "length %d", n);
            SAME(h->sequence, next[h->sender]++, "sequence in order of posting");
            count[h->sender]++;
            sum += h->sequence * (h->sender + 1);
          }
          free(in), free(r), free(st), free(left);
        }
        for (int i = 0; i < np; i++) SAME(count[i], M, "messages of a sender");
        line("phase %d: sum %ld", phase, sum);
        free(next), free(count);
      }
      MPI_Waitall(M, sends, MPI_STATUSES_IGNORE);
      free(sends), free(keep);
    }
  }
  return finish();
}
