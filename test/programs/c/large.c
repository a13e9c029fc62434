/* More bytes than an int counts, of derived types, and more elements by the big-count functions.
 * The data are long in address space only: all but the first and last MiB is the same piece of
 * memory mapped repeatedly.
 *
 *   large [some|p2p|coll|reduce|rma|file|counts|arrays]... [file's directory]
 *
 * `some` is one message and one broadcast, of more bytes than an int counts. */
#define _GNU_SOURCE
#include "check.h"
#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

#define TILE ((size_t)1 << 20)
enum { GAP = 4096, MANY = 5120, FEW = 2560 }; /* tiles: 2.5 * 2^31 bytes, and half of that */

/* Returns memory of so many tiles, which hold a pattern if seed is not 0. All arenas with a pattern
 * share their middle, and so do all others. */
static char *arena(size_t tiles, uint64_t seed) {
  static int fd[2];
  char *p = mmap(NULL, tiles * TILE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  int which = seed != 0; /* memory that is read and memory that is written are separate */
  if (!fd[which]) {
    fd[which] = memfd_create("tile", 0);
    if (ftruncate(fd[which], TILE)) abort();
  }
  for (size_t i = 1; p != MAP_FAILED && i + 1 < tiles; i++)
    if (mmap(p + i * TILE, TILE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd[which], 0) ==
        MAP_FAILED)
      abort();
  if (p == MAP_FAILED) abort();
  if (seed) fill(p, TILE, seed), fill(p + TILE, TILE, seed + 1), fill(p + (tiles - 1) * TILE, TILE, seed + 2);
  else memset(p, 0, TILE), memset(p + TILE, 0, TILE), memset(p + (tiles - 1) * TILE, 0, TILE);
  return p;
}
static void leave(char *p, size_t tiles) { munmap(p, tiles * TILE); }

/* Checks that `used` bytes of each tile have arrived, and the rest is unchanged. */
static void arrived(const char *p, size_t tiles, uint64_t seed, size_t used, const char *what) {
  const char *parts[] = {p, p + TILE, p + (tiles - 1) * TILE};
  for (int i = 0; i < 3; i++) {
    CHECK(filled(parts[i], used, seed + i), "%s: part %d", what, i);
    for (size_t k = used; k < TILE; k += 512) CHECK(parts[i][k] == 0, "%s: part %d was written at %zu", what, i, k);
  }
}

static MPI_Datatype block, gappy, huge; /* a tile; one with a gap; FEW of those */
static void types(void) {
  MPI_Datatype t;
  MPI_Type_contiguous(TILE, MPI_CHAR, &block), MPI_Type_commit(&block);
  MPI_Type_contiguous(TILE - GAP, MPI_CHAR, &t);
  MPI_Type_create_resized(t, 0, TILE, &gappy), MPI_Type_commit(&gappy);
  MPI_Type_free(&t);
  MPI_Type_vector(FEW, TILE - GAP, TILE, MPI_CHAR, &huge), MPI_Type_commit(&huge);
}

static void bytes_are(MPI_Status *s, MPI_Count want, const char *what) {
  MPI_Count n = -1;
  MPI_Get_elements_x(s, MPI_CHAR, &n);
  SAME(n, want, what);
}

/* Sends from rank 0 to the last rank, or to itself if it is the only one. */
static void pass(const char *what, size_t tiles, int sent, MPI_Datatype from, size_t used, int room, MPI_Datatype to,
                 size_t room_tiles) {
  if (me == 0) {
    char *out = arena(tiles, 5);
    MPI_Send(out, sent, from, np - 1, 1, MPI_COMM_WORLD);
    leave(out, tiles);
  }
  if (me == np - 1) {
    MPI_Status s;
    char *in = arena(room_tiles, 0);
    MPI_Recv(in, room, to, 0, 1, MPI_COMM_WORLD, &s);
    bytes_are(&s, (MPI_Count)(tiles * used), what);
    if (tiles == room_tiles) arrived(in, tiles, 5, used, what);
    else CHECK(filled(in, used, 5) && filled(in + (tiles - 1) * TILE, 1, 0) == 0, "%s: first part", what);
    leave(in, room_tiles);
  }
}

static void p2p(void) {
  pass("contiguous tiles", MANY, MANY, block, TILE, MANY, block, MANY);
  pass("tiles with gaps", FEW, FEW, gappy, TILE - GAP, FEW, gappy, FEW);
  pass("one element", FEW, 1, huge, TILE - GAP, 1, huge, FEW);
  pass("one element as many", FEW, 1, huge, TILE - GAP, FEW, gappy, FEW);
  pass("many, received as a part of one", FEW - 2, FEW - 2, gappy, TILE - GAP, 1, huge, FEW);
}

static void bcast_one(void) {
  int root = np - 1;
  char *b = arena(FEW, me == root ? 9 : 0);
  MPI_Bcast(b, 1, huge, root, MPI_COMM_WORLD);
  if (me != root) arrived(b, FEW, 9, TILE - GAP, "broadcast of one element");
  leave(b, FEW);
}

static void some(void) {
  pass("one element as many", FEW, 1, huge, TILE - GAP, FEW, gappy, FEW);
  bcast_one();
}

static void coll(void) {
  int root = np - 1;
  char *b = arena(MANY, me == root ? 7 : 0);
  MPI_Bcast(b, MANY, block, root, MPI_COMM_WORLD);
  arrived(b, MANY, 7, TILE, "broadcast");
  leave(b, MANY);
  bcast_one();
  /* all to all, in blocks of half as much */
  const size_t all = (size_t)np * FEW;
  char *out = arena(all, 11), *in = arena(all, 0);
  fill(out, TILE, 12), fill(out + (all - 1) * TILE, TILE, 12); /* like all others */
  MPI_Alltoall(out, FEW, block, in, FEW, block, MPI_COMM_WORLD);
  CHECK(filled(in, TILE, 12) && filled(in + TILE, TILE, 12) && filled(in + (all - 1) * TILE, TILE, 12), "all to all");
  leave(in, all), in = arena(all, 0);
  MPI_Gather(out, FEW, block, in, FEW, block, 0, MPI_COMM_WORLD);
  if (me == 0)
    CHECK(filled(in, TILE, 12) && filled(in + TILE, TILE, 12) && filled(in + (all - 1) * TILE, TILE, 12), "gathered");
  leave(out, all), leave(in, all);
}

/* Reduces by maximum numbers that repeat. */
static void reduce(void) {
  int n = (int)(FEW * TILE / sizeof(long));
  char *out = arena(FEW, 13), *in = arena(FEW, 0);
  MPI_Allreduce(out, in, n, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
  arrived(in, FEW, 13, TILE, "greatest");
  leave(out, FEW), leave(in, FEW);
}

/* Puts data into a window and fills all of it. */
static void put(size_t tiles, int count, MPI_Datatype type, size_t used, const char *what) {
  MPI_Win w;
  char *mine = arena(tiles, 0), *out = arena(tiles, 15);
  MPI_Win_create(mine, (MPI_Aint)(tiles * TILE), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w);
  MPI_Win_fence(0, w);
  MPI_Put(out, count, type, (me + 1) % np, 0, count, type, w);
  MPI_Win_fence(0, w);
  arrived(mine, tiles, 15, used, what);
  MPI_Win_free(&w);
  leave(out, tiles), leave(mine, tiles);
}

static void rma(void) {
  MPI_Win w;
  put(FEW, 1, huge, TILE - GAP, "put");
  put(MANY, MANY, block, TILE, "put tiles");
  char *mine = arena(FEW, 15), *in = arena(FEW, 0); /* the window's middle is the same memory */
  MPI_Win_create(mine, (MPI_Aint)(FEW * TILE), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w);
  MPI_Win_fence(0, w);
  MPI_Get(in, FEW, gappy, (me + 1) % np, 0, FEW, gappy, w);
  MPI_Win_fence(0, w);
  arrived(in, FEW, 15, TILE - GAP, "got");
  MPI_Win_free(&w);
  leave(in, FEW), leave(mine, FEW);
}

static void file(const char *directory) {
  MPI_File f;
  MPI_Status s;
  char name[300];
  snprintf(name, sizeof name, "%s/large.%d", directory, np);
  char *b = arena(MANY, me == 0 ? 19 : 0);
  MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &f);
  if (me == 0) {
    MPI_File_write_at(f, 0, b, MANY, block, &s);
    bytes_are(&s, (MPI_Count)(MANY * TILE), "written");
  }
  MPI_File_sync(f), MPI_Barrier(MPI_COMM_WORLD), MPI_File_sync(f);
  leave(b, MANY);
  if (me == np - 1) {
    b = arena(MANY, 0);
    MPI_File_read_at(f, 0, b, MANY, block, &s);
    bytes_are(&s, (MPI_Count)(MANY * TILE), "read");
    arrived(b, MANY, 19, TILE, "read");
    leave(b, MANY), b = arena(FEW, 0);
    MPI_File_read_at(f, 0, b, FEW, gappy, &s); /* its tiles have other bytes than those in the file */
    bytes_are(&s, (MPI_Count)FEW * (TILE - GAP), "read into tiles with gaps");
    CHECK(filled(b, TILE - GAP, 19), "the first of them");
    leave(b, FEW);
  }
  MPI_File_close(&f);
}

#if MPI_VERSION >= 4
static void counts(void) {
  const MPI_Count n = (MPI_Count)(MANY * TILE);
  MPI_Status s;
  MPI_Count got = -1;
  char *in = arena(MANY, 0), *out = arena(MANY, 21);
  if (me == 0) MPI_Send_c(out, n, MPI_CHAR, np - 1, 1, MPI_COMM_WORLD);
  if (me == np - 1) {
    MPI_Recv_c(in, n, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &s);
    MPI_Get_count_c(&s, MPI_CHAR, &got);
    SAME(got, n, "count of a message");
    arrived(in, MANY, 21, TILE, "message");
  }
  leave(in, MANY), in = arena(MANY, me == 0 ? 21 : 0);
  MPI_Bcast_c(in, n, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (me) arrived(in, MANY, 21, TILE, "broadcast");
  leave(in, MANY), in = arena(MANY, 0);
  MPI_Allreduce_c(out, in, n, MPI_SIGNED_CHAR, MPI_MAX, MPI_COMM_WORLD);
  arrived(in, MANY, 21, TILE, "greatest");
  leave(in, MANY), in = arena(MANY, 0);
  MPI_Win w;
  MPI_Win_create_c(in, n, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w);
  MPI_Win_fence(0, w);
  MPI_Put_c(out, n, MPI_CHAR, (me + 1) % np, 0, n, MPI_CHAR, w);
  MPI_Win_fence(0, w);
  arrived(in, MANY, 21, TILE, "put");
  MPI_Win_free(&w);
  leave(in, MANY), leave(out, MANY);
}

/* Checks arrays of counts and displacements that exceed an int: the last rank has n elements, which
 * begin and end anywhere. */
static void many_counts(void) {
  const MPI_Count n = (MPI_Count)(MANY * TILE);
  MPI_Count *counts = calloc((size_t)np, sizeof *counts);
  MPI_Aint *at = calloc((size_t)np, sizeof *at);
  for (int i = 0; i < np; i++) counts[i] = i == np - 1 ? n : 0;
  char *in = arena(MANY, 0), *out = arena(MANY, 23);
  MPI_Gatherv_c(out, counts[me], MPI_CHAR, in, counts, at, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (me == 0) arrived(in, MANY, 23, TILE, "gathered");
  leave(in, MANY), in = arena(MANY, 0);
  MPI_Request r;
  MPI_Iscatterv_c(out, counts, at, MPI_CHAR, in, counts[me], MPI_CHAR, 0, MPI_COMM_WORLD, &r);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  if (me == np - 1) arrived(in, MANY, 23, TILE, "scattered");
  /* one MiB of each rank, the last of which lies beyond an int's range */
  for (int i = 0; i < np; i++) counts[i] = TILE, at[i] = (MPI_Aint)((i == np - 1 ? MANY - 1 : (size_t)i) * TILE);
  leave(in, MANY), in = arena(MANY, 0);
  MPI_Allgatherv_c(out, TILE, MPI_CHAR, in, counts, at, MPI_CHAR, MPI_COMM_WORLD);
  CHECK(filled(in, TILE, 23) && filled(in + (MANY - 1) * TILE, TILE, 23), "gathered by all");
  leave(in, MANY), in = arena(MANY, 0);
  MPI_Alltoallv_c(out, counts, at, MPI_CHAR, in, counts, at, MPI_CHAR, MPI_COMM_WORLD);
  uint64_t first = me == 0 ? 23 : me == np - 1 ? 25 : 24;
  CHECK(filled(in, TILE, first) && filled(in + (MANY - 1) * TILE, TILE, first), "all to all");
  for (int i = 0; i < np; i++) counts[i] = i == np - 1 ? n - (np - 1) : 1;
  leave(in, MANY), in = arena(MANY, 0);
  MPI_Reduce_scatter_c(out, in, counts, MPI_SIGNED_CHAR, MPI_MAX, MPI_COMM_WORLD);
  CHECK(in[0] == out[me], "reduced: %d, want %d", in[0], out[me]);
  leave(in, MANY), leave(out, MANY);
  free(counts), free(at);
}
#else
static void counts(void) {}
static void many_counts(void) {}
#endif

int main(int argc, char **argv) {
  start(&argc, &argv);
  types();
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "some")) some();
    else if (!strcmp(argv[i], "p2p")) p2p();
    else if (!strcmp(argv[i], "coll")) coll();
    else if (!strcmp(argv[i], "reduce")) reduce();
    else if (!strcmp(argv[i], "rma")) rma();
    else if (!strcmp(argv[i], "counts")) counts();
    else if (!strcmp(argv[i], "arrays")) many_counts();
    else file(argv[i]);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Type_free(&block), MPI_Type_free(&gappy), MPI_Type_free(&huge);
  line("done");
  return finish();
}
