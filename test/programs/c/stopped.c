/* stopped [stop]: the ranks of the first half send COUNT messages of BYTES each to their partners
 * in the second half, whose receives are posted. With "stop" the partners stop themselves once all
 * of them have learned that all messages are in flight, until they are continued (SIGCONT). */
#include "check.h"
#include <signal.h>

enum { COUNT = 32, BYTES = 1 << 20, GO = COUNT };

int main(int argc, char **argv) {
  start(&argc, &argv);
  int half = np / 2, sends = me < half, partner = sends ? me + half : me - half;
  char *data[COUNT], go = 0;
  MPI_Comm halves;
  MPI_Request q[COUNT];
  for (int i = 0; i < COUNT; i++) {
    data[i] = malloc(BYTES);
    if (sends) fill(data[i], BYTES, (uint64_t)(me * COUNT + i));
    else MPI_Irecv(data[i], BYTES, MPI_CHAR, partner, i, MPI_COMM_WORLD, &q[i]);
  }
  MPI_Comm_split(MPI_COMM_WORLD, sends, me, &halves);
  MPI_Barrier(MPI_COMM_WORLD);
  if (sends) {
    for (int i = 0; i < COUNT; i++) MPI_Isend(data[i], BYTES, MPI_CHAR, partner, i, MPI_COMM_WORLD, &q[i]);
    MPI_Send(&go, 1, MPI_CHAR, partner, GO, MPI_COMM_WORLD);
  } else {
    MPI_Recv(&go, 1, MPI_CHAR, partner, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(halves); /* a rank that stops sooner may keep the others from learning it */
    if (argc > 1 && !strcmp(argv[1], "stop")) raise(SIGSTOP);
  }
  MPI_Waitall(COUNT, q, MPI_STATUSES_IGNORE);
  for (int i = 0; i < COUNT; i++) {
    if (!sends) {
      CHECK(filled(data[i], BYTES, (uint64_t)(partner * COUNT + i)), "message %d", i);
      line("message %d: %016llx", i, (unsigned long long)digest(0, data[i], BYTES));
    }
    free(data[i]);
  }
  MPI_Comm_free(&halves);
  return finish();
}
