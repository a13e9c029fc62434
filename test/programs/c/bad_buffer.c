/* The last rank passes MPI a buffer that is not mapped, in a message with rank 0. The arguments are
 * the way and the size of the message in bytes. Natively and zipped the rank ends by the signal of
 * such an access.
 *
 * A way is the use of the buffer (recv, irecv, polled, persistent, probed, send, isend, bcast,
 * gather, typed, put, get, target), or its fault in a receive: unmapped, cut (it ends before the
 * message does), file (a mapped file that has become shorter; SIGBUS). late: the receive completes
 * while the program is outside of MPI; later: the same with a buffer that is cut. repaired: a
 * handler of the program's makes the buffer writable, and the whole message has to arrive. */
#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROOM = 32 << 20 };
static int page;  /* the size of a page in bytes */
static char *bad; /* the last rank's buffer */
static int bytes, last, repairs;
static const char *way;

static int is(const char *what) { return !strcmp(way, what); }

static char *mapped(int protection) {
  char *p = mmap(NULL, ROOM, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) abort();
  return p;
}

/* Returns memory that ends in the middle of the message, or a page before its end. */
static char *cut(int in_file) {
  int length = bytes / 2 / page * page;
  if (!in_file) {
    char *p = mapped(PROT_READ | PROT_WRITE);
    munmap(p + length, ROOM - length);
    return p + (length ? 0 : length - bytes / 2);
  }
  char name[] = "/tmp/bad_buffer_XXXXXX";
  int fd = mkstemp(name);
  if (fd < 0 || unlink(name) || ftruncate(fd, ROOM)) abort();
  char *p = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (p == MAP_FAILED || ftruncate(fd, length)) abort();
  return p;
}

static void repair(int sig, siginfo_t *info, void *context) {
  (void)sig, (void)context;
  repairs++;
  if (mprotect((char *)((uintptr_t)info->si_addr & ~(uintptr_t)(page - 1)), page, PROT_READ | PROT_WRITE)) _exit(3);
}

static void one_sided(char *mine) {
  MPI_Win w;
  MPI_Win_create(is("target") && me == last ? bad : mine, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w);
  MPI_Win_fence(0, w);
  if (is("target") && me == 0) MPI_Put(mine, bytes, MPI_BYTE, last, 0, bytes, MPI_BYTE, w);
  if (is("put") && me == last) MPI_Put(bad, bytes, MPI_BYTE, 0, 0, bytes, MPI_BYTE, w);
  if (is("get") && me == last) MPI_Get(bad, bytes, MPI_BYTE, 0, 0, bytes, MPI_BYTE, w);
  MPI_Win_fence(0, w);
  MPI_Win_free(&w);
}

static void collective(char *good) {
  if (is("bcast")) MPI_Bcast(me == last ? bad : good, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
  else MPI_Gather(me == last ? bad : MPI_IN_PLACE, bytes, MPI_BYTE, good, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void receive(void) {
  MPI_Request q;
  MPI_Datatype gaps;
  int flag = 0;
  if (is("irecv")) {
    MPI_Irecv(bad, bytes, MPI_BYTE, 0, 7, MPI_COMM_WORLD, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
  } else if (is("polled")) {
    MPI_Irecv(bad, bytes, MPI_BYTE, 0, 7, MPI_COMM_WORLD, &q);
    while (!flag) MPI_Test(&q, &flag, MPI_STATUS_IGNORE);
  } else if (is("late") || is("later")) {
    MPI_Irecv(bad, bytes, MPI_BYTE, 0, 7, MPI_COMM_WORLD, &q);
    MPI_Send(NULL, 0, MPI_BYTE, 0, 8, MPI_COMM_WORLD);
    pause(); /* the signal ends the process */
  } else if (is("persistent")) {
    MPI_Recv_init(bad, bytes, MPI_BYTE, 0, 7, MPI_COMM_WORLD, &q);
    MPI_Start(&q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
  } else if (is("typed")) {
    MPI_Type_vector(bytes / 2, 1, 2, MPI_BYTE, &gaps);
    MPI_Type_commit(&gaps);
    MPI_Recv(bad, 2, gaps, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    if (is("probed")) MPI_Probe(0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(bad, bytes, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static void message(char *good) {
  int sends = is("send") || is("isend");
  MPI_Request q;
  if (me == last && is("isend")) {
    MPI_Isend(bad, bytes, MPI_BYTE, 0, 7, MPI_COMM_WORLD, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
  } else if (me == last) {
    if (sends) MPI_Send(bad, bytes, MPI_BYTE, 0, 7, MPI_COMM_WORLD);
    else receive();
  } else if (me == 0 && sends) {
    MPI_Recv(good, bytes, MPI_BYTE, last, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (me == 0) {
    if (is("late") || is("later")) MPI_Recv(NULL, 0, MPI_BYTE, last, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(good, bytes, MPI_BYTE, last, 7, MPI_COMM_WORLD);
  }
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  way = argv[1], bytes = atoi(argv[2]), page = (int)sysconf(_SC_PAGESIZE);
  start(&argc, &argv);
  last = np - 1;
  char *good = calloc((size_t)np, bytes);
  fill(good, bytes, 5);
  if (is("repaired")) {
    struct sigaction a = {.sa_sigaction = repair, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGSEGV, &a, NULL);
  }
  int reads = is("send") || is("isend") || is("gather") || is("put") || is("unmapped");
  bad = is("cut") || is("file") || is("later") ? cut(is("file")) : mapped(reads ? PROT_NONE : PROT_READ);
  if (is("put") || is("get") || is("target")) one_sided(good);
  else if (is("bcast") || is("gather")) collective(good);
  else message(good);
  if (is("repaired") && me == last) {
    CHECK(filled(bad, bytes, 5));
    CHECK(repairs > 0);
  } else if (me == last) {
    failed(__FILE__, __LINE__, "the process has survived");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return finish();
}
