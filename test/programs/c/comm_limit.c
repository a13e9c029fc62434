/* Communicators until there are no more, of several kinds: all ranks get the same answer, and when
 * some are freed there are some again.
 *
 *   comm_limit [at most [forgiving]]
 *
 * forgiving: an error handler turns each error into MPI_SUCCESS, which leaves MPI_COMM_NULL.
 */
#include "check.h"

enum { MOST = 100000, KINDS = 6 };
static MPI_Comm all[MOST], half;
static MPI_Group everybody;
static int forgiven;

static void forgive(MPI_Comm *comm, int *code, ...) {
  (void)comm, forgiven++;
  *code = MPI_SUCCESS;
}

static int call(int i, MPI_Comm *out) {
  MPI_Request r;
  switch (i % KINDS) {
  case 0: return MPI_Comm_dup(MPI_COMM_WORLD, out);
  case 1: return MPI_Comm_split(MPI_COMM_WORLD, 0, me, out);
  case 2: return MPI_Comm_create_group(MPI_COMM_WORLD, everybody, i % 8, out);
  case 3: return MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, me < np / 2 ? np / 2 : 0, 7, out);
  case 4: return MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, me, MPI_INFO_NULL, out);
  }
  int rc = MPI_Comm_idup(MPI_COMM_WORLD, out, &r), late = rc ? rc : MPI_Wait(&r, MPI_STATUS_IGNORE);
  return late;
}

static int make(int i, MPI_Comm *out) {
  *out = MPI_COMM_NULL;
  int rc = call(i, out);
  return rc || *out != MPI_COMM_NULL ? rc : MPI_ERR_OTHER;
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  int n = 0, most = argc > 1 ? atoi(argv[1]) : 3000, rc = MPI_SUCCESS, got[2], least[2];
  MPI_Errhandler handler = MPI_ERRORS_RETURN;
  int forgiving = argc > 2 && !strcmp(argv[2], "forgiving");
  if (forgiving) MPI_Comm_create_errhandler(forgive, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
  MPI_Comm_split(MPI_COMM_WORLD, me < np / 2, me, &half);
  MPI_Comm_set_errhandler(half, handler);
  MPI_Comm_group(MPI_COMM_WORLD, &everybody);
  double t = MPI_Wtime();
  while (n < most && !(rc = make(n, &all[n]))) n++;
  double made = MPI_Wtime() - t;
  got[0] = n, got[1] = -n;
  MPI_Allreduce(got, least, 2, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  SAME(least[0], -least[1], "the least and the greatest number of communicators");
  SAME(least[0], n, "communicators here");
  /* several rounds, so that no rank is a communicator ahead */
  for (int round = 0; round < KINDS && n < most; round++) {
    MPI_Comm c;
    CHECK(make(round, &c) != MPI_SUCCESS, "one more, of kind %d", round);
  }
  if (n < most) {
    MPI_Win win = MPI_WIN_NULL;
    CHECK(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win) || win == MPI_WIN_NULL, "a window");
  }
  SAME(forgiven > 0, forgiving && n < most, "a call of the handler");
  int sum = -1, k = n > 2 ? (n - 2) / KINDS * KINDS : 0; /* a duplicate */
  MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, all[k]);
  SAME(sum, np * (np - 1) / 2, "sum on one of the last");
  t = MPI_Wtime();
  for (int i = 0; i < n; i++) MPI_Comm_free(&all[i]);
  if (me == 0) fprintf(stderr, "%d communicators: made in %.3f s, freed in %.3f s\n", n, made, MPI_Wtime() - t);
  for (int i = 0; i < KINDS; i++) {
    MPI_Comm c;
    SAME(make(i, &c), MPI_SUCCESS, "another one when all are freed");
    if (i < 3) {
      MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, c);
      SAME(sum, np * (np - 1) / 2, "sum");
    }
    MPI_Comm_free(&c);
  }
  MPI_Group_free(&everybody);
  MPI_Comm_free(&half);
  line("done");
  return finish();
}
