/* One call of each collective. size is that of the part that a rank has for each other one, or for
 * all. */
#include "measure.h"

MPI_Datatype number(void) { return size % 4 ? MPI_UNSIGNED_CHAR : MPI_FLOAT; }
int numbers(void) { return size % 4 ? size : size / 4; }

static void barrier(void) { MPI_Barrier(WORLD); }
static void bcast(void) { MPI_Bcast(PART, 0, WORLD); }
static void reduce(void) { MPI_Reduce(out, in, numbers(), number(), MPI_SUM, 0, WORLD); }
static void allreduce(void) { MPI_Allreduce(out, in, numbers(), number(), MPI_SUM, WORLD); }
static void scan(void) { MPI_Scan(out, in, numbers(), number(), MPI_SUM, WORLD); }
static void gather(void) { MPI_Gather(PART, in, size, MPI_CHAR, 0, WORLD); }
static void scatter(void) { MPI_Scatter(PART, in, size, MPI_CHAR, 0, WORLD); }
static void allgather(void) { MPI_Allgather(PART, in, size, MPI_CHAR, WORLD); }
static void alltoall(void) { MPI_Alltoall(PART, in, size, MPI_CHAR, WORLD); }
static void alltoallv(void) { MPI_Alltoallv(out, counts, places, MPI_CHAR, in, counts, places, MPI_CHAR, WORLD); }
static void reduce_scatter(void) {
  int each[ranks];
  for (int i = 0; i < ranks; i++) each[i] = numbers();
  MPI_Reduce_scatter(out, in, each, number(), MPI_SUM, WORLD);
}

#define WAITS(call)                  \
  do {                               \
    MPI_Request q;                   \
    call;                            \
    MPI_Wait(&q, MPI_STATUS_IGNORE); \
  } while (0)
static void ibarrier(void) { WAITS(MPI_Ibarrier(WORLD, &q)); }
static void ibcast(void) { WAITS(MPI_Ibcast(PART, 0, WORLD, &q)); }
static void ireduce(void) { WAITS(MPI_Ireduce(out, in, numbers(), number(), MPI_SUM, 0, WORLD, &q)); }
static void iallreduce(void) { WAITS(MPI_Iallreduce(out, in, numbers(), number(), MPI_SUM, WORLD, &q)); }
static void iscan(void) { WAITS(MPI_Iscan(out, in, numbers(), number(), MPI_SUM, WORLD, &q)); }
static void igather(void) { WAITS(MPI_Igather(PART, in, size, MPI_CHAR, 0, WORLD, &q)); }
static void iscatter(void) { WAITS(MPI_Iscatter(PART, in, size, MPI_CHAR, 0, WORLD, &q)); }
static void iallgather(void) { WAITS(MPI_Iallgather(PART, in, size, MPI_CHAR, WORLD, &q)); }
static void ialltoall(void) { WAITS(MPI_Ialltoall(PART, in, size, MPI_CHAR, WORLD, &q)); }
static void ialltoallv(void) {
  WAITS(MPI_Ialltoallv(out, counts, places, MPI_CHAR, in, counts, places, MPI_CHAR, WORLD, &q));
}
static void ireduce_scatter(void) {
  int each[ranks];
  for (int i = 0; i < ranks; i++) each[i] = numbers();
  WAITS(MPI_Ireduce_scatter(out, in, each, number(), MPI_SUM, WORLD, &q));
}

const operation collectives[] = {
    {.name = "barrier", .one = barrier, .parts = 1},
    {.name = "bcast", .one = bcast, .parts = 1},
    {.name = "reduce", .one = reduce, .parts = 1},
    {.name = "allreduce", .one = allreduce, .parts = 1},
    {.name = "scan", .one = scan, .parts = 1},
    {.name = "gather", .one = gather},
    {.name = "scatter", .one = scatter},
    {.name = "allgather", .one = allgather},
    {.name = "alltoall", .one = alltoall},
    {.name = "alltoallv", .one = alltoallv},
    {.name = "reduce_scatter", .one = reduce_scatter},
    {.name = "ibarrier", .one = ibarrier, .parts = 1},
    {.name = "ibcast", .one = ibcast, .parts = 1},
    {.name = "ireduce", .one = ireduce, .parts = 1},
    {.name = "iallreduce", .one = iallreduce, .parts = 1},
    {.name = "iscan", .one = iscan, .parts = 1},
    {.name = "igather", .one = igather},
    {.name = "iscatter", .one = iscatter},
    {.name = "iallgather", .one = iallgather},
    {.name = "ialltoall", .one = ialltoall},
    {.name = "ialltoallv", .one = ialltoallv},
    {.name = "ireduce_scatter", .one = ireduce_scatter},
    {.name = NULL},
};
