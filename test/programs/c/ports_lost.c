/* Two jobs are connected, and one is lost: the other's operations over the connection, those in
 * progress and later ones, fail with an error; its own communicators still work.
 *
 *   ports_lost accept|connect FILE */
#include "check.h"
#include "port.h"

static void say(const char *what, int code) {
  char text[MPI_MAX_ERROR_STRING];
  int n;
  MPI_Error_string(code, text, &n);
  CHECK(code != MPI_SUCCESS, "%s", what);
  if (me == 0) printf("lost: %s: %s\n", what, text), fflush(stdout);
}

int main(int argc, char **argv) {
  MPI_Comm inter, dup;
  start(&argc, &argv);
  if (argc < 3) MPI_Abort(MPI_COMM_WORLD, 2);
  int accepts = !strcmp(argv[1], "accept");
  if (me == 0) {
    if (accepts) tell_port(argv[2]);
    else find_port(argv[2]);
  }
  connect_jobs(accepts, MPI_COMM_WORLD, &inter);
  MPI_Comm_dup(inter, &dup);
  MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN);
  MPI_Barrier(inter);
  if (!accepts) {
    if (me == 0) puts("connected"), fflush(stdout);
    for (;;) pause();
  }
  int x = 0, y = 0;
  MPI_Request request, other;
  MPI_Status status;
  MPI_Irecv(&y, 1, MPI_INT, MPI_ANY_SOURCE, 2, dup, &other);
  MPI_Irecv(&x, 1, MPI_INT, me, 1, inter, &request);
  say("receive", MPI_Wait(&request, &status));
  say("receive from anybody", MPI_Wait(&other, MPI_STATUS_IGNORE));
  char *big = calloc(1, 4 << 20);
  say("send", MPI_Send(big, 4 << 20, MPI_CHAR, me, 3, inter));
  say("barrier", MPI_Barrier(dup));
  say("probe", MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, inter, &status));
  int sum = 0, one = 1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  SAME(sum, np, "the job's own sum");
  MPI_Comm_disconnect(&dup);
  MPI_Comm_disconnect(&inter);
  MPI_Barrier(MPI_COMM_WORLD);
  free(big);
  return finish();
}
