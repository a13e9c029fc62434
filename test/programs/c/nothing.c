/* Arguments that may be NULL: arrays without elements, buffers without bytes, names without
 * length. */
#include "check.h"

static int none; /* 0, as a value that the compiler does not know */

static void requests(void) {
  int flag = -1, index = -1, count = -1;
  SAME(MPI_Waitall(none, NULL, MPI_STATUSES_IGNORE), MPI_SUCCESS, "MPI_Waitall");
  SAME(MPI_Testall(none, NULL, &flag, MPI_STATUSES_IGNORE), MPI_SUCCESS, "MPI_Testall");
  SAME(flag, 1, "flag of MPI_Testall");
  SAME(MPI_Waitany(none, NULL, &index, MPI_STATUS_IGNORE), MPI_SUCCESS, "MPI_Waitany");
  SAME(index, MPI_UNDEFINED, "index of MPI_Waitany");
  SAME(MPI_Testany(none, NULL, &index, &flag, MPI_STATUS_IGNORE), MPI_SUCCESS, "MPI_Testany");
  SAME(flag, 1, "flag of MPI_Testany");
  SAME(MPI_Waitsome(none, NULL, &count, NULL, MPI_STATUSES_IGNORE), MPI_SUCCESS, "MPI_Waitsome");
  SAME(count, MPI_UNDEFINED, "count of MPI_Waitsome");
  count = -1;
  SAME(MPI_Testsome(none, NULL, &count, NULL, MPI_STATUSES_IGNORE), MPI_SUCCESS, "MPI_Testsome");
  SAME(count, MPI_UNDEFINED, "count of MPI_Testsome");
}

static void messages(void) {
  int next = (me + 1) % np, before = (me + np - 1) % np, sum = -1;
  MPI_Status status;
  MPI_Request request;
  MPI_Irecv(NULL, 0, MPI_INT, before, 1, MPI_COMM_WORLD, &request);
  SAME(MPI_Send(NULL, 0, MPI_INT, next, 1, MPI_COMM_WORLD), MPI_SUCCESS, "MPI_Send");
  MPI_Wait(&request, &status);
  MPI_Get_count(&status, MPI_INT, &sum);
  SAME(sum, 0, "elements");
  SAME(MPI_Bcast(NULL, 0, MPI_INT, 0, MPI_COMM_WORLD), MPI_SUCCESS, "MPI_Bcast");
  SAME(MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_SUCCESS, "MPI_Allreduce");
  SAME(MPI_Gather(NULL, 0, MPI_INT, NULL, 0, MPI_INT, 0, MPI_COMM_WORLD), MPI_SUCCESS, "MPI_Gather");
  int *zeros = me == 0 ? calloc((size_t)np, sizeof *zeros) : NULL; /* they have a meaning at the root only */
  SAME(MPI_Gatherv(NULL, 0, MPI_INT, NULL, zeros, zeros, MPI_INT, 0, MPI_COMM_WORLD), MPI_SUCCESS, "MPI_Gatherv");
  free(zeros);
  SAME(MPI_Alltoall(NULL, 0, MPI_INT, NULL, 0, MPI_INT, MPI_COMM_WORLD), MPI_SUCCESS, "MPI_Alltoall");
}

static void groups(void) {
  int size = -1, ranks[1] = {0};
  MPI_Group all, few;
  MPI_Comm graph;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  SAME(MPI_Group_incl(all, 0, NULL, &few), MPI_SUCCESS, "MPI_Group_incl");
  MPI_Group_size(few, &size);
  SAME(size, 0, "members");
  if (few != MPI_GROUP_EMPTY) MPI_Group_free(&few);
  SAME(MPI_Group_excl(all, 0, NULL, &few), MPI_SUCCESS, "MPI_Group_excl");
  MPI_Group_size(few, &size);
  SAME(size, np, "members");
  MPI_Group_free(&few);
  SAME(MPI_Group_range_excl(all, 0, NULL, &few), MPI_SUCCESS, "MPI_Group_range_excl");
  SAME(MPI_Group_translate_ranks(all, 0, NULL, few, NULL), MPI_SUCCESS, "MPI_Group_translate_ranks");
  MPI_Group_free(&few), MPI_Group_free(&all);
  SAME(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, none, ranks, MPI_UNWEIGHTED, none, ranks, MPI_UNWEIGHTED,
                                      MPI_INFO_NULL, 0, &graph),
       MPI_SUCCESS, "MPI_Dist_graph_create_adjacent");
  SAME(MPI_Dist_graph_neighbors(graph, none, NULL, NULL, none, NULL, NULL), MPI_SUCCESS, "MPI_Dist_graph_neighbors");
  SAME(MPI_Neighbor_alltoall(NULL, 0, MPI_INT, NULL, 0, MPI_INT, graph), MPI_SUCCESS, "MPI_Neighbor_alltoall");
  MPI_Comm_free(&graph);
}

static void windows(void) {
  MPI_Win win;
  SAME(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_SUCCESS, "MPI_Win_create");
  MPI_Win_fence(0, win);
  SAME(MPI_Put(NULL, 0, MPI_BYTE, (me + 1) % np, 0, 0, MPI_BYTE, win), MPI_SUCCESS, "MPI_Put");
  MPI_Win_fence(0, win);
  MPI_Win_free(&win);
}

#if MPI_VERSION >= 4
/* Requests the length of a set's name, without room for the name. */
static void names(void) {
  MPI_Session session;
  int sets = 0;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
  MPI_Session_get_num_psets(session, MPI_INFO_NULL, &sets);
  for (int i = 0; i < sets; i++) {
    int length = 0, all;
    char name[MPI_MAX_PSET_NAME_LEN + 1] = "";
    SAME(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, NULL), MPI_SUCCESS, "MPI_Session_get_nth_pset");
    all = length;
    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, name);
    SAME((int)strlen(name) + 1, all, name);
  }
  MPI_Session_finalize(&session);
}
#else
static void names(void) {}
#endif

int main(int argc, char **argv) {
  start(&argc, &argv);
  none = atoi("0");
  requests(), messages(), groups(), windows(), names();
  line("done");
  return finish();
}
