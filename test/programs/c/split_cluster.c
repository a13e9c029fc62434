/* A communicator of the process's own cluster by MPI 4's resource types, as in
 * docs/howto/rank-order.md. Natively the value is unknown and the result is MPI_COMM_NULL: all
 * ranks are one cluster. The output does not depend on that; with "clusters N" as arguments there
 * must be N clusters. An MPI 3 library lacks these types, and the program uses Open MPI's. */
#include "check.h"

static MPI_Comm mine(MPI_Comm from, int type, const char *key, const char *value) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, key, value);
  SAME(MPI_Comm_split_type(from, type, me, info, &made), MPI_SUCCESS, "Comm_split_type");
  MPI_Info_free(&info);
  return made;
}

#if MPI_VERSION >= 4
#define BY_CLUSTER MPI_COMM_TYPE_HW_GUIDED
#else
#define BY_CLUSTER OMPI_COMM_TYPE_CLUSTER
#endif

/* Returns the sum of all ranks by two levels, and the number of clusters. */
static int levels(MPI_Comm from, int *clusters) {
  MPI_Comm cluster = mine(from, BY_CLUSTER, "mpi_hw_resource_type", "zipper://cluster"), leaders;
  if (cluster == MPI_COMM_NULL) MPI_Comm_dup(from, &cluster);
  int rank, x = me + 1, sum = 0, all = 0;
  MPI_Comm_rank(cluster, &rank);
  MPI_Reduce(&x, &sum, 1, MPI_INT, MPI_SUM, 0, cluster);
  MPI_Comm_split(from, rank ? MPI_UNDEFINED : 0, me, &leaders);
  *clusters = 0;
  if (!rank) {
    MPI_Comm_size(leaders, clusters);
    MPI_Allreduce(&sum, &all, 1, MPI_INT, MPI_SUM, leaders);
    MPI_Comm_free(&leaders);
  }
  MPI_Bcast(&all, 1, MPI_INT, 0, cluster);
  MPI_Bcast(clusters, 1, MPI_INT, 0, cluster);
  MPI_Comm_free(&cluster);
  return all;
}

/* Splits by process sets, if all libraries of the job have MPI 4.1's types for them. Natively Open
 * MPI 6.0.0rc2 finds none. */
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION > 0)
enum { SETS = 1 };
static void by_set(int clusters) {
  int size;
  MPI_Comm part = mine(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "mpi://SELF");
  CHECK(!clusters || part != MPI_COMM_NULL, "no communicator of mpi://SELF");
  if (part != MPI_COMM_NULL) {
    MPI_Comm_size(part, &size);
    SAME(size, 1, "processes of mpi://SELF");
    MPI_Comm_free(&part);
  }
  if (!clusters) return;
  part = mine(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "zipper://cluster/a");
  CHECK(me > 0 || part != MPI_COMM_NULL, "no communicator of the first cluster");
  if (part != MPI_COMM_NULL) MPI_Comm_free(&part);
}
#else
enum { SETS = 0 };
static void by_set(int clusters) { (void)clusters; }
#endif

int main(int argc, char **argv) {
  start(&argc, &argv);
  int want = argc > 2 ? atoi(argv[2]) : 1, clusters;
  MPI_Comm half;
  line("sum %d", levels(MPI_COMM_WORLD, &clusters));
  SAME(clusters, want, "clusters");
  MPI_Comm_split(MPI_COMM_WORLD, me % 2, 0, &half);
  line("sum of my half %d", levels(half, &clusters));
  CHECK(clusters >= 1 && clusters <= want, "%d clusters of a half", clusters);
  MPI_Comm_free(&half);

  /* A rank that passes MPI_UNDEFINED gets no communicator, and the others get theirs. Natively this
   * is tested with shared memory: with a value that it does not know Open MPI 6.0.0rc2 returns at
   * once, while a rank with MPI_UNDEFINED waits for all. */
  MPI_Comm part = mine(MPI_COMM_WORLD,
                       me == np - 1 ? MPI_UNDEFINED
                       : want > 1   ? BY_CLUSTER
                                    : MPI_COMM_TYPE_SHARED,
                       "mpi_hw_resource_type", "zipper://cluster");
  CHECK(me != np - 1 || part == MPI_COMM_NULL, "a communicator for MPI_UNDEFINED");
  CHECK(me == np - 1 || part != MPI_COMM_NULL, "no communicator");
  if (part != MPI_COMM_NULL) MPI_Comm_free(&part);

  /* The old type as well: ranks that share memory are in one cluster. */
  part = mine(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, "a_hint_of_nobody", "17");
  int size;
  MPI_Comm_size(part, &size);
  CHECK(want == 1 || size < np, "%d of %d share memory over %d clusters", size, np, want);
  MPI_Comm_free(&part);

  int sets = SETS, all = 0;
  MPI_Allreduce(&sets, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (all) by_set(want > 1);
  return finish();
}
