/* Waits of all ranks that are long and no standstill: `longwaits KIND`.
 *
 *   messages   each rank of an odd number waits for the last of MANY messages that are slow to come,
 *              and the others wait for its answer
 *   threads    in each rank one thread waits in a receive while another one computes
 *   spawn      rank 0 waits for a process that it has started, all others for rank 0
 *   accept     rank 0 waits for a job of `longwaits connect`, all others for rank 0 */
#include "check.h"
#include "port.h"
#include <pthread.h>

enum { LONG = 8 /* seconds */, MANY = 16 };

static void messages(void) {
  MPI_Request r[MANY];
  int x[MANY], other = me ^ 1;
  for (int i = 0; i < MANY && me % 2 == 0; i++) MPI_Send(&i, 1, MPI_INT, other, i, MPI_COMM_WORLD);
  if (me % 2 == 0) MPI_Recv(x, 0, MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  else {
    for (int i = 0; i < MANY; i++) MPI_Irecv(&x[i], 1, MPI_INT, other, MANY - 1 - i, MPI_COMM_WORLD, &r[i]);
    MPI_Waitall(MANY, r, MPI_STATUSES_IGNORE); /* completes only once the last message has arrived */
    for (int i = 0; i < MANY; i++) SAME(x[i], MANY - 1 - i, "message");
    MPI_Send(x, 0, MPI_INT, other, 0, MPI_COMM_WORLD);
  }
}

static void *serve(void *none) {
  MPI_Recv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return none;
}

static void threads(void) {
  pthread_t t;
  pthread_create(&t, NULL, serve, NULL);
  sleep(LONG);
  MPI_Send(NULL, 0, MPI_INT, (me + 1) % np, 7, MPI_COMM_WORLD);
  pthread_join(t, NULL);
}

static void answer(MPI_Comm inter) {
  sleep(LONG);
  MPI_Send(NULL, 0, MPI_INT, 0, 0, inter);
  MPI_Comm_disconnect(&inter);
}

static void hear(MPI_Comm inter) {
  MPI_Recv(NULL, 0, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE);
  MPI_Comm_disconnect(&inter);
}

int main(int argc, char **argv) {
  MPI_Comm inter;
  int level;
  const char *kind = argc > 1 ? argv[1] : "";
  MPI_Init_thread(&argc, &argv, strcmp(kind, "threads") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &me), MPI_Comm_size(MPI_COMM_WORLD, &np);
  if (!strcmp(kind, "messages")) messages();
  else if (!strcmp(kind, "threads")) {
    if (level == MPI_THREAD_MULTIPLE) threads();
  } else if (!strcmp(kind, "child")) {
    MPI_Comm_get_parent(&inter);
    answer(inter);
  } else if (me) {
    MPI_Barrier(MPI_COMM_WORLD);
  } else {
    if (!strcmp(kind, "spawn")) {
      char *arguments[] = {"child", NULL};
      MPI_Comm_spawn(argv[0], arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE);
      hear(inter);
    } else if (!strcmp(kind, "accept")) {
      tell_port(argv[2]);
      connect_jobs(1, MPI_COMM_SELF, &inter);
      hear(inter);
      forget_port(argv[2]);
    } else {
      find_port(argv[2]);
      connect_jobs(0, MPI_COMM_SELF, &inter);
      answer(inter);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (!strcmp(kind, "child")) {
    MPI_Finalize();
    return 0;
  }
  return finish();
}
