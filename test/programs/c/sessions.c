/* MPI 4's sessions: process sets, their groups, communicators and intercommunicators made from
 * groups, several sessions at a time and one after the other. With "before" and "after" MPI_Init
 * precedes or follows the first session, and MPI_Finalize is called while a session is open; with
 * "without" there is no MPI_Init. "clusters N": there are N sets zipper://cluster/NAME. */
#include "check.h"

#ifdef MPI_SESSION_NULL
static int want_clusters, initialized;

static MPI_Session begin(void) {
  MPI_Session s;
  int flag;
  SAME(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &s), MPI_SUCCESS, "Session_init");
  MPI_Initialized(&flag);
  SAME(flag, initialized, "Initialized");
  return s;
}

static MPI_Group set(MPI_Session s, const char *name) {
  MPI_Group g;
  SAME(MPI_Group_from_session_pset(s, name, &g), MPI_SUCCESS, name);
  return g;
}

static MPI_Comm from(MPI_Group g, const char *string) {
  MPI_Comm c;
  SAME(MPI_Comm_create_from_group(g, string, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &c), MPI_SUCCESS, string);
  return c;
}

static void sets(MPI_Session s) {
  int n, clusters = 0, members = 0, mine = 0, world = 0, self = 0;
  MPI_Session_get_num_psets(s, MPI_INFO_NULL, &n);
  for (int i = 0; i < n; i++) {
    char name[MPI_MAX_PSET_NAME_LEN + 1] = "untouched", size[16] = "";
    int room = 0, flag = 0;
    MPI_Info info;
    SAME(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &room, name), MPI_SUCCESS, "Session_get_nth_pset");
    CHECK(!strcmp(name, "untouched") && room > 1 && room < (int)sizeof name, "length %d", room);
    int all = room;
    SAME(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &room, name), MPI_SUCCESS, "Session_get_nth_pset");
    SAME((int)strlen(name) + 1, all, name);
    world += !strcmp(name, "mpi://WORLD"), self += !strcmp(name, "mpi://SELF");
    SAME(MPI_Session_get_pset_info(s, name, &info), MPI_SUCCESS, "Session_get_pset_info");
    MPI_Info_get(info, "mpi_size", sizeof size - 1, size, &flag);
    MPI_Info_free(&info);
    MPI_Group g = set(s, name);
    int count, rank;
    MPI_Group_size(g, &count);
    MPI_Group_rank(g, &rank);
    CHECK(flag && atoi(size) == count, "%s has %d processes, info says %s", name, count, size);
    if (!strncmp(name, "zipper://cluster/", 17)) {
      clusters++, members += count, mine += rank != MPI_UNDEFINED;
      if (rank != MPI_UNDEFINED) {
        MPI_Comm c = from(g, name);
        int sum = 0, one = 1;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c);
        SAME(sum, count, "processes of my cluster");
        MPI_Comm_free(&c);
      }
    }
    MPI_Group_free(&g);
  }
  SAME(world, 1, "sets mpi://WORLD");
  SAME(self, 1, "sets mpi://SELF");
  SAME(clusters, want_clusters, "sets of clusters");
  if (!clusters) return;
  SAME(mine, 1, "clusters of mine");
  SAME(members, np, "processes of all clusters");
}

static void groups(MPI_Group all, int round) {
  int order[64], sum = 0, rank, evens[64], odds[64], n[2] = {0, 0};
  MPI_Group reversed, half[2];
  CHECK(np <= 64, "too many processes");
  for (int i = 0; i < np; i++) order[np - 1 - i] = i;
  for (int i = 0; i < np; i++) (i % 2 ? odds : evens)[n[i % 2]++] = i;
  MPI_Group_incl(all, np, order, &reversed);
  MPI_Comm c = from(reversed, "reversed"), d = from(all, "as they are"), self, inter, both;
  MPI_Comm_rank(c, &rank);
  SAME(rank, np - 1 - me, "rank in the reversed group");
  MPI_Scan(&me, &sum, 1, MPI_INT, MPI_SUM, c);
  line("round %d: scan from the end %d", round, sum);
  MPI_Scan(&me, &sum, 1, MPI_INT, MPI_SUM, d);
  line("round %d: scan %d", round, sum);
  MPI_Group_incl(all, 1, &me, &half[0]);
  self = from(half[0], "alone");
  MPI_Comm_size(self, &sum);
  SAME(sum, 1, "processes of a group of one");
  MPI_Comm_free(&self), MPI_Group_free(&half[0]);
  int leader[2] = {n[0] - 1, 0};
  MPI_Group_incl(all, n[0], evens, &half[0]);
  MPI_Group_incl(all, n[1], odds, &half[1]);
  SAME(MPI_Intercomm_create_from_groups(half[me % 2], leader[me % 2], half[1 - me % 2], leader[1 - me % 2], "two",
                                        MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &inter),
       MPI_SUCCESS, "Intercomm_create_from_groups");
  MPI_Comm_remote_size(inter, &sum);
  SAME(sum, n[1 - me % 2], "processes of the other group");
  MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, inter);
  line("round %d: sum of the other group %d", round, sum);
  MPI_Intercomm_merge(inter, me % 2, &both);
  MPI_Scan(&me, &sum, 1, MPI_INT, MPI_SUM, both);
  line("round %d: scan of evens, then odds %d", round, sum);
  MPI_Comm_free(&both), MPI_Comm_free(&inter), MPI_Comm_free(&d), MPI_Comm_free(&c);
  MPI_Group_free(&half[0]), MPI_Group_free(&half[1]), MPI_Group_free(&reversed);
}

int main(int argc, char **argv) {
  int flag, before = argc > 1 && !strcmp(argv[1], "before"), after = argc > 1 && !strcmp(argv[1], "after");
  want_clusters = argc > 2 ? atoi(argv[2]) : 0;
  if (before) MPI_Init(&argc, &argv), initialized = 1;
  MPI_Session first = begin(), second = begin();
  MPI_Group all = set(first, "mpi://WORLD"), alone = set(first, "mpi://SELF"), again;
  MPI_Group_size(all, &np), MPI_Group_rank(all, &me);
  MPI_Group_size(alone, &flag);
  SAME(flag, 1, "processes of mpi://SELF");
  sets(first);
  groups(all, 1);
  if (after) MPI_Init(&argc, &argv), initialized = 1;
  MPI_Group_free(&alone), MPI_Group_free(&all);
  MPI_Session_finalize(&first);
  CHECK(first == MPI_SESSION_NULL, "Session_finalize");
  all = set(second, "MPI://world");
  groups(all, 2);
  MPI_Group_free(&all);
  MPI_Session_finalize(&second);
  first = begin();
  all = set(first, "mpi://WORLD");
  if (initialized) {
    int sum;
    MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    SAME(sum, np * (np - 1) / 2, "sum over MPI_COMM_WORLD");
    MPI_Comm_group(MPI_COMM_WORLD, &again);
    MPI_Group_compare(all, again, &sum);
    SAME(sum, MPI_IDENT, "the group of MPI_COMM_WORLD");
    MPI_Group_free(&again);
    MPI_Finalize();
  }
  MPI_Finalized(&flag);
  SAME(flag, initialized, "Finalized");
  groups(all, 3);
  MPI_Comm c = from(all, "the report");
  report(c);
  MPI_Comm_free(&c);
  MPI_Group_free(&all);
  MPI_Session_finalize(&first);
  return failures != 0;
}
#else
int main(int argc, char **argv) {
  start(&argc, &argv);
  CHECK(0, "this library has no sessions");
  return finish();
}
#endif
