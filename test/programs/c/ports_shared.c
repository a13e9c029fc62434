/* Two jobs are connected and merged into one communicator, on which windows and a file are used:
 *
 *   ports_shared accept|connect PLACE DIRECTORY
 *
 * DIRECTORY is one that both jobs see. */
#include "check.h"
#include "port.h"

static int rank, size;

/* Each process has a word for each of all processes, and one that all of them change. */
static void fences(MPI_Comm all) {
  long *words;
  MPI_Win win;
  MPI_Win_allocate((MPI_Aint)(size + 1) * (MPI_Aint)sizeof *words, sizeof *words, MPI_INFO_NULL, all, &words, &win);
  for (int i = 0; i <= size; i++) words[i] = -1;
  words[size] = 0;
  MPI_Win_fence(0, win);
  long mine = 1000 + rank, add = rank + 1;
  for (int i = 0; i < size; i++) {
    MPI_Put(&mine, 1, MPI_LONG, i, rank, 1, MPI_LONG, win);
    MPI_Accumulate(&add, 1, MPI_LONG, i, size, 1, MPI_LONG, MPI_SUM, win);
  }
  MPI_Win_fence(0, win);
  for (int i = 0; i < size; i++) SAME(words[i], 1000 + i, "put by each");
  SAME(words[size], (long)size * (size + 1) / 2, "added by all");
  long *got = malloc((size_t)size * sizeof *got);
  for (int i = 0; i < size; i++) MPI_Get(&got[i], 1, MPI_LONG, i, (rank + i) % size, 1, MPI_LONG, win);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  for (int i = 0; i < size; i++) SAME(got[i], 1000 + (rank + i) % size, "got from each");
  free(got);
  MPI_Win_free(&win);
}

/* Puts data from each process to the next, with groups of the merged communicator. */
static void ring(MPI_Comm all) {
  enum { N = 3000 };
  static double in[N], out[N];
  MPI_Win win;
  MPI_Group whole, before, after;
  int next = (rank + 1) % size, last = (rank + size - 1) % size;
  MPI_Comm_group(all, &whole);
  MPI_Group_incl(whole, 1, &last, &before), MPI_Group_incl(whole, 1, &next, &after);
  MPI_Win_create(in, sizeof in, sizeof *in, MPI_INFO_NULL, all, &win);
  for (int round = 0; round < 5; round++) {
    for (int i = 0; i < N; i++) out[i] = rank * 10.0 + i + round;
    MPI_Win_post(before, 0, win), MPI_Win_start(after, 0, win);
    MPI_Put(out, N, MPI_DOUBLE, next, 0, N, MPI_DOUBLE, win);
    MPI_Win_complete(win), MPI_Win_wait(win);
    for (int i = 0; i < N; i++) CHECK(in[i] == last * 10.0 + i + round, "element %d of round %d", i, round);
  }
  MPI_Win_free(&win);
  MPI_Group_free(&whole), MPI_Group_free(&before), MPI_Group_free(&after);
}

/* Increments a counter at each process from all processes, with locks and atomic operations. */
static void counters(MPI_Comm all) {
  enum { ROUNDS = 20 };
  long words[2] = {0, 0};
  MPI_Win win;
  MPI_Win_create_dynamic(MPI_INFO_NULL, all, &win);
  MPI_Win_attach(win, words, sizeof words);
  MPI_Aint *at = malloc((size_t)size * sizeof *at);
  MPI_Get_address(words, &at[rank]);
  MPI_Allgather(MPI_IN_PLACE, 1, MPI_AINT, at, 1, MPI_AINT, all);
  for (int round = 0; round < ROUNDS; round++) {
    int peer = (rank + round) % size;
    long x;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, peer, 0, win);
    MPI_Get(&x, 1, MPI_LONG, peer, at[peer], 1, MPI_LONG, win);
    MPI_Win_flush(peer, win);
    x++;
    MPI_Put(&x, 1, MPI_LONG, peer, at[peer], 1, MPI_LONG, win);
    MPI_Win_unlock(peer, win);
  }
  const long one = 1;
  long before;
  MPI_Win_lock_all(0, win);
  for (int i = 0; i < size; i++)
    MPI_Fetch_and_op(&one, &before, MPI_LONG, i, MPI_Aint_add(at[i], sizeof(long)), MPI_SUM, win);
  MPI_Win_unlock_all(win);
  MPI_Barrier(all);
  long sums[2];
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win); /* makes the operations of others visible */
  MPI_Win_unlock(rank, win);
  MPI_Allreduce(words, sums, 2, MPI_LONG, MPI_SUM, all);
  SAME(sums[0], (long)ROUNDS * size, "counted with locks");
  SAME(sums[1], (long)size * size, "fetched and added");
  MPI_Win_detach(win, words);
  MPI_Win_free(&win);
  free(at);
}

static void file(MPI_Comm all, const char *directory) {
  enum { N = 500 };
  char path[4096];
  int out[N], in[N], count;
  MPI_Info info;
  MPI_File f;
  MPI_Status status;
  MPI_Offset end;
  snprintf(path, sizeof path, "%s/file", directory);
  MPI_Info_create(&info);
  MPI_Info_set(info, "zipper_shared", "true");
  int rc = MPI_File_open(all, path, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, info, &f);
  MPI_Info_free(&info);
  SAME(rc, MPI_SUCCESS, "opening");
  if (rc) return;
  for (int i = 0; i < N; i++) out[i] = rank * 10000 + i;
  MPI_File_write_at_all(f, rank * (MPI_Offset)sizeof out, out, N, MPI_INT, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  SAME(count, N, "written");
  MPI_File_sync(f), MPI_Barrier(all), MPI_File_sync(f);
  MPI_File_get_size(f, &end);
  SAME(end, size * (long)sizeof out, "size");
  int other = (rank + 1) % size;
  MPI_File_read_at(f, other * (MPI_Offset)sizeof in, in, N, MPI_INT, &status);
  for (int i = 0; i < N; i++) SAME(in[i], other * 10000 + i, "of the next");
  MPI_Barrier(all);
  /* The shared pointer: each rank reads a piece, first in any order, then in the order of rank */
  MPI_File_seek_shared(f, 0, MPI_SEEK_SET);
  MPI_File_read_shared(f, in, N, MPI_INT, &status);
  int whose = in[0] / 10000, *all_of = malloc((size_t)size * sizeof *all_of);
  for (int i = 0; i < N; i++) SAME(in[i], whose * 10000 + i, "of a piece");
  MPI_Allgather(&whose, 1, MPI_INT, all_of, 1, MPI_INT, all);
  int sum = 0;
  for (int i = 0; i < size; i++) sum += all_of[i];
  SAME(sum, size * (size - 1) / 2, "each piece was read once");
  free(all_of);
  MPI_File_seek_shared(f, 0, MPI_SEEK_SET);
  MPI_File_read_ordered(f, in, N, MPI_INT, &status);
  for (int i = 0; i < N; i++) SAME(in[i], rank * 10000 + i, "in order of rank");
  MPI_File_close(&f);
  MPI_Barrier(all);
  if (rank == 0) MPI_File_delete(path, MPI_INFO_NULL);
}

int main(int argc, char **argv) {
  MPI_Comm inter, all, some;
  start(&argc, &argv);
  if (argc < 4) MPI_Abort(MPI_COMM_WORLD, 2);
  int accepts = !strcmp(argv[1], "accept");
  if (me == 0) {
    if (accepts) tell_port(argv[2]);
    else find_port(argv[2]);
  }
  SAME(connect_jobs(accepts, MPI_COMM_WORLD, &inter), MPI_SUCCESS, "connecting");
  MPI_Intercomm_merge(inter, !accepts, &all);
  MPI_Comm_rank(all, &rank), MPI_Comm_size(all, &size);
  fences(all), ring(all), counters(all);
  file(all, argv[3]);
  MPI_Comm_split(all, 0, -rank, &some); /* the same ranks in another order */
  MPI_Comm_rank(some, &rank);
  fences(some), counters(some);
  MPI_Comm_free(&some), MPI_Comm_free(&all);
  MPI_Comm_disconnect(&inter);
  if (accepts && me == 0) forget_port(argv[2]);
  line("windows and a file of %d", size);
  return finish();
}
