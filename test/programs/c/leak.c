/* Operations of every kind repeatedly: memory and file descriptors must not grow after the first
 * tenth. argv[1] is the total number of operations. Every rank checks itself. */
#include "check.h"
#include <dirent.h>
#include <unistd.h>

enum { SMALL = 16, LARGE = 40000, GROWTH_KB = 8192 };

static long resident_kb(void) {
  long pages = 0, resident = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  if (!f || fscanf(f, "%ld %ld", &pages, &resident) != 2) failed(__FILE__, __LINE__, "no statm");
  if (f) fclose(f);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static int descriptors(void) {
  int n = 0;
  DIR *d = opendir("/proc/self/fd");
  while (d && readdir(d)) n++;
  if (d) closedir(d);
  return n;
}

static double out[LARGE], in[LARGE];

/* Does one operation of each kind with the neighbours in a ring, and so with other clusters too.
 * Returns the number of operations. */
static int round_of(int turn, MPI_Comm c) {
  int to = (me + 1) % np, from = (me + np - 1) % np, n = turn % 16 == 0 ? LARGE : SMALL, flag, done = 0;
  MPI_Request r[4];
  MPI_Status s;
  MPI_Message m;
  MPI_Datatype gaps;
  MPI_Irecv(in, n, MPI_DOUBLE, from, 1, c, &r[0]);
  MPI_Send(out, n, MPI_DOUBLE, to, 1, c), done++;
  MPI_Wait(&r[0], &s);
  MPI_Irecv(in, n, MPI_DOUBLE, MPI_ANY_SOURCE, 2, c, &r[0]);
  MPI_Issend(out, n, MPI_DOUBLE, to, 2, c, &r[1]), done++;
  MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  MPI_Isend(out, SMALL, MPI_DOUBLE, to, 3, c, &r[0]), done++;
  for (flag = 0; !flag;) MPI_Iprobe(from, 3, c, &flag, &s);
  MPI_Recv(in, SMALL, MPI_DOUBLE, from, 3, c, &s);
  MPI_Wait(&r[0], &s);
  MPI_Isend(out, SMALL, MPI_DOUBLE, to, 4, c, &r[0]), done++;
  MPI_Mprobe(MPI_ANY_SOURCE, 4, c, &m, &s);
  MPI_Mrecv(in, SMALL, MPI_DOUBLE, &m, &s);
  MPI_Request_free(&r[0]);
  MPI_Bsend(out, SMALL, MPI_DOUBLE, to, 5, c), done++;
  MPI_Recv(in, SMALL, MPI_DOUBLE, MPI_ANY_SOURCE, 5, c, &s);
  MPI_Sendrecv(out, SMALL, MPI_DOUBLE, to, 6, in, SMALL, MPI_DOUBLE, from, 6, c, &s), done++;
  MPI_Send_init(out, SMALL, MPI_DOUBLE, to, 7, c, &r[0]);
  MPI_Recv_init(in, SMALL, MPI_DOUBLE, from, 7, c, &r[1]);
  MPI_Startall(2, r), MPI_Waitall(2, r, MPI_STATUSES_IGNORE), done++;
  MPI_Request_free(&r[0]), MPI_Request_free(&r[1]);
  MPI_Irecv(in, SMALL, MPI_DOUBLE, from, 8, c, &r[0]), done++; /* no rank sends this message */
  MPI_Cancel(&r[0]), MPI_Wait(&r[0], &s);
  MPI_Type_vector(SMALL, 1, 2, MPI_DOUBLE, &gaps);
  MPI_Type_commit(&gaps);
  MPI_Irecv(in, 1, gaps, from, 9, c, &r[0]);
  MPI_Isend(out, 1, gaps, to, 9, c, &r[1]), done++;
  MPI_Type_free(&gaps);
  MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  MPI_Barrier(c), done++;
  MPI_Bcast(in, n, MPI_DOUBLE, turn % np, c), done++;
  MPI_Allreduce(out, in, SMALL, MPI_DOUBLE, MPI_SUM, c), done++;
  MPI_Ibarrier(c, &r[0]), done++;
  MPI_Iallreduce(out, in, SMALL, MPI_DOUBLE, MPI_SUM, c, &r[1]), done++;
  MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  MPI_Alltoall(out, 2, MPI_DOUBLE, in, 2, MPI_DOUBLE, c), done++;
  return done;
}

/* Makes communicators, groups and intercommunicators. */
static int communicators(void) {
  MPI_Comm a, b, i;
  MPI_Group g;
  MPI_Request r;
  int done = 0;
  MPI_Comm_dup(MPI_COMM_WORLD, &a), done++;
  round_of(1, a);
  MPI_Comm_idup(a, &b, &r), MPI_Wait(&r, MPI_STATUS_IGNORE), done++;
  MPI_Comm_free(&a), MPI_Comm_free(&b);
  MPI_Comm_split(MPI_COMM_WORLD, me % 2, -me, &a), done++;
  MPI_Intercomm_create(a, 0, MPI_COMM_WORLD, me % 2 ? np - 1 - (np - 1) % 2 : np - 1 - np % 2, 1, &i), done++;
  MPI_Barrier(i), done++;
  MPI_Intercomm_merge(i, me % 2, &b), done++;
  MPI_Comm_group(b, &g), done++;
  MPI_Group_free(&g);
  MPI_Comm_free(&i), MPI_Comm_free(&a), MPI_Comm_free(&b);
  return done;
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  long wanted = argc > 1 ? atol(argv[1]) : 20000, done = 0, kb = 0, fds = 0;
  char *attached = malloc(1 << 20);
  MPI_Buffer_attach(attached, 1 << 20);
  for (int turn = 0; done < wanted; turn++) {
    if (!kb && done >= wanted / 10) {
      MPI_Barrier(MPI_COMM_WORLD);
      kb = resident_kb(), fds = descriptors();
    }
    done += round_of(turn, MPI_COMM_WORLD);
    if (turn % 16 == 0) done += communicators();
  }
  int size;
  MPI_Buffer_detach(&attached, &size);
  free(attached);
  MPI_Barrier(MPI_COMM_WORLD);
  long grown = resident_kb() - kb;
  CHECK(grown < GROWTH_KB, "%ld KiB more than after the first tenth of %ld operations", grown, done);
  SAME(descriptors(), fds, "open file descriptors");
  fprintf(stderr, "rank %d: %ld operations, %ld KiB at first, %+ld KiB since, %ld descriptors\n", me, done, kb, grown,
          fds);
  return finish();
}
