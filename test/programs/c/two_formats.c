/* Clusters whose formats of long double differ (x87 extended and binary128). MMPI refuses Fortran
 * types of more than double precision, "native" views of files that both write, and MPI_Allreduce
 * between groups; related calls work. In a job of one format all calls work. The second half of the
 * ranks is one group of the intercommunicator. */
#include "check.h"
#include <float.h>

enum { N = 6 };

static int differ; /* 1 if the formats of the ranks differ */

/* Checks that a call returned MPI_SUCCESS, or the error class if the formats differ. */
static void expect(int rc, int class, const char *what) {
  int got = MPI_SUCCESS;
  if (rc) MPI_Error_class(rc, &got);
  SAME(got, differ ? class : MPI_SUCCESS, what);
}

/* Sends elements of a type to the rank whose format differs from this one's; returns the error
 * code. If it is refused, nothing is sent. */
static int send(MPI_Datatype type, int to) { return MPI_Send((char[64 *N]){0}, N, type, to, 1, MPI_COMM_WORLD); }

/* `other` is a rank whose format differs. */
static void fortran_types(int other) {
  MPI_Datatype type, pair;
  MPI_Request q;
  char in[64 * N];
  SAME(MPI_Type_create_f90_real(15, 307, &type), MPI_SUCCESS, "REAL of double precision");
  MPI_Irecv(in, N, type, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &q);
  SAME(send(type, (me + 1) % np), MPI_SUCCESS, "a message of double precision");
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  /* some libraries have no such type, and then nothing can be sent with it */
  if (!differ || MPI_Type_create_f90_real(18, 4931, &type)) return;
  MPI_Type_contiguous(2, type, &pair);
  MPI_Type_commit(&pair);
  expect(send(type, other), MPI_ERR_TYPE, "a message of more than double precision");
  expect(MPI_Bcast(in, N, pair, 0, MPI_COMM_WORLD), MPI_ERR_TYPE, "a broadcast of pairs of these");
  MPI_Type_free(&pair);
}

/* The file's name leads to one file in all clusters, below their working directories. */
static void views(const char *name) {
  MPI_File file;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "zipper_shared", "true");
  SAME(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file), MPI_SUCCESS,
       "opening to write");
  expect(MPI_File_set_view(file, 0, MPI_LONG_DOUBLE, MPI_LONG_DOUBLE, "native", MPI_INFO_NULL),
         MPI_ERR_UNSUPPORTED_DATAREP, "a native view of long doubles to write");
  SAME(MPI_File_set_view(file, 0, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL), MPI_SUCCESS, "a view of doubles");
  double x = 1.5 + me, all[64];
  SAME(MPI_File_write_at_all(file, me, &x, 1, MPI_DOUBLE, MPI_STATUS_IGNORE), MPI_SUCCESS, "writing doubles");
  MPI_File_sync(file);
  MPI_Barrier(MPI_COMM_WORLD);
  SAME(MPI_File_read_at_all(file, 0, all, np, MPI_DOUBLE, MPI_STATUS_IGNORE), MPI_SUCCESS, "reading doubles");
  for (int i = 0; i < np; i++) CHECK(all[i] == 1.5 + i, "double %d is %g", i, all[i]);
  MPI_File_close(&file);
  SAME(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, info, &file), MPI_SUCCESS, "opening to read");
  SAME(MPI_File_set_view(file, 0, MPI_LONG_DOUBLE, MPI_LONG_DOUBLE, "native", MPI_INFO_NULL), MPI_SUCCESS,
       "a native view of long doubles to read");
  MPI_File_close(&file);
  MPI_Info_free(&info);
}

/* Returns operand i of a rank, which is exact in both formats, as are sums of these. */
static long double operand(int rank, int i) { return (1000 * rank + i + 1) * 0x1p-3000L; }

static void groups(void) {
  MPI_Comm half, both;
  MPI_Request q;
  int second = me >= np / 2, first_other = second ? 0 : np / 2, others = second ? np / 2 : np - np / 2;
  int n = (np / 2) * (np - np / 2), rank, counts[64];
  long double x[1024], y[1024];
  MPI_Comm_split(MPI_COMM_WORLD, second, me, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, first_other, 2, &both);
  MPI_Comm_set_errhandler(both, MPI_ERRORS_RETURN);
  MPI_Comm_rank(half, &rank);
  for (int i = 0; i < n; i++) x[i] = operand(me, i);
#define SUM(i) (others * operand(first_other, i) + 1000 * 0x1p-3000L * (others * (others - 1) / 2))
  for (int to = 0; to < 2; to++) {
    int root = to != second ? 0 : rank ? MPI_PROC_NULL : MPI_ROOT;
    memset(y, 0, sizeof y);
    SAME(MPI_Reduce(x, y, n, MPI_LONG_DOUBLE, MPI_SUM, root, both), MPI_SUCCESS, "MPI_Reduce between groups");
    for (int i = 0; i < n && root == MPI_ROOT; i++) CHECK(y[i] == SUM(i), "sum %d is %La", i, y[i]);
    memset(y, 0, sizeof y);
    SAME(MPI_Ireduce(x, y, n, MPI_LONG_DOUBLE, MPI_SUM, root, both, &q), MPI_SUCCESS, "MPI_Ireduce between groups");
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    for (int i = 0; i < n && root == MPI_ROOT; i++) CHECK(y[i] == SUM(i), "nonblocking sum %d is %La", i, y[i]);
  }
  int mine = np - others, part = n / mine;
  for (int i = 0; i < mine; i++) counts[i] = part;
  SAME(MPI_Reduce_scatter(x, y, counts, MPI_LONG_DOUBLE, MPI_SUM, both), MPI_SUCCESS, "MPI_Reduce_scatter");
  for (int i = 0; i < part; i++) CHECK(y[i] == SUM(rank * part + i), "part %d of a sum is %La", i, y[i]);
  expect(MPI_Allreduce(x, y, n, MPI_LONG_DOUBLE, MPI_SUM, both), MPI_ERR_UNSUPPORTED_OPERATION,
         "MPI_Allreduce of long doubles between groups");
  double d = me + 1, sum = 0, want = others * (first_other + 1) + others * (others - 1) / 2;
  SAME(MPI_Allreduce(&d, &sum, 1, MPI_DOUBLE, MPI_SUM, both), MPI_SUCCESS, "MPI_Allreduce of doubles between groups");
  CHECK(sum == want, "the sum is %g", sum);
  MPI_Comm_free(&both);
  MPI_Comm_free(&half);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int bits = LDBL_MANT_DIG, all[64], other = 0;
  MPI_Allgather(&bits, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < np; i++)
    if (all[i] != bits) differ = 1, other = i;
  fortran_types(other);
  groups();
  if (argc > 1) views(argv[1]);
  line("all is refused or works as documented");
  return finish();
}
