/* The MPI program of bench/measure: operations at several sizes, one after the other.
 *
 *   measure [-s SECONDS] [-w WARM] [-b WINDOW] [-c COUNT] OPERATION SIZE... [OPERATION SIZE...]...
 *
 * Sizes are bytes: of a message, or of the part that each rank has for each other (or all) in a
 * collective. They come in the order given. For each size rank 0 prints
 *
 *   point OPERATION SIZE VALUE...
 *
 * stream, both: rates in Mbit/s at the receivers, in one direction and in both, of streams between
 * pairs of ranks that are all active at once. Over all pairs WINDOW bytes are in flight in a
 * direction, but 4 to 512 messages of each. WARM seconds do not count; then SECONDS count, from the
 * arrival of a whole window to that of a later one. A stream has four windows at least.
 *
 * block: the times in us until each of COUNT blocking sends has arrived; a second point,
 * block.returns, has those until MPI_Send returned.
 *
 * Collectives with COUNT: the time in us of each of so many calls, from a common start until the
 * last rank's end.
 *
 * alone, beside: the median time in us until a small message arrives, without and with bulk on the
 * same way; a second point, alone.p90 and beside.p90, has the 90th percentile. SECONDS do not
 * matter to them.
 *
 * All others: us for an operation. Before a size come calls that are not counted, then SECONDS of
 * calls that are, in blocks; the value is the median of the blocks. Collectives are timed call by
 * call, with a barrier between two calls that is not counted, and the time is the mean of all
 * ranks; of point-to-point and one-sided operations it is the time of whole blocks at rank 0.
 *
 * measure list prints the operations. */
#include "measure.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LEAST_BLOCKS = 3, BLOCKS = 8, MOST_CALLS = 10000 };

struct options options;
int rank, ranks, last, size;
char *out, *in;
int *counts, *places;

static const operation *const tables[] = {pairwise, smalls, collectives, longs, NULL};

double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void die(const char *why) {
  fprintf(stderr, "measure: %s\n", why);
  MPI_Abort(MPI_COMM_WORLD, 2);
  exit(2);
}

void *room(size_t n) {
  void *p = NULL;
  n = n ? n : 1;
  if (posix_memalign(&p, 4096, n)) die("no memory");
  memset(p, 1, n); /* memory that was never written is one page of zeros */
  return p;
}

int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void point(const char *name, const double *values, int n) {
  printf("point %s %d", name, size);
  for (int i = 0; i < n; i++) printf(" %.3f", values[i]);
  printf("\n");
}

/* Seconds of an operation in a block of n calls. Only rank 0 has the result. */
static double block(const operation *of, int n) {
  double sum = 0, start = now();
  int operations = n;
  if (of->one) {
    for (int i = 0; i < n; i++) {
      double t = now();
      of->one();
      sum += now() - t;
      MPI_Barrier(WORLD);
    }
    double mine = sum / ranks;
    MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, WORLD);
  } else {
    operations = of->calls(n);
    sum = now() - start;
    MPI_Barrier(WORLD);
  }
  return sum / operations;
}

/* The number of calls in a block if a call takes t seconds. */
static int calls(double t) {
  int n = (int)(options.seconds / BLOCKS / t);
  return n < 1 ? 1 : n > MOST_CALLS ? MOST_CALLS : n;
}

static void blocks(const operation *of) {
  if (options.seconds <= 0) die("want -s SECONDS");
  double t, v[BLOCKS], median;
  int plan[2] = {0, 0}; /* calls in a block, blocks */
  /* One call touches all memory; then come some, a share of the time, for parts that adapt. */
  block(of, 1);
  double start = now();
  block(of, 1);
  t = now() - start;
  plan[0] = calls(t);
  MPI_Bcast(plan, 2, MPI_INT, 0, WORLD);
  start = now();
  block(of, plan[0]);
  if (plan[0] > 1) { /* now that it is warm */
    t = (now() - start) / plan[0];
    plan[0] = calls(t);
  }
  plan[1] = (int)(options.seconds / (t * plan[0])) + 1;
  plan[1] = plan[1] < LEAST_BLOCKS ? LEAST_BLOCKS : plan[1] > BLOCKS ? BLOCKS : plan[1];
  MPI_Bcast(plan, 2, MPI_INT, 0, WORLD);
  for (int i = 0; i < plan[1]; i++) v[i] = block(of, plan[0]);
  qsort(v, (size_t)plan[1], sizeof *v, ascending);
  median = (v[(plan[1] - 1) / 2] + v[plan[1] / 2]) / 2 * 1e6;
  if (rank == 0) point(of->name, &median, 1);
}

/* A collective's calls from a common start until the last rank's end. The start is so far away that
 * all ranks know it before. */
static void together(const operation *of) {
  double *took = room(sizeof(double) * (size_t)options.count), *slowest = room(sizeof(double) * (size_t)options.count);
  double margin = 0.01;
  for (int k = -2; k < options.count; k++) {
    double start = now();
    MPI_Barrier(WORLD);
    if (k < 0) margin = 3 * (now() - start) + 0.01;
    start = now() + margin;
    MPI_Bcast(&start, 1, MPI_DOUBLE, 0, WORLD);
    struct timespec t = {(time_t)start, (long)((start - (double)(time_t)start) * 1e9)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
    of->one();
    if (k >= 0) took[k] = (now() - start) * 1e6;
  }
  MPI_Reduce(took, slowest, options.count, MPI_DOUBLE, MPI_MAX, 0, WORLD);
  if (rank == 0) point(of->name, slowest, options.count);
}

static const operation *find(const char *name) {
  for (int t = 0; tables[t]; t++)
    for (const operation *of = tables[t]; of->name; of++)
      if (!strcmp(of->name, name)) return of;
  return NULL;
}

static void list(void) {
  for (int t = 0; tables[t]; t++)
    for (const operation *of = tables[t]; of->name; of++) printf("%s\n", of->name);
}

/* Reads the options, and returns the index of the first operation. */
static int read_options(int argc, char **argv) {
  for (int c; (c = getopt(argc, argv, "+s:w:b:c:")) != -1;) switch (c) {
    case 's': options.seconds = atof(optarg); break;
    case 'w': options.warm = atof(optarg); break;
    case 'b': options.window = atof(optarg); break;
    case 'c': options.count = atoi(optarg); break;
    default: exit(2);
    }
  return optind;
}

/* The size of the largest buffer that the operations need. Words that are none end the job. */
static size_t largest(int n, char **words) {
  const operation *of = NULL;
  size_t most = sizeof(double);
  if (n < 2) die("want OPERATION SIZE..., or list");
  for (int i = 0; i < n; i++) {
    char *end;
    long bytes = strtol(words[i], &end, 10);
    if (*end) {
      of = find(words[i]);
      bytes = 0;
    }
    if (!of || bytes < 0 || bytes > 1 << 30) die("want OPERATION SIZE... [OPERATION SIZE...]..., or list");
    size_t need = (size_t)bytes * (size_t)(of->parts ? of->parts : ranks);
    most = need > most ? need : most;
  }
  return most;
}

static void measure(const operation *of) {
  for (int k = 0; k < ranks; k++) counts[k] = size, places[k] = k * size;
  if (of->whole) of->whole();
  else if (of->one && options.count > 0) together(of);
  else blocks(of);
  fflush(stdout);
}

int main(int argc, char **argv) {
  int got, many = 0, first = read_options(argc, argv);
  if (argc == 2 && !strcmp(argv[1], "list")) {
    list();
    return 0;
  }
  for (int i = first; i < argc; i++) many |= !strcmp(argv[i], "threads");
  MPI_Init_thread(&argc, &argv, many ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &got);
  MPI_Comm_rank(WORLD, &rank);
  MPI_Comm_size(WORLD, &ranks);
  last = ranks - 1;
  if (ranks < 2) die("want two ranks at least");
  if (many && got < MPI_THREAD_MULTIPLE) die("this MPI has no threads");
  size_t most = largest(argc - first, argv + first);
  out = room(most), in = room(most);
  counts = room(sizeof(int) * (size_t)ranks), places = room(sizeof(int) * (size_t)ranks);
  const operation *of = NULL;
  for (int i = first; i < argc; i++) {
    const operation *next = find(argv[i]);
    if (!next) {
      size = atoi(argv[i]);
      measure(of);
      continue;
    }
    if (of && of->window) close_window();
    of = next;
    if (of->window) open_window(most);
  }
  if (of->window) close_window();
  MPI_Finalize();
  return 0;
}
