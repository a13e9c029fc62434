/* The calls of lost_phase.c that need more than a communicator and two buffers: vectors of counts
 * and types, neighbourhoods, persistent collectives, epochs of windows, files, and calls that
 * make objects. */
#ifndef LOST_CALLS_H
#define LOST_CALLS_H
#include "lost.h"

enum { SOME = 1000, MANY = 300000, MOST = 16 };
enum { NOT_HERE = -1 }; /* the result of a function below that does not have the phase */

static int *a, *b;                     /* [MANY * MOST] the sent and the received numbers */
static int counts[MOST], displs[MOST]; /* of gatherv and the like: the same in all ranks */
static int pairs[MOST], places[MOST];  /* of alltoallv: the same at both ends of each pair */
static int offsets[MOST];              /* places in bytes */
static MPI_Aint sides[2] = {0, SOME * sizeof(int)};
static MPI_Datatype types[MOST];
static MPI_Comm ring = MPI_COMM_NULL, graph = MPI_COMM_NULL;  /* with neighbours on both sides, and one on each */
static MPI_Comm grid = MPI_COMM_NULL;                         /* rows of two ranks, which are inside clusters of two */
static MPI_Comm half = MPI_COMM_NULL, halves = MPI_COMM_NULL; /* the even or odd ranks, and both */
static char port[MPI_MAX_PORT_NAME];                          /* at which the even ranks accept the odd ones */
static MPI_Win win = MPI_WIN_NULL;
static MPI_File file = MPI_FILE_NULL;
static MPI_Request persistent = MPI_REQUEST_NULL;
static MPI_Request parts[2]; /* the partitioned send to the right, and the receive from the left */

static inline int is(const char *name) { return !strcmp(phase, name); }
static inline int begins(const char *prefix) { return !strncmp(phase, prefix, strlen(prefix)); }
static inline int right(void) { return (me + 1) % np; }
static inline int left(void) { return (me + np - 1) % np; }

#define PHASE(NAME, ...) \
  if (!strcmp(phase, NAME)) return MPI_##__VA_ARGS__

static inline int wait_for(int rc, MPI_Request *request) { return rc ? rc : MPI_Wait(request, MPI_STATUS_IGNORE); }

static int vectors(MPI_Comm comm, int root) {
  MPI_Request r;
  PHASE("gatherv", Gatherv(a, counts[me], MPI_INT, b, counts, displs, MPI_INT, root, comm));
  PHASE("scatterv", Scatterv(a, counts, displs, MPI_INT, b, counts[me], MPI_INT, root, comm));
  PHASE("allgatherv", Allgatherv(a, counts[me], MPI_INT, b, counts, displs, MPI_INT, comm));
  PHASE("alltoallv", Alltoallv(a, pairs, places, MPI_INT, b, pairs, places, MPI_INT, comm));
  PHASE("alltoallw", Alltoallw(a, pairs, offsets, types, b, pairs, offsets, types, comm));
  PHASE("reduce_scatter_v", Reduce_scatter(a, b, counts, MPI_INT, MPI_SUM, comm));
  if (is("igatherv"))
    return wait_for(MPI_Igatherv(a, counts[me], MPI_INT, b, counts, displs, MPI_INT, root, comm, &r), &r);
  if (is("ialltoallw"))
    return wait_for(MPI_Ialltoallw(a, pairs, offsets, types, b, pairs, offsets, types, comm, &r), &r);
  return NOT_HERE;
}

static int neighbours(void) {
  static const int two[] = {SOME, SOME}, at[] = {0, SOME};
  MPI_Request r;
  PHASE("neighbor_allgather", Neighbor_allgather(a, SOME, MPI_INT, b, SOME, MPI_INT, ring));
  PHASE("neighbor_allgatherv", Neighbor_allgatherv(a, SOME, MPI_INT, b, two, at, MPI_INT, ring));
  PHASE("neighbor_alltoall", Neighbor_alltoall(a, SOME, MPI_INT, b, SOME, MPI_INT, ring));
  PHASE("neighbor_alltoallv", Neighbor_alltoallv(a, two, at, MPI_INT, b, two, at, MPI_INT, ring));
  PHASE("neighbor_alltoallw", Neighbor_alltoallw(a, two, sides, types, b, two, sides, types, ring));
  PHASE("neighbor_graph", Neighbor_alltoall(a, SOME, MPI_INT, b, SOME, MPI_INT, graph));
  if (is("neighbor_ialltoallw"))
    return wait_for(MPI_Ineighbor_alltoallw(a, two, sides, types, b, two, sides, types, ring, &r), &r);
  return NOT_HERE;
}

/* Makes the persistent collective of the phase. An MPI 3 library has none. */
static int make_persistent(MPI_Comm comm) {
#if MPI_VERSION >= 4
  PHASE("persistent_barrier", Barrier_init(comm, MPI_INFO_NULL, &persistent));
  PHASE("persistent_init", Barrier_init(comm, MPI_INFO_NULL, &persistent));
  PHASE("persistent_allreduce", Allreduce_init(a, b, SOME, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &persistent));
  PHASE("persistent_gatherv",
        Gatherv_init(a, counts[me], MPI_INT, b, counts, displs, MPI_INT, 0, comm, MPI_INFO_NULL, &persistent));
  PHASE("persistent_alltoallw",
        Alltoallw_init(a, pairs, offsets, types, b, pairs, offsets, types, comm, MPI_INFO_NULL, &persistent));
  PHASE("persistent_neighbor",
        Neighbor_alltoall_init(a, SOME, MPI_INT, b, SOME, MPI_INT, ring, MPI_INFO_NULL, &persistent));
#endif
  failed(__FILE__, __LINE__, "no phase %s", phase);
  (void)comm;
  return NOT_HERE;
}

static int start_persistent(MPI_Comm comm) {
  int rc;
  if (!begins("persistent")) return NOT_HERE;
  if (is("persistent_init")) { /* each round makes a new collective */
    MPI_Request_free(&persistent);
    if ((rc = make_persistent(comm))) return rc;
  }
  return wait_for(MPI_Start(&persistent), &persistent);
}

/* Sends two parts to the right neighbour and receives two from the left one. */
static int partitioned(void) {
  int rc = NOT_HERE;
#if MPI_VERSION >= 4
  if (!is("ring_partitioned")) return NOT_HERE;
  if ((rc = MPI_Startall(2, parts)) || (rc = MPI_Pready_range(0, 1, parts[0]))) return rc;
  rc = MPI_Wait(&parts[1], MPI_STATUS_IGNORE);
  int rc2 = MPI_Wait(&parts[0], MPI_STATUS_IGNORE);
  rc = rc ? rc : rc2;
#endif
  return rc;
}

/* Puts to the right neighbour in an epoch of this pair only, or in one of all processes. */
static int epochs(void) {
  MPI_Group all, group;
  MPI_Request request;
  int rc, rank, over = 0;
  if (is("flush")) {
    rc = MPI_Put(a, SOME, MPI_INT, right(), 0, SOME, MPI_INT, win);
    return rc ? rc : MPI_Win_flush(right(), win);
  }
  if (is("rput")) return wait_for(MPI_Rput(a, SOME, MPI_INT, right(), 0, SOME, MPI_INT, win, &request), &request);
  if (!begins("pscw")) return NOT_HERE;
  MPI_Win_get_group(win, &all);
  rank = left(), MPI_Group_incl(all, 1, &rank, &group);
  rc = MPI_Win_post(group, 0, win);
  MPI_Group_free(&group);
  rank = right(), MPI_Group_incl(all, 1, &rank, &group);
  if (!rc) rc = MPI_Win_start(group, 0, win);
  MPI_Group_free(&group), MPI_Group_free(&all);
  if (!rc) rc = MPI_Put(a, SOME, MPI_INT, rank, 0, SOME, MPI_INT, win);
  if (!rc) rc = MPI_Win_complete(win);
  if (!is("pscw_test")) return rc ? rc : MPI_Win_wait(win);
  while (!rc && !over) rc = MPI_Win_test(win, &over);
  return rc;
}

static int raised; /* how often the file's error handler was called */

static void count_errors(MPI_File *f, int *rc, ...) { (void)f, (void)rc, raised++; }

/* Opens a file that is deleted when it is closed. All processes are on one machine. */
static int open_file(MPI_Comm comm, MPI_File *out) {
  char path[256];
  MPI_Info info;
  snprintf(path, sizeof path, "/tmp/lost_phase-%s", getenv("ZIPPER_JOB"));
  MPI_Info_create(&info);
  MPI_Info_set(info, "zipper_shared", "true");
  int rc = MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info, out);
  MPI_Info_free(&info);
  return rc;
}

static int files(void) {
  MPI_Status s;
  MPI_Offset at = me * SOME * (MPI_Offset)sizeof *a;
  PHASE("file_write_at", File_write_at_all(file, at, a, SOME, MPI_INT, &s));
  PHASE("file_read_at", File_read_at_all(file, at, b, SOME, MPI_INT, &s));
  PHASE("file_ordered", File_write_ordered(file, a, SOME, MPI_INT, &s));
  PHASE("file_seek_shared", File_seek_shared(file, 0, MPI_SEEK_SET));
  PHASE("file_view", File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  PHASE("file_size", File_set_size(file, SOME));
  PHASE("file_preallocate", File_preallocate(file, SOME));
  PHASE("file_atomicity", File_set_atomicity(file, 0));
  PHASE("file_sync", File_sync(file));
  if (is("file_split")) {
    int rc = MPI_File_write_at_all_begin(file, at, a, SOME, MPI_INT);
    return rc ? rc : MPI_File_write_at_all_end(file, a, &s);
  }
  return NOT_HERE;
}

/* Makes an intercommunicator of groups, of which one has all processes that are lost and one has
 * none. MPI has this function since version 4. */
static int from_groups(MPI_Group all, MPI_Comm *made) {
#if MPI_VERSION >= 4
  MPI_Group one, rest, mine, others;
  int rank = 1;
  MPI_Group_incl(all, 1, &rank, &one);
  MPI_Group_excl(all, 1, &rank, &rest);
  mine = me == rank ? one : rest, others = me == rank ? rest : one;
  int rc = MPI_Intercomm_create_from_groups(mine, 0, others, 0, "lost", MPI_INFO_NULL, MPI_ERRORS_RETURN, made);
  MPI_Group_free(&one), MPI_Group_free(&rest);
  return rc;
#endif
  (void)all, (void)made;
  return NOT_HERE;
}

/* Makes the object of the phase, and frees it. */
static int objects(MPI_Comm comm) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Win window = MPI_WIN_NULL;
  MPI_File opened = MPI_FILE_NULL;
  MPI_Group group;
  void *memory;
  int rc = NOT_HERE, one = 1, l = left(), r = right(), rows[] = {0, 1};
  MPI_Comm_group(comm, &group);
  if (is("dup")) rc = MPI_Comm_dup(comm, &made);
  if (is("split")) rc = MPI_Comm_split(comm, 0, -me, &made);
  if (is("split_type")) rc = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, me, MPI_INFO_NULL, &made);
  if (is("create")) rc = MPI_Comm_create(comm, group, &made);
  if (is("create_group")) rc = MPI_Comm_create_group(comm, group, 3, &made);
  if (is("cart")) rc = MPI_Cart_create(comm, 1, &np, &one, 0, &made);
  if (is("cart_sub")) rc = MPI_Cart_sub(grid, rows, &made);
  if (is("graph")) rc = MPI_Dist_graph_create_adjacent(comm, 1, &l, &one, 1, &r, &one, MPI_INFO_NULL, 0, &made);
  if (is("intercomm_create")) rc = MPI_Intercomm_create(half, 0, comm, 1 - me % 2, 5, &made);
  if (is("connect") && me % 2) rc = MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &made);
  if (is("connect") && me % 2 == 0) rc = MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &made);
  if (is("from_groups")) rc = from_groups(group, &made);
  if (is("intercomm_merge")) rc = MPI_Intercomm_merge(halves, me % 2, &made);
  if (is("win_create")) rc = MPI_Win_create(b, SOME * sizeof *b, sizeof *b, MPI_INFO_NULL, comm, &window);
  if (is("win_allocate")) rc = MPI_Win_allocate(SOME, 1, MPI_INFO_NULL, comm, &memory, &window);
  if (is("file_open")) rc = open_file(comm, &opened);
  MPI_Group_free(&group);
  if (made != MPI_COMM_NULL) MPI_Comm_free(&made);
  if (window != MPI_WIN_NULL) MPI_Win_free(&window);
  if (opened != MPI_FILE_NULL) MPI_File_close(&opened);
  return rc;
}

/* Makes what the phase needs, before a cluster is lost. */
static void prepare(MPI_Comm comm) {
  int l = left(), r = right(), one = 1;
  a = calloc(MANY * MOST, sizeof *a), b = calloc(MANY * MOST, sizeof *b);
  for (int i = 0, at = 0; i < np; i++) {
    counts[i] = SOME + i, displs[i] = at, at += counts[i];
    pairs[i] = SOME + me + i, places[i] = i * 2 * SOME, offsets[i] = places[i] * (int)sizeof(int);
    types[i] = MPI_INT;
  }
  if (begins("neighbor") || begins("persistent")) {
    CLASS(MPI_Cart_create(comm, 1, &np, &one, 0, &ring), MPI_SUCCESS);
    CLASS(MPI_Dist_graph_create_adjacent(comm, 1, &l, &one, 1, &r, &one, MPI_INFO_NULL, 0, &graph), MPI_SUCCESS);
  }
  if (begins("persistent")) CLASS(make_persistent(comm), MPI_SUCCESS);
#if MPI_VERSION >= 4
  if (is("ring_partitioned")) {
    CLASS(MPI_Psend_init(a, 2, SOME, MPI_INT, r, 1, comm, MPI_INFO_NULL, &parts[0]), MPI_SUCCESS);
    CLASS(MPI_Precv_init(b, 2, SOME, MPI_INT, l, 1, comm, MPI_INFO_NULL, &parts[1]), MPI_SUCCESS);
  }
#endif
  if (begins("file")) {
    MPI_Errhandler counter;
    CLASS(open_file(comm, &file), MPI_SUCCESS);
    MPI_File_create_errhandler(count_errors, &counter);
    MPI_File_set_errhandler(file, counter);
    MPI_Errhandler_free(&counter);
  }
  if (is("connect") && me == 0) CLASS(MPI_Open_port(MPI_INFO_NULL, port), MPI_SUCCESS);
  if (is("connect")) CLASS(MPI_Bcast(port, 256, MPI_CHAR, 0, comm), MPI_SUCCESS); /* MPICH has no longer ones */
  if (is("cart_sub")) {
    int sizes[] = {np % 2 ? np : np / 2, np % 2 ? 1 : 2}, none[2] = {0};
    CLASS(MPI_Cart_create(comm, 2, sizes, none, 0, &grid), MPI_SUCCESS);
  }
  if (begins("intercomm") || is("connect")) CLASS(MPI_Comm_split(comm, me % 2, me, &half), MPI_SUCCESS);
  if (begins("intercomm")) {
    CLASS(MPI_Intercomm_create(half, 0, comm, 1 - me % 2, 5, &halves), MPI_SUCCESS);
  }
}

/* Frees what prepare has made, after the loss. */
static void tidy(void) {
  if (persistent != MPI_REQUEST_NULL) CLASS(MPI_Request_free(&persistent), MPI_SUCCESS);
  for (int i = 0; i < 2 && is("ring_partitioned"); i++) CLASS(MPI_Request_free(&parts[i]), MPI_SUCCESS);
  if (file != MPI_FILE_NULL) CLASS(MPI_File_close(&file), MPI_SUCCESS);
  if (ring != MPI_COMM_NULL) CLASS(MPI_Comm_free(&ring), MPI_SUCCESS);
  if (graph != MPI_COMM_NULL) CLASS(MPI_Comm_free(&graph), MPI_SUCCESS);
  if (grid != MPI_COMM_NULL) CLASS(MPI_Comm_free(&grid), MPI_SUCCESS);
  if (halves != MPI_COMM_NULL) CLASS(MPI_Comm_free(&halves), MPI_SUCCESS);
  if (half != MPI_COMM_NULL) CLASS(MPI_Comm_free(&half), MPI_SUCCESS);
}
#endif
