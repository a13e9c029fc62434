/* gperftools' CPU profiler, started after MPI_Init, over communication and computation.
 *
 *   gperftools FILE ROUNDS     the profile goes to FILE with the rank after it */
#include "../c/check.h"
#include <gperftools/profiler.h>

static volatile uint64_t sum;

static void compute(void) {
  for (uint64_t i = 0; i < 2000; i++) sum += mix(i);
}

int main(int argc, char **argv) {
  static char out[4096], in[4096];
  char file[400];
  struct ProfilerState state;
  start(&argc, &argv);
  if (argc < 3) return 2;
  int rounds = atoi(argv[2]), from = (me + np - 1) % np;
  snprintf(file, sizeof file, "%s.%d", argv[1], me);
  CHECK(ProfilerStart(file), "%s", file);
  for (int i = 0; i < rounds; i++) {
    long n = 0, one = 1;
    compute();
    fill(out, sizeof out, (uint64_t)(i * np + me));
    MPI_Sendrecv(out, sizeof out, MPI_CHAR, (me + 1) % np, 0, in, sizeof in, MPI_CHAR, from, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    CHECK(filled(in, sizeof in, (uint64_t)(i * np + from)), "round %d", i);
    MPI_Allreduce(&one, &n, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    SAME(n, np, "the sum");
  }
  do {
    compute();
    ProfilerGetCurrentState(&state);
  } while (!state.samples_gathered);
  ProfilerStop();
  line("%d rounds", rounds);
  return finish();
}
