/* MPI-IO by all processes together: modes of opening, explicit offsets, views, file pointers,
 * collective and nonblocking calls, size, groups, and the files that are left. argv[1] is a
 * directory that all processes share. With "apart" as argv[2] the clusters have to refuse functions
 * that they cannot share, and no rank may wait natively in a collective call for a rank that waits
 * for a message; natively that part is not run. With "environment" the program does not declare
 * that the directory is shared. */
#include "check.h"
#include <unistd.h>

static char path[512];
static MPI_Info info = MPI_INFO_NULL;

static MPI_File opened(MPI_Comm c, int amode) {
  MPI_File f = MPI_FILE_NULL;
  SAME(MPI_File_open(c, path, amode, info, &f), MPI_SUCCESS, "File_open");
  return f;
}

static int open_class(MPI_Comm c, int amode) {
  MPI_File f = MPI_FILE_NULL;
  int class_;
  MPI_Error_class(MPI_File_open(c, path, amode, info, &f), &class_);
  CHECK(f == MPI_FILE_NULL, "a file in spite of an error");
  return class_;
}

static long size_of(MPI_File f) {
  MPI_Offset size;
  MPI_File_get_size(f, &size);
  return size;
}

/* Lets all ranks read after all have written. */
static void settle(MPI_File f) {
  MPI_File_sync(f);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_sync(f);
}

static int at(int rank, int i) { return rank * 1000 + i; }

static void offsets(MPI_Comm c) {
  enum { N = 100 };
  int out[N], in[N], n;
  MPI_Status s;
  MPI_Request r;
  MPI_File f = opened(c, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR);
  for (int i = 0; i < N; i++) out[i] = at(me, i);
  SAME(MPI_File_write_at(f, me * (MPI_Offset)sizeof out, out, N, MPI_INT, &s), MPI_SUCCESS, "write_at");
  MPI_Get_count(&s, MPI_INT, &n);
  SAME(n, N, "written");
  settle(f);
  SAME(size_of(f), np * sizeof out, "size");
  int other = (me + 1) % np, k;
  SAME(MPI_File_read_at(f, other * (MPI_Offset)sizeof out, in, N, MPI_INT, &s), MPI_SUCCESS, "read_at");
  for (int i = 0; i < N; i++) SAME(in[i], at(other, i), "of the next");
  SAME(MPI_File_read_at_all(f, ((me + 2) % np) * (MPI_Offset)sizeof out, in, N, MPI_INT, &s), MPI_SUCCESS,
       "read_at_all");
  for (int i = 0; i < N; i++) SAME(in[i], at((me + 2) % np, i), "of the one after");
  settle(f); /* no rank reads any more */
  for (int i = 0; i < N; i++) out[i] = at(me + 50, i);
  SAME(MPI_File_iwrite_at(f, (np - 1 - me) * (MPI_Offset)sizeof out, out, N, MPI_INT, &r), MPI_SUCCESS, "iwrite_at");
  MPI_Wait(&r, &s);
  settle(f);
  MPI_File_iread_at(f, me * (MPI_Offset)sizeof out, in, N, MPI_INT, &r);
  MPI_Wait(&r, &s);
  for (int i = 0; i < N; i++) SAME(in[i], at(50 + np - 1 - me, i), "of the opposite");

  MPI_Group g, w;
  MPI_File_get_group(f, &g);
  MPI_Comm_group(c, &w);
  MPI_Group_compare(g, w, &k);
  SAME(k, MPI_IDENT, "the file's group");
  MPI_Group_free(&g), MPI_Group_free(&w);
  MPI_File_get_amode(f, &k);
  SAME(k, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, "amode");
  settle(f); /* all have read it */
  MPI_File_set_size(f, 40);
  SAME(size_of(f), 40, "size after set_size");
  MPI_Barrier(c);
  MPI_File_preallocate(f, 400);
  SAME(size_of(f), 400, "size after preallocate");
  MPI_File_close(&f);
  CHECK(f == MPI_FILE_NULL, "the handle after close");
  SAME(open_class(c, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR), MPI_ERR_FILE_EXISTS,
       "class of a file that exists");
  line("offsets");
}

/* Writes elements of all ranks interleaved, all at once: none may be lost. */
static void views(MPI_Comm c) {
  enum { N = 3000 };
  static int out[N], in[N], all[64 * N];
  MPI_Datatype mine;
  MPI_Status s;
  MPI_File f = opened(c, MPI_MODE_RDWR | MPI_MODE_CREATE);
  MPI_File_set_size(f, 0);
  MPI_Type_vector(N, 1, np, MPI_INT, &mine);
  MPI_Type_commit(&mine);
  for (int round = 0; round < 30; round++) {
    MPI_File_set_view(f, me * (MPI_Offset)sizeof(int), MPI_INT, mine, "native", info);
    for (int i = 0; i < N; i++) out[i] = at(me, i + round);
    if (round % 3 == 1) SAME(MPI_File_write(f, out, N, MPI_INT, &s), MPI_SUCCESS, "write");
    else SAME(MPI_File_write_all(f, out, N, MPI_INT, &s), MPI_SUCCESS, "write_all");
    settle(f);
    MPI_File_seek(f, 0, MPI_SEEK_SET);
    SAME(MPI_File_read_all(f, in, N, MPI_INT, &s), MPI_SUCCESS, "read_all");
    SAME(memcmp(in, out, sizeof in), 0, "through the view");
    MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", info);
    MPI_File_read_at_all(f, 0, all, N * np, MPI_INT, &s);
    int wrong = 0;
    for (int i = 0; i < N * np; i++) wrong += all[i] != at(i % np, i / np + round);
    SAME(wrong, 0, "elements that are wrong in the whole file");
    settle(f);
  }
  line("views: %016llx", (unsigned long long)digest(0, all, (size_t)N * np * sizeof *all));
  MPI_Type_free(&mine);

  /* Individual pointers. */
  MPI_Offset where;
  MPI_File_seek(f, 2 * me, MPI_SEEK_SET);
  int two[2];
  MPI_File_read(f, two, 2, MPI_INT, &s);
  MPI_File_get_position(f, &where);
  SAME(where, 2 * me + 2, "position");
  MPI_File_seek(f, -2, MPI_SEEK_END);
  MPI_File_get_position(f, &where);
  SAME(where, (MPI_Offset)N * np - 2, "position from the end");
  MPI_File_read_all_begin(f, two, 2, MPI_INT);
  MPI_File_read_all_end(f, two, &s);
  SAME(two[1], all[N * np - 1], "the last one");
  MPI_File_close(&f);
}

/* Checks appending, an error handler of the program's, a file that is deleted on close, and a
 * missing file. */
static void ends(MPI_Comm c) {
  MPI_Offset where;
  MPI_File f = opened(c, MPI_MODE_WRONLY | MPI_MODE_APPEND);
  MPI_File_get_position(f, &where);
  line("appends at %lld", (long long)where);
  MPI_File_close(&f);
  f = opened(c, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
  int amode, atomic = 1;
  MPI_File_get_amode(f, &amode);
  CHECK(amode & MPI_MODE_DELETE_ON_CLOSE, "amode");
  MPI_File_get_atomicity(f, &atomic);
  SAME(atomic, 0, "atomicity");
  MPI_Barrier(c);
  MPI_File_close(&f);
  CHECK(access(path, F_OK), "the file is still there");
  SAME(open_class(c, MPI_MODE_RDONLY), MPI_ERR_NO_SUCH_FILE, "class of no file");
  const size_t length = strlen(path);
  strcat(path, "/none/deeper");
  SAME(open_class(c, MPI_MODE_RDWR | MPI_MODE_CREATE), MPI_ERR_NO_SUCH_FILE, "class of no directory");
  path[length] = 0;
  f = opened(c, MPI_MODE_RDWR | MPI_MODE_CREATE);
  MPI_File_close(&f);
  MPI_Barrier(c);
  if (me == 0) SAME(MPI_File_delete(path, MPI_INFO_NULL), MPI_SUCCESS, "delete");
  MPI_Barrier(c);
  CHECK(access(path, F_OK), "the file is still there");
}

/* Checks the shared file pointer: records of a rank and a number, in the order of arrival. */
static void shared_pointer(MPI_Comm c) {
  enum { RECORDS = 30, N = 7 };
  int record[N], seen[64] = {0}, n;
  long mine[2] = {0, 0}, all[2];
  MPI_Offset where;
  MPI_Status s;
  MPI_Request r;
  MPI_File f = opened(c, MPI_MODE_RDWR | MPI_MODE_CREATE);
  MPI_File_set_view(f, 12, MPI_INT, MPI_INT, "native", info);
  for (int k = 0; k < RECORDS; k++) {
    for (int i = 0; i < N; i++) record[i] = at(me, k);
    if (k % 3) {
      SAME(MPI_File_write_shared(f, record, N, MPI_INT, &s), MPI_SUCCESS, "write_shared");
    } else {
      SAME(MPI_File_iwrite_shared(f, record, N, MPI_INT, &r), MPI_SUCCESS, "iwrite_shared");
      MPI_Wait(&r, &s);
    }
    MPI_Get_count(&s, MPI_INT, &n);
    SAME(n, N, "written");
  }
  settle(f);
  MPI_File_get_position_shared(f, &where);
  SAME(where, (MPI_Offset)np * RECORDS * N, "position after all");
  SAME(size_of(f), 12 + 4 * where, "size");
  for (int k = 0; k < np * RECORDS; k++) { /* each record once, those of a rank in order */
    MPI_File_read_at(f, (MPI_Offset)k * N, record, N, MPI_INT, &s);
    int rank = record[0] / 1000;
    for (int i = 1; i < N; i++) SAME(record[i], record[0], "word of a record");
    CHECK(rank >= 0 && rank < np, "record of %d", rank);
    if (rank >= 0 && rank < np) SAME(record[0], at(rank, seen[rank]++), "record");
  }
  MPI_Barrier(c);
  SAME(MPI_File_seek_shared(f, N, MPI_SEEK_SET), MPI_SUCCESS, "seek_shared");
  SAME(MPI_File_seek_shared(f, -N, MPI_SEEK_CUR), MPI_SUCCESS, "seek_shared");
  for (int k = 0; k < RECORDS; k++) {
    if (k % 2) SAME(MPI_File_read_shared(f, record, N, MPI_INT, &s), MPI_SUCCESS, "read_shared");
    else MPI_File_iread_shared(f, record, N, MPI_INT, &r), MPI_Wait(&r, &s);
    mine[0] += record[0], mine[1]++;
  }
  MPI_Allreduce(mine, all, 2, MPI_LONG, MPI_SUM, c);
  long sum = 0;
  for (int q = 0; q < np; q++)
    for (int k = 0; k < RECORDS; k++) sum += at(q, k);
  SAME(all[0], sum, "sum of the records");
  SAME(all[1], (long)np * RECORDS, "records");

  /* In the order of rank in c: as many words as the rank has, and one more. */
  int rank, total = 0, before = 0, out[64], *whole = malloc(sizeof *whole * 64 * 65);
  MPI_Comm_rank(c, &rank);
  for (int q = 0; q < np; q++) before += q < rank ? q + 1 : 0, total += q + 1;
  MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", info);
  MPI_File_get_position_shared(f, &where);
  SAME(where, 0, "position in a new view");
  for (int i = 0; i <= rank; i++) out[i] = at(rank, i);
  SAME(MPI_File_write_ordered(f, out, rank + 1, MPI_INT, &s), MPI_SUCCESS, "write_ordered");
  for (int i = 0; i <= rank; i++) out[i] = at(rank, 100 + i);
  MPI_File_write_ordered_begin(f, out, rank + 1, MPI_INT);
  MPI_File_write_ordered_end(f, out, &s);
  MPI_Get_count(&s, MPI_INT, &n);
  SAME(n, rank + 1, "written in order");
  settle(f);
  MPI_File_read_at_all(f, 0, whole, 2 * total, MPI_INT, &s);
  line("ordered: %016llx", (unsigned long long)digest(0, whole, 2 * total * sizeof *whole));
  for (int half = 0; half < 2; half++)
    for (int i = 0; i <= rank; i++) SAME(whole[half * total + before + i], at(rank, 100 * half + i), "word in order");
  MPI_File_seek_shared(f, 0, MPI_SEEK_SET);
  SAME(MPI_File_read_ordered(f, whole, rank + 1, MPI_INT, &s), MPI_SUCCESS, "read_ordered");
  for (int i = 0; i <= rank; i++) SAME(whole[i], at(rank, i), "read in order");
  MPI_File_read_ordered_begin(f, whole, rank + 1, MPI_INT);
  MPI_File_read_ordered_end(f, whole, &s);
  for (int i = 0; i <= rank; i++) SAME(whole[i], at(rank, 100 + i), "read in order");
  free(whole);
  MPI_File_set_size(f, 400);
  /* in a view that does not begin at 0 Open MPI 4.1 counts from another end */
  MPI_File_seek_shared(f, -2, MPI_SEEK_END);
  MPI_File_get_position_shared(f, &where);
  SAME(where, 98, "position from the end");
  MPI_File_close(&f);
  MPI_Barrier(c);
  if (me == 0) MPI_File_delete(path, MPI_INFO_NULL);
  MPI_Barrier(c);
}

/* Lets each rank with an even rank in c wait in a collective call for the next one, which gets
 * there only once its message has been received by a receive from MPI_ANY_SOURCE. */
static void waits(MPI_Comm c, const char *name) {
  enum { N = 1000 };
  static int out[N], in[N];
  int rank, size, x = 5, y = -1, step = 0;
  char kept[sizeof path];
  MPI_File f;
  MPI_Info none;
  MPI_Status s;
  MPI_Comm_rank(c, &rank);
  MPI_Comm_size(c, &size);
  strcpy(kept, path);
  strcpy(path, name);
  int odd = rank % 2, pair = odd || rank + 1 < size, with[1] = {rank ^ 1}, peer = MPI_PROC_NULL;
  MPI_Group group, world;
  MPI_Comm_group(c, &group);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  if (pair) MPI_Group_translate_ranks(group, 1, with, world, &peer);
  MPI_Group_free(&group), MPI_Group_free(&world);
  MPI_Info_create(&none);
#define WAITS(call)                                                                              \
  do {                                                                                           \
    MPI_Request r = MPI_REQUEST_NULL;                                                            \
    step++;                                                                                      \
    if (pair && !odd) MPI_Irecv(&y, 1, MPI_INT, MPI_ANY_SOURCE, 100 + step, MPI_COMM_WORLD, &r); \
    MPI_Barrier(c);                                                                              \
    if (odd) MPI_Ssend(&x, 1, MPI_INT, peer, 100 + step, MPI_COMM_WORLD);                        \
    SAME(call, MPI_SUCCESS, #call);                                                              \
    MPI_Wait(&r, MPI_STATUS_IGNORE);                                                             \
  } while (0)
  MPI_Datatype mine;
  MPI_Type_vector(N, 1, size, MPI_INT, &mine);
  MPI_Type_commit(&mine);
  WAITS(MPI_File_open(c, path, MPI_MODE_RDWR | MPI_MODE_CREATE, info, &f));
  WAITS(MPI_File_set_size(f, 16));
  WAITS(MPI_File_preallocate(f, 64));
  WAITS(MPI_File_set_view(f, rank * (MPI_Offset)sizeof(int), MPI_INT, mine, "native", info));
  WAITS(MPI_File_set_info(f, none));
  WAITS(MPI_File_set_atomicity(f, 0));
  for (int i = 0; i < N; i++) out[i] = at(rank, i);
  WAITS(MPI_File_write_all(f, out, N, MPI_INT, &s));
  WAITS(MPI_File_write_at_all(f, 0, out, N, MPI_INT, &s));
  WAITS(MPI_File_sync(f));
  MPI_File_seek(f, 0, MPI_SEEK_SET);
  WAITS(MPI_File_read_all(f, in, N, MPI_INT, &s));
  SAME(memcmp(in, out, sizeof in), 0, "read_all");
  memset(in, 0, sizeof in);
  WAITS(MPI_File_read_at_all(f, 0, in, N, MPI_INT, &s));
  SAME(memcmp(in, out, sizeof in), 0, "read_at_all");
  WAITS(MPI_File_write_at_all_begin(f, 0, out, N, MPI_INT));
  WAITS(MPI_File_write_at_all_end(f, out, &s));
  memset(in, 0, sizeof in);
  WAITS(MPI_File_read_at_all_begin(f, 0, in, N, MPI_INT));
  WAITS(MPI_File_read_at_all_end(f, in, &s));
  SAME(memcmp(in, out, sizeof in), 0, "read_at_all_begin");
  MPI_File_seek(f, 0, MPI_SEEK_SET);
  WAITS(MPI_File_write_all_begin(f, out, N, MPI_INT));
  WAITS(MPI_File_write_all_end(f, out, &s));
  MPI_File_seek(f, 0, MPI_SEEK_SET);
  WAITS(MPI_File_read_all_begin(f, in, N, MPI_INT));
  WAITS(MPI_File_read_all_end(f, in, &s));
  WAITS(MPI_File_close(&f));
  MPI_Barrier(c);
  if (rank == 0) MPI_File_delete(path, MPI_INFO_NULL);
  MPI_Barrier(c);
  MPI_Info_free(&none);
  MPI_Type_free(&mine);
  strcpy(path, kept);
}

static void refused(const char *what, int rc) {
  int class_;
  MPI_Error_class(rc, &class_);
  SAME(class_, MPI_ERR_UNSUPPORTED_OPERATION, what);
}

/* Writes and reads in order, without explicit positions, with a view that begins at the pointer. */
static void sequential(MPI_Comm c) {
  enum { N = 3 };
  int rank, size, amode = 0, head = -1, mine[N], got[N];
  MPI_Status s;
  MPI_Comm_rank(c, &rank), MPI_Comm_size(c, &size);
  MPI_File f = opened(c, MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_SEQUENTIAL);
  MPI_File_get_amode(f, &amode);
  SAME(amode & MPI_MODE_SEQUENTIAL, MPI_MODE_SEQUENTIAL, "mode");
  int first = 4711;
  MPI_File_write_ordered(f, &first, rank == 0, MPI_INT, &s);
  MPI_File_set_view(f, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", info);
  for (int i = 0; i < N; i++) mine[i] = at(rank, i);
  MPI_File_write_ordered(f, mine, N, MPI_INT, &s);
  MPI_File_close(&f);
  f = opened(c, MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL | MPI_MODE_DELETE_ON_CLOSE);
  MPI_File_read_ordered(f, &head, rank == 0, MPI_INT, &s);
  if (rank == 0) SAME(head, first, "what was written first");
  MPI_File_set_view(f, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", info);
  MPI_File_read_ordered(f, got, N, MPI_INT, &s);
  SAME(memcmp(got, mine, sizeof mine), 0, "what comes after it");
  MPI_File_close(&f);
}

static void apart(MPI_Comm c) {
  MPI_Info_set(info, "zipper_shared", "false");
  SAME(open_class(c, MPI_MODE_RDWR | MPI_MODE_CREATE), MPI_ERR_UNSUPPORTED_OPERATION, "not declared");
  MPI_Info_set(info, "zipper_shared", "true");
  SAME(open_class(c, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_SEQUENTIAL), MPI_ERR_AMODE, "sequential, both ways");
  sequential(c);
  MPI_File f = opened(c, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE);
  refused("set_atomicity", MPI_File_set_atomicity(f, 1));
  SAME(MPI_File_set_atomicity(f, 0), MPI_SUCCESS, "set_atomicity off");
  MPI_File_close(&f);
}

/* Does so on the communicators of hosts, and on all. */
static void waiting(MPI_Comm c) {
  MPI_Comm host;
  int leader = me;
  char name[sizeof path + 20];
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  MPI_Bcast(&leader, 1, MPI_INT, 0, host);
  snprintf(name, sizeof name, "%s-%d", path, leader);
  waits(host, name);
  MPI_Comm_free(&host);
  waits(c, path);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  MPI_Comm c;
  snprintf(path, sizeof path, "%s/file-%s", argv[1], argc > 2 ? argv[2] : "native");
  int environment = argc > 2 && !strcmp(argv[2], "environment");
  if (!environment) MPI_Info_create(&info);
  if (!environment) MPI_Info_set(info, "zipper_shared", "true"); /* a hint that native libraries ignore */
  MPI_Comm_dup(MPI_COMM_WORLD, &c);
  offsets(c);
  views(MPI_COMM_WORLD);
  ends(c);
  /* With the order of ranks reversed the file's group and the rank that opens first change. */
  MPI_Comm reversed;
  MPI_Comm_split(c, 0, -me, &reversed);
  offsets(reversed);
  if (me == 0) MPI_File_delete(path, MPI_INFO_NULL);
  MPI_Barrier(c);
  shared_pointer(reversed);
  MPI_Comm_free(&reversed);
  shared_pointer(c);
  if (argc > 2 && !environment) waiting(c), apart(c);
  if (!environment) MPI_Info_free(&info);
  MPI_Comm_free(&c);
  return finish();
}
