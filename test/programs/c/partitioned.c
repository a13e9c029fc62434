/* Partitioned communication of MPI 4: from every process to every other, cut one way by the sender
 * and another by the receiver, with parts made ready in any order, one by one, by lists and ranges;
 * types with gaps; two requests of one tag; rounds. With "early" a part has to arrive before the
 * next is made ready, which MPI does not promise; with "threads" several threads make parts
 * ready. */
#include "check.h"
#include <pthread.h>

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)

enum { MOST = 8, ROUNDS = 5, KINDS = 4, THREADS = 3 };

/* The total numbers of ints, and the numbers of parts into which both sides cut them. */
static const int total[KINDS] = {240, 60000, 12, 240000};
static const int out_parts[KINDS] = {12, 5, 12, 40}, in_parts[KINDS] = {8, 50, 1, 3};

typedef struct way {
  int kind, peer, *out, *in;
  MPI_Request send, recv;
} way;

static MPI_Datatype gap; /* every second int */

static uint64_t seed(int kind, int from, int to, int round) { return mix(kind * 1000 + from * 100 + to * 10) + round; }

static int made(int kind, int from, int to, int round, int i) {
  return (int)(mix(seed(kind, from, to, round) + (uint64_t)i) & 0xffffff);
}

/* Kind 1 is sent from memory with gaps, kind 2 received into it. */
static void begin(way *w, int kind, int peer) {
  *w = (way){.kind = kind, .peer = peer};
  w->out = calloc(2 * (size_t)total[kind], sizeof *w->out), w->in = calloc(2 * (size_t)total[kind], sizeof *w->in);
  int out = out_parts[kind], in = in_parts[kind];
  SAME(MPI_Psend_init(w->out, out, total[kind] / out, kind == 1 ? gap : MPI_INT, peer, kind / 2, MPI_COMM_WORLD,
                      MPI_INFO_NULL, &w->send),
       MPI_SUCCESS, "Psend_init");
  SAME(MPI_Precv_init(w->in, in, total[kind] / in, kind == 2 ? gap : MPI_INT, peer, kind / 2, MPI_COMM_WORLD,
                      MPI_INFO_NULL, &w->recv),
       MPI_SUCCESS, "Precv_init");
}

static void start_round(way *w, int round) {
  int step = w->kind == 1 ? 2 : 1;
  for (int i = 0; i < total[w->kind]; i++) w->out[i * step] = made(w->kind, me, w->peer, round, i);
  memset(w->in, 0x22, 2 * (size_t)total[w->kind] * sizeof *w->in);
  MPI_Request both[2] = {w->recv, w->send};
  if (round % 2) MPI_Startall(2, both);
  else MPI_Start(&w->send), MPI_Start(&w->recv);
}

static void make_ready(way *w, int round) {
  int n = out_parts[w->kind], order[64];
  uint64_t state = seed(w->kind, me, w->peer, round);
  for (int i = 0; i < n; i++) order[i] = i;
  for (int i = n - 1; i > 0; i--) {
    int k = below(&state, i + 1), t = order[i];
    order[i] = order[k], order[k] = t;
  }
  if (round % 3 == 0) {
    for (int i = 0; i < n; i++) MPI_Pready(order[i], w->send);
  } else if (round % 3 == 1) {
    MPI_Pready_list(n / 2, order, w->send);
    MPI_Pready_list(n - n / 2, order + n / 2, w->send);
  } else {
    MPI_Pready_range(n / 2, n - 1, w->send);
    MPI_Pready_range(0, n / 2 - 1, w->send);
  }
}

static void check_part(way *w, int round, int part) {
  int n = total[w->kind] / in_parts[w->kind], step = w->kind == 2 ? 2 : 1, wrong = 0;
  for (int i = part * n; i < (part + 1) * n; i++) {
    wrong += w->in[i * step] != made(w->kind, w->peer, me, round, i);
    if (step == 2) wrong += w->in[i * 2 + 1] != 0x22222222;
  }
  SAME(wrong, 0, "wrong numbers in a part that has arrived");
}

static void end_round(way *w, int round) {
  MPI_Status s;
  int flag, count, n = in_parts[w->kind];
  if (round % 2) {
    for (int part = n - 1; part >= 0; part--) {
      for (flag = 0; !flag;) MPI_Parrived(w->recv, part, &flag);
      check_part(w, round, part);
    }
  }
  MPI_Wait(&w->recv, &s);
  for (int part = 0; part < n; part++) check_part(w, round, part);
  SAME(s.MPI_SOURCE, w->peer, "source");
  SAME(s.MPI_TAG, w->kind / 2, "tag");
  MPI_Get_count(&s, MPI_INT, &count);
  SAME(count, total[w->kind], "ints");
  MPI_Wait(&w->send, MPI_STATUS_IGNORE);
}

static void rounds(void) {
  static way ways[KINDS * MOST];
  int n = 0;
  for (int kind = 0; kind < KINDS; kind++)
    for (int peer = 0; peer < np; peer++)
      if (peer != me) begin(&ways[n++], kind, peer);
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < n; i++) start_round(&ways[i], round);
    for (int i = n - 1; i >= 0; i--) make_ready(&ways[i], round);
    uint64_t h = 0;
    for (int i = 0; i < n; i++) {
      end_round(&ways[i], round);
      h = digest(h, ways[i].in, 2 * (size_t)total[ways[i].kind] * sizeof(int));
    }
    line("round %d: %016llx", round, (unsigned long long)h);
  }
  for (int i = 0; i < n; i++) {
    MPI_Request_free(&ways[i].send), MPI_Request_free(&ways[i].recv);
    free(ways[i].out), free(ways[i].in);
  }
}

/* Lets each part that has arrived make the other process, which is in another cluster, mark the
 * next one ready. */
static void early(void) {
  int x[4] = {0}, y[4] = {0}, peer = (me + np / 2) % np, sends = me < np / 2, flag, token = 0;
  MPI_Request r;
  if (np % 2) return;
  if (sends) MPI_Psend_init(x, 4, 1, MPI_INT, peer, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
  else MPI_Precv_init(y, 2, 2, MPI_INT, peer, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
  MPI_Start(&r);
  for (int half = 1; half >= 0; half--) {
    if (sends) {
      x[half * 2] = half + 5, x[half * 2 + 1] = half + 7;
      MPI_Pready_range(half * 2, half * 2 + 1, r);
      MPI_Recv(&token, 1, MPI_INT, peer, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      for (flag = 0; !flag;) MPI_Parrived(r, half, &flag);
      SAME(y[half * 2] * 100 + y[half * 2 + 1], (half + 5) * 100 + half + 7, "half");
      if (half) MPI_Parrived(r, 0, &flag);
      CHECK(!half || !flag, "the other half has arrived too");
      MPI_Send(&token, 1, MPI_INT, peer, 4, MPI_COMM_WORLD);
    }
  }
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  MPI_Request_free(&r);
}

static MPI_Request shared;

static void *mark(void *first) {
  for (int i = (int)(intptr_t)first; i < 60; i += THREADS) MPI_Pready(i, shared);
  return NULL;
}

static void threads(void) {
  int *x = malloc(60 * 1000 * sizeof *x), *y = malloc(60 * 1000 * sizeof *y), right = (me + 1) % np;
  MPI_Request r;
  pthread_t t[THREADS];
  MPI_Psend_init(x, 60, 1000, MPI_INT, right, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &shared);
  MPI_Precv_init(y, 30, 2000, MPI_INT, (me + np - 1) % np, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
  for (int round = 0; round < 20; round++) {
    fill(x, 60 * 1000 * sizeof *x, (uint64_t)(me * 100 + round));
    MPI_Start(&r), MPI_Start(&shared);
    for (int i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, mark, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_Wait(&shared, MPI_STATUS_IGNORE);
    CHECK(filled(y, 60 * 1000 * sizeof *y, (uint64_t)((me + np - 1) % np * 100 + round)), "round %d", round);
  }
  MPI_Request_free(&r), MPI_Request_free(&shared);
  free(x), free(y);
}

int main(int argc, char **argv) {
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &np);
  CHECK(np <= MOST, "too many processes");
  MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gap);
  MPI_Type_commit(&gap);
  if (argc > 1 && !strcmp(argv[1], "early")) early();
  if (argc > 1 && !strcmp(argv[1], "threads")) threads();
  rounds();
  MPI_Type_free(&gap);
  return finish();
}
#else
int main(int argc, char **argv) {
  start(&argc, &argv);
  CHECK(0, "this library has no partitioned communication");
  return finish();
}
#endif
