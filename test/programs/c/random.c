/* A random program: point to point in every form, collectives, communicators made and freed. All
 * ranks derive the same script from the seed; every message is known beforehand and checked, and
 * rank r prints a digest of its results.
 *
 *   random SEED [OPERATIONS [SKIP]]     SKIP: "100-250,300-300" leaves these operations out
 *
 * An operation is a round of messages, a collective, or the making or freeing of a communicator.
 * Each draws from a generator of its own, and uses the state that the operations before it have
 * left. So any subset of the operations is again a valid program: on failure a driver leaves out
 * more and more of them (test/e2e: minimize).
 *
 * The outcome is determined for the following reason. In a round each rank posts its early
 * receives, then starts its sends, then does its late receives. A pair of ranks is early or late as
 * a whole, and all its receives are posted in the order of the sends. A message is matched by a
 * receive for its source, or by ANY_SOURCE with a tag that only its source uses. So the k-th
 * message of a source matches the k-th receive for that source, independently of all other
 * messages. Rounds for which this does not hold (ANY_SOURCE with a tag that many senders use) check
 * instead that each message arrives once and in order per sender; their tag belongs to the round.
 * Blocking sends are used only within early pairs, so a rank that blocks waits for one that is in
 * an earlier operation or phase. */
#include "check.h"

enum { MAX_COMMS = 10, MAX_RANKS = 64, MAX_MESSAGES = 40, MAX_PENDING = 400 };

typedef struct {
  MPI_Comm handle;
  int n, world[MAX_RANKS];
} comm_state; /* the handle is null if this rank is not a member */
static comm_state comms[MAX_COMMS];
static int live, operation;
static uint64_t seed, result, messages, bytes, collectives, made;

#define BAD(...)                                                                                         \
  do {                                                                                                   \
    failed(__FILE__, __LINE__, __VA_ARGS__);                                                             \
    fprintf(stderr, "rank %d: in operation %d of seed %llu\n", me, operation, (unsigned long long)seed); \
    fflush(stderr);                                                                                      \
    MPI_Abort(MPI_COMM_WORLD, 3);                                                                        \
  } while (0)

#include "random_layout.h"
#include "random_pending.h"

static int my_rank(const comm_state *c) {
  for (int i = 0; i < c->n; i++)
    if (c->world[i] == me) return i;
  return -1;
}

static int random_size(uint64_t *g) {
  switch (below(g, 12)) {
  case 0: return 0;
  case 1:
  case 2:
  case 3:
  case 4: return 1 + below(g, 8);
  case 5:
  case 6:
  case 7: return 1 + below(g, 300);
  case 8:
  case 9: return 1 + below(g, 3000);
  case 10: return 16384 - 4 + below(g, 8); /* around 64 KiB */
  default: return below(g, 8) ? 5000 + below(g, 30000) : 150000;
  }
}

#include "random_coll.h"
#include "random_comms.h"
#include "random_p2p.h"

static int skipped(const char *list, int i) {
  while (list && *list) {
    char *end;
    long a = strtol(list, &end, 10), b = a;
    if (*end == '-') b = strtol(end + 1, &end, 10);
    if (i >= a && i <= b) return 1;
    list = *end == ',' ? end + 1 : end;
    if (end == list && *end) break;
  }
  return 0;
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  int operations = argc > 2 ? atoi(argv[2]) : 1000, say_all = getenv("RANDOM_TRACE") != NULL;
  trace = say_all;
  make_layouts();
  MPI_Op_create(op_affine, 0, &affine);
  MPI_Type_contiguous(2, MPI_INT, &two_ints);
  MPI_Type_commit(&two_ints);
  comms[0].handle = MPI_COMM_WORLD, comms[0].n = np;
  for (int i = 0; i < np; i++) comms[0].world[i] = i;
  live = 1;
  for (operation = 0; operation < operations; operation++) {
    uint64_t g = mix(seed) ^ mix(operation + 0x1000000);
    int kind = below(&g, 20);
    if (skipped(argc > 3 ? argv[3] : NULL, operation)) continue;
    if (kind < 8) exchange(&g);
    else if (kind < 10) gather_any(&g);
    else if (kind < 17) collective(&g);
    else if (kind < 19) make(&g);
    else drop(&g);
  }
  finish_pending(0);
  while (live > 1) {
    live--;
    if (comms[live].handle != MPI_COMM_NULL) MPI_Comm_free(&comms[live].handle);
  }
  for (int i = 2; i < LAYOUTS; i++) MPI_Type_free(&layouts[i].type);
  MPI_Op_free(&affine), MPI_Type_free(&two_ints);
  line("seed %llu: %llu messages, %llu bytes, %llu collectives, %llu communicators: %016llx", (unsigned long long)seed,
       (unsigned long long)messages, (unsigned long long)bytes, (unsigned long long)collectives,
       (unsigned long long)made, (unsigned long long)result);
  return finish();
}
