/* Bad luck on demand, for the tests of launching and ending.
 *
 *   badluck finish           a barrier, then the normal end
 *   badluck exit N RANK      rank RANK exits with N without MPI_Finalize, the others wait for ever
 *   badluck abort N RANK     rank RANK calls MPI_Abort(N), the others wait for ever
 *   badluck kill N RANK      rank RANK sends itself signal N
 *   badluck wait             all wait for a message that never comes
 *   badluck stdin            rank 0 prints its input after the number of bytes of it that every other rank could read
 *   badluck noinit           never calls MPI_Init
 *   badluck ring SECONDS     a counter goes round all ranks for so long
 *   badluck handler          rank 0's error handler calls MPI_Abort
 *   badluck lines            all write long lines in pieces, at the same time
 *   badluck stopped RANK     ranks other than RANK and 0 exchange messages; rank 0 sends RANK 64 MiB nonblocking first
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static void wait_for_ever(void) {
  int never;
  printf("waiting %d\n", rank);
  fflush(stdout);
  MPI_Recv(&never, 1, MPI_INT, (rank + 1) % size, 4711, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  printf("got what was never sent\n");
}

static void standard_input(void) {
  char line[1000];
  int bytes = 0, others = 0;
  if (rank != 0)
    while (fgets(line, sizeof line, stdin)) bytes += (int)strlen(line);
  MPI_Reduce(&bytes, &others, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("others read %d bytes\n", others);
    while (fgets(line, sizeof line, stdin)) fputs(line, stdout);
  }
}

static void ring(int seconds) {
  const double end = MPI_Wtime() + seconds;
  printf("waiting %d\n", rank);
  fflush(stdout);
  for (long count = 0, next = 0; next >= 0; count++) { /* a negative number: this is the last round */
    if (rank == 0) {
      next = MPI_Wtime() < end ? count * size : -1;
      MPI_Send(&next, 1, MPI_LONG, 1, 0, MPI_COMM_WORLD);
    }
    MPI_Recv(&next, 1, MPI_LONG, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank != 0) {
      long on = next < 0 ? next : next + 1;
      MPI_Send(&on, 1, MPI_LONG, (rank + 1) % size, 0, MPI_COMM_WORLD);
    } else if (next >= 0 && next != count * size + size - 1) {
      printf("round %ld came back as %ld\n", count, next);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  if (rank == 0) printf("the ring was never broken\n");
}

/* Prints lines: line i of rank r is a number of times the letter of r, and i. Open MPI's launcher
 * reads it in pieces of 4 KiB. */
static void lines(void) {
  static char line[20000];
  setvbuf(stdout, NULL, _IOFBF, 3000);
  for (int i = 0; i < 100; i++) {
    int letters = i % 2 ? i : 150 * i + 1;
    memset(line, 'a' + rank, (size_t)letters);
    line[letters] = 0;
    printf("%s %d %d\n", line, letters, i);
  }
  fflush(stdout);
}

/* Stops a rank (SIGSTOP), which must not keep the others from exchanging messages over the same
 * zipper. */
static void stopped(int victim) {
  int first = -1, last = -1, value = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == victim) {
    for (int r = 1; r < size; r++) MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    /* No other rank is in the barrier any more, where it could need this process. The test
     * continues the process, which then receives the messages that have been sent meanwhile. */
    raise(SIGSTOP);
  } else {
    MPI_Send(&value, 1, MPI_INT, victim, 6, MPI_COMM_WORLD);
  }
  for (int r = 0; r < size; r++)
    if (r != victim && r != 0) {
      if (first < 0) first = r;
      last = r;
    }
  if (rank == 0 || rank == victim) {
    const int bytes = 64 << 20;
    char *buf = calloc(1, (size_t)bytes);
    MPI_Request q;
    if (rank == 0) {
      MPI_Isend(buf, bytes, MPI_CHAR, victim, 1, MPI_COMM_WORLD, &q);
      for (int i = 0; i < 1000; i++) { /* small messages too: credit must bound the memory of the forwarder */
        MPI_Request s;
        MPI_Isend(&i, 1, MPI_INT, victim, 2, MPI_COMM_WORLD, &s);
        MPI_Request_free(&s);
      }
      MPI_Recv(&value, 1, MPI_INT, last, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      printf("the others went on\n");
      fflush(stdout);
    } else {
      MPI_Irecv(buf, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &q);
    }
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    if (rank == victim)
      for (int i = 0; i < 1000; i++) {
        MPI_Recv(&value, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (value != i) printf("message %d says %d\n", i, value);
      }
    free(buf);
    return;
  }
  /* between the first and the last of the other ranks, which are in different clusters */
  for (int i = 0; i < 200; i++) {
    if (rank == first) {
      MPI_Send(&i, 1, MPI_INT, last, 4, MPI_COMM_WORLD);
      MPI_Recv(&value, 1, MPI_INT, last, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == last) {
      MPI_Recv(&value, 1, MPI_INT, first, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(&value, 1, MPI_INT, first, 5, MPI_COMM_WORLD);
    }
  }
  if (rank == last) MPI_Send(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
}

/* An error handler of the program's that ends the job, for an error that native MPI finds while the
 * engine calls it: a message from rank 1 that is too long for rank 0's receive from
 * MPI_ANY_SOURCE. */
static void ends(MPI_Comm *comm, int *code, ...) {
  (void)code;
  MPI_Abort(*comm, 43);
}

static void handler(void) {
  char buf[16] = "";
  MPI_Errhandler h;
  MPI_Request r;
  MPI_Comm_create_errhandler(ends, &h);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, h);
  if (rank == 0) MPI_Irecv(buf, 4, MPI_CHAR, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &r);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) MPI_Wait(&r, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(buf, 16, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
  wait_for_ever();
}

/* Neither static nor inlined, so that its name is in a backtrace. */
__attribute__((noinline)) void crash(void) { *(volatile int *)8 = 1; }

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "finish";
  int n = argc > 2 ? atoi(argv[2]) : 0, victim = argc > 3 ? atoi(argv[3]) : 0;
  if (!strcmp(what, "noinit")) {
    printf("no MPI here\n");
    return 0;
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (!strcmp(what, "finish")) {
    MPI_Barrier(MPI_COMM_WORLD);
    printf("finished %d of %d\n", rank, size);
  } else if (!strcmp(what, "stdin")) {
    standard_input();
  } else if (!strcmp(what, "ring")) {
    ring(n);
  } else if (!strcmp(what, "lines")) {
    lines();
  } else if (!strcmp(what, "handler")) {
    handler();
  } else if (!strcmp(what, "stopped")) {
    stopped(n);
  } else {
    if (rank == victim && strcmp(what, "wait")) {
      if (!strcmp(what, "exit")) exit(n);
      if (!strcmp(what, "abort")) MPI_Abort(MPI_COMM_WORLD, n);
      if (!strcmp(what, "kill")) raise(n);
      if (!strcmp(what, "crash")) crash();
      fprintf(stderr, "badluck: what is %s?\n", what);
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
    wait_for_ever();
  }
  MPI_Finalize();
  return 0;
}
