/* Processes that a program spawns: by each rank in turn from MPI_COMM_SELF, then by all ranks of a
 * host together. Parents and children communicate in every way, and a collective of all parents
 * that began before goes on meanwhile. The children run the same program. */
#include "check.h"

enum { CHILDREN = 2, LONG = 300000 };

/* Sends a message each way between every parent and every child. */
static void messages(MPI_Comm inter, int child) {
  int others, rank;
  MPI_Comm_remote_size(inter, &others), MPI_Comm_rank(inter, &rank);
  char *in = calloc(1, LONG), *out = malloc(LONG);
  for (int i = 0; i < others; i++) {
    int n = i % 2 ? 8 : LONG;
    MPI_Status st;
    fill(out, LONG, (uint64_t)(100 * rank + i + 7 * child));
    if (child) {
      int size = rank % 2 ? 8 : LONG; /* the size of this parent's message */
      MPI_Recv(in, LONG, MPI_CHAR, i, 5, inter, &st);
      MPI_Get_count(&st, MPI_CHAR, &n);
      SAME(n, size, "bytes from a parent");
      CHECK(filled(in, (size_t)n, (uint64_t)(100 * i + rank)), "message of a parent");
      MPI_Send(out, LONG, MPI_CHAR, i, 6, inter);
    } else {
      MPI_Send(out, n, MPI_CHAR, i, 5, inter);
      MPI_Recv(in, LONG, MPI_CHAR, i, 6, inter, MPI_STATUS_IGNORE);
      CHECK(filled(in, LONG, (uint64_t)(100 * i + rank + 7)), "message of a child");
    }
  }
  free(in), free(out);
}

/* Runs collectives between the two groups, blocking and nonblocking ones. */
static void between(MPI_Comm inter, int child) {
  int rank, x, sum = -1;
  MPI_Request r;
  MPI_Comm_rank(inter, &rank);
  MPI_Barrier(inter);
  x = child ? -1 : 41;
  MPI_Bcast(&x, 1, MPI_INT, child ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL, inter);
  SAME(x, 41, "bcast from a parent");
  char here[MPI_MAX_PROCESSOR_NAME] = "", name[MPI_MAX_PROCESSOR_NAME] = "";
  int length;
  MPI_Get_processor_name(here, &length);
  strcpy(name, here);
  MPI_Bcast(name, sizeof name, MPI_CHAR, child ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL, inter);
  CHECK(!strcmp(name, here), "a parent is on %s, this child on %s", name, here); /* the tests have one host */
  x = child ? 43 : -1;
  MPI_Bcast(&x, 1, MPI_INT, !child ? 1 : rank == 1 ? MPI_ROOT : MPI_PROC_NULL, inter);
  SAME(x, 43, "bcast from a child");
  int mine = child ? 10 : 1, mine_of = child ? 1 : 10, others;
  MPI_Comm_remote_size(inter, &others);
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter);
  SAME(sum, mine_of * others, "sum over the others");
  sum = -1;
  MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter, &r);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  SAME(sum, mine_of * others, "nonblocking sum over the others");
}

/* Merges both groups, and makes parts of the result. */
static void merged(MPI_Comm inter, int child) {
  MPI_Comm all, copy, part;
  int rank, size, parents, sum = -1, place[64];
  MPI_Comm_size(inter, &size), MPI_Comm_remote_size(inter, &parents);
  if (!child) parents = size;
  MPI_Intercomm_merge(inter, child, &all);
  MPI_Comm_rank(all, &rank), MPI_Comm_size(all, &size);
  SAME(size, parents + CHILDREN, "parents and children");
  CHECK(child ? rank >= parents : rank < parents, "rank %d", rank);
  MPI_Allgather(&rank, 1, MPI_INT, place, 1, MPI_INT, all);
  for (int i = 0; i < size; i++) SAME(place[i], i, "rank gathered");
  MPI_Comm_dup(all, &copy);
  MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, size - 1, copy);
  if (rank == size - 1) SAME(sum, size * (size - 1) / 2, "sum at a child");
  MPI_Comm_split(copy, rank % 2, rank, &part);
  sum = 0;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, part);
  int want = 0;
  for (int i = rank % 2; i < size; i += 2) want += i;
  SAME(sum, want, "sum of every other");
  int next = (rank + 1) % size, from = -1;
  MPI_Sendrecv(&rank, 1, MPI_INT, next, 1, &from, 1, MPI_INT, MPI_ANY_SOURCE, 1, all, MPI_STATUS_IGNORE);
  SAME(from, (rank + size - 1) % size, "from any");
  MPI_Comm_free(&part), MPI_Comm_free(&copy), MPI_Comm_free(&all);
}

static void together(MPI_Comm *inter, int child) {
  messages(*inter, child);
  between(*inter, child);
  merged(*inter, child);
  /* the result of the children */
  int bad = failures, worst = -1;
  MPI_Allreduce(&bad, &worst, 1, MPI_INT, MPI_MAX, *inter);
  if (!child) SAME(worst, 0, "failures of the children");
  MPI_Comm_disconnect(inter);
  CHECK(*inter == MPI_COMM_NULL, "the handle is left");
}

/* Whether the library can spawn. Debian 12's MPICH 4.0 cannot natively ("Error in spawn call"): its
 * ranks do nothing. */
static int able(void) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int n;
  MPI_Get_library_version(text, &n);
  return !strstr(text, "MPICH") || !strstr(text, "4.0.");
}

static void parents(char *program, MPI_Comm comm) {
  MPI_Comm children;
  int codes[CHILDREN] = {-1, -1}, n = 0;
  char *arguments[] = {"child", "a word = another", NULL};
  const char *cluster = getenv("ZIPPER_CLUSTER");
  MPI_Info info;
  if (!able()) return;
  MPI_Info_create(&info);
  if (cluster) MPI_Info_set(info, "zipper_cluster", cluster); /* MMPI's key: the cluster of this process */
  SAME(MPI_Comm_spawn(program, arguments, CHILDREN, info, 0, comm, &children, codes), MPI_SUCCESS, "Comm_spawn");
  MPI_Info_free(&info);
  SAME(codes[0] | codes[1], MPI_SUCCESS, "codes");
  MPI_Comm_remote_size(children, &n);
  SAME(n, CHILDREN, "children");
  together(&children, 0);
}

/* Spawns two commands at once, which are one world of children. */
static void several(char *program) {
  if (!able()) return;
  MPI_Comm children;
  char *commands[] = {program, program}, *first[] = {"child", "a word = another", NULL}, **arguments[] = {first, first};
  int n[] = {1, 1};
  MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
  MPI_Comm_spawn_multiple(2, commands, arguments, n, infos, 0, MPI_COMM_SELF, &children, MPI_ERRCODES_IGNORE);
  together(&children, 0);
}

int main(int argc, char **argv) {
  MPI_Comm parent, host;
  start(&argc, &argv);
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) {
    SAME(np, CHILDREN, "children in their world");
    CHECK(argc == 3 && !strcmp(argv[2], "a word = another"), "arguments");
    together(&parent, 1);
    MPI_Finalize();
    return failures != 0;
  }
  int sum = -1;
  MPI_Request r;
  for (int i = 0; i < np; i++) {
    MPI_Iallreduce(&me, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r);
    if (i == me) parents(argv[0], MPI_COMM_SELF);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    SAME(sum, np * (np - 1) / 2, "sum of the parents");
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  parents(argv[0], host);
  MPI_Comm_free(&host);
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 0) several(argv[0]);
  MPI_Barrier(MPI_COMM_WORLD);
  line("done");
  return finish();
}
