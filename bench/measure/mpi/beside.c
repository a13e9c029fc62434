/* Small messages now and then, alone and beside bulk on the same way. All ranks are on one machine
 * and share its clock: the value is the time from before a message is sent until it has arrived. */
#include "measure.h"

#include <string.h>

enum { BULK_TAG = 1, ACK = 2, SMALL = 3 };
enum { BULKS = 120, BULK = 4 << 20, BULKS_AT_ONCE = 4, MOST_STAMPS = 1 << 14 };

static double stamps[MOST_STAMPS];
static int stamped;

static void send_stamp(double t) {
  memcpy(out, &t, sizeof t);
  MPI_Send(PART, last, SMALL, WORLD);
}

static void sending(int bulks) {
  static char *block;
  if (!block) block = room(BULK);
  MPI_Request q[BULKS_AT_ONCE];
  int begun = 0, ended = 0, i, done;
  for (i = 0; i < BULKS_AT_ONCE; i++) q[i] = MPI_REQUEST_NULL;
  for (; begun < bulks && begun < BULKS_AT_ONCE; begun++)
    MPI_Isend(block, BULK, MPI_CHAR, last, BULK_TAG, WORLD, &q[begun]);
  double start = now(), next = start + 0.02;
  while (bulks ? ended < bulks : now() < start + 0.5) {
    MPI_Testany(BULKS_AT_ONCE, q, &i, &done, MPI_STATUS_IGNORE);
    if (bulks && done && i != MPI_UNDEFINED) {
      ended++;
      if (begun < bulks) {
        MPI_Isend(block, BULK, MPI_CHAR, last, BULK_TAG, WORLD, &q[i]);
        begun++;
      }
    }
    double t = now();
    if (t >= next) {
      send_stamp(t);
      next = t + 0.0037; /* no multiple of a bulk message's time */
    }
  }
  send_stamp(0);
}

static void receiving(int bulks) {
  static char *blocks[BULKS_AT_ONCE];
  MPI_Request q[BULKS_AT_ONCE + 1];
  int posted = 0, ended = 0, over = 0, i;
  for (i = 0; i < BULKS_AT_ONCE; i++) {
    if (!blocks[i]) blocks[i] = room(BULK);
    q[i] = MPI_REQUEST_NULL;
    if (posted < bulks) MPI_Irecv(blocks[i], BULK, MPI_CHAR, 0, BULK_TAG, WORLD, &q[i]), posted++;
  }
  MPI_Irecv(in, size, MPI_CHAR, 0, SMALL, WORLD, &q[BULKS_AT_ONCE]);
  while (!over || ended < bulks) {
    MPI_Waitany(BULKS_AT_ONCE + 1, q, &i, MPI_STATUS_IGNORE);
    if (i == BULKS_AT_ONCE) {
      double t = now(), sent;
      memcpy(&sent, in, sizeof sent);
      if (sent == 0) over = 1;
      else {
        if (stamped < MOST_STAMPS) stamps[stamped++] = t - sent;
        MPI_Irecv(in, size, MPI_CHAR, 0, SMALL, WORLD, &q[BULKS_AT_ONCE]);
      }
    } else {
      ended++;
      if (posted < bulks) MPI_Irecv(blocks[i], BULK, MPI_CHAR, 0, BULK_TAG, WORLD, &q[i]), posted++;
    }
  }
}

static void with_bulks(const char *name, int bulks) {
  if (size < (int)sizeof(double)) die("a message beside others has 8 bytes at least");
  stamped = 0;
  MPI_Barrier(WORLD);
  if (rank == 0) sending(bulks);
  if (rank == last) receiving(bulks);
  double v[2] = {0, 0};
  if (rank == last && stamped) {
    qsort(stamps, (size_t)stamped, sizeof *stamps, ascending);
    v[0] = stamps[stamped / 2] * 1e6, v[1] = stamps[stamped * 9 / 10] * 1e6;
    MPI_Send(v, 2, MPI_DOUBLE, 0, ACK, WORLD);
  } else if (rank == last) die("no small message came beside the others");
  if (rank == 0) {
    char p90[32];
    MPI_Recv(v, 2, MPI_DOUBLE, last, ACK, WORLD, MPI_STATUS_IGNORE);
    snprintf(p90, sizeof p90, "%s.p90", name);
    point(name, v, 1);
    point(p90, v + 1, 1);
  }
}
static void alone(void) { with_bulks("alone", 0); }
static void beside(void) { with_bulks("beside", BULKS); }

const operation smalls[] = {
    {.name = "alone", .whole = alone, .parts = 1},
    {.name = "beside", .whole = beside, .parts = 1},
    {.name = NULL},
};
