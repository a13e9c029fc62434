/* Buffered sends in the buffers of MPI 4.1: MPI_BUFFER_AUTOMATIC, the buffer of a communicator, of
 * a session and of the process, which of them a message uses, flushing and detaching them. A
 * library of MPI 3 prints the same with a buffer of the process alone. */
#include "check.h"

enum { N = 20000, MESSAGES = 20 };
static int out[N], in[N];

#if MPI_VERSION * 10 + MPI_SUBVERSION >= 41
#define NEW 1
#define comm_attach MPI_Comm_attach_buffer
#define comm_detach MPI_Comm_detach_buffer
#define comm_flush MPI_Comm_flush_buffer
#define comm_iflush MPI_Comm_iflush_buffer
#define flush_all MPI_Buffer_flush
#define iflush_all MPI_Buffer_iflush
#else
#define NEW 0
#define MPI_BUFFER_AUTOMATIC NULL
static int comm_attach(MPI_Comm c, void *buffer, int size) { return (void)c, MPI_Buffer_attach(buffer, size); }
static int comm_detach(MPI_Comm c, void *buffer, int *size) { return (void)c, MPI_Buffer_detach(buffer, size); }
static int flush_all(void) {
  void *buffer;
  int size;
  MPI_Buffer_detach(&buffer, &size);
  return MPI_Buffer_attach(buffer, size);
}
static int iflush_all(MPI_Request *r) { return *r = MPI_REQUEST_NULL, MPI_SUCCESS; }
static int comm_flush(MPI_Comm c) { return (void)c, flush_all(); }
static int comm_iflush(MPI_Comm c, MPI_Request *r) { return (void)c, iflush_all(r); }
#endif

/* Returns the room that a message of N ints to each rank takes. */
static int room_of(MPI_Comm c) {
  int bytes;
  MPI_Pack_size(N, MPI_INT, c, &bytes);
  return np * (bytes + MPI_BSEND_OVERHEAD);
}

static void send_all(int tag, MPI_Comm c) {
  for (int p = 0; p < np; p++) SAME(MPI_Bsend(out, N, MPI_INT, p, tag, c), MPI_SUCCESS, "Bsend");
}

static void receive_all(int tag, MPI_Comm c) {
  for (int p = 0; p < np; p++) {
    MPI_Recv(in, N, MPI_INT, p, tag, c, MPI_STATUS_IGNORE);
    CHECK(filled(in, sizeof in, p), "from %d", p);
  }
}

/* Sends more than any buffer holds before anything is received. */
static void automatic(void) {
  void *back = &out;
  int size = NEW ? 0 : MESSAGES * room_of(MPI_COMM_WORLD);
  void *buffer = NEW ? MPI_BUFFER_AUTOMATIC : malloc(size);
  SAME(MPI_Buffer_attach(buffer, size), MPI_SUCCESS, "Buffer_attach");
  for (int round = 0; round < 2; round++) {
    MPI_Request r;
    for (int i = 0; i < MESSAGES; i++) send_all(i, MPI_COMM_WORLD);
    SAME(iflush_all(&r), MPI_SUCCESS, "Buffer_iflush");
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < MESSAGES; i++) receive_all(i, MPI_COMM_WORLD);
    if (round) SAME(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_SUCCESS, "Wait for Buffer_iflush");
    else
      for (int flag = 0; !flag;) MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
    SAME(flush_all(), MPI_SUCCESS, "Buffer_flush");
    line("automatic: %d messages to each", MESSAGES);
  }
  SAME(MPI_Buffer_detach(&back, &size), MPI_SUCCESS, "Buffer_detach");
  CHECK(back == buffer, "the address of the automatic buffer");
  if (!NEW) free(buffer);
}

/* Uses a communicator's buffer, which is just large enough, again after each flush. */
static void of_communicator(MPI_Comm c, const char *what) {
  int size = room_of(c), was = 0;
  void *buffer = malloc(size), *back = NULL;
  SAME(comm_attach(c, buffer, size), MPI_SUCCESS, "Comm_attach_buffer");
  for (int round = 0; round < 4; round++) {
    MPI_Request r = MPI_REQUEST_NULL;
    send_all(round, c);
    if (round % 2) SAME(comm_iflush(c, &r), MPI_SUCCESS, "Comm_iflush_buffer");
    receive_all(round, c);
    if (round % 2) MPI_Wait(&r, MPI_STATUS_IGNORE);
    if (round % 2 == 0 || !NEW) SAME(comm_flush(c), MPI_SUCCESS, "Comm_flush_buffer");
  }
  send_all(9, c);
  receive_all(9, c);
  SAME(comm_detach(c, &back, &was), MPI_SUCCESS, "Comm_detach_buffer");
  CHECK(back == buffer && was == size, "the detached buffer of %d bytes", was);
  free(buffer);
  line("%s: done", what);
}

/* A flush waits for a message whose receiver serves it. */
static void in_turns(MPI_Comm c) {
  int size = room_of(c);
  void *buffer = malloc(size);
  comm_attach(c, buffer, size);
  for (int from = 0; from < np; from++) {
    if (me == from) {
      for (int p = 0; p < np; p++)
        if (p != me) MPI_Bsend(out, N, MPI_INT, p, 1, c);
      SAME(comm_flush(c), MPI_SUCCESS, "Comm_flush_buffer");
      memset(buffer, 0, size / 2);
    } else {
      MPI_Recv(in, N, MPI_INT, from, 1, c, MPI_STATUS_IGNORE);
      CHECK(filled(in, sizeof in, from), "from %d in turns", from);
    }
  }
  comm_detach(c, &buffer, &size);
  free(buffer);
  line("in turns: done");
}

#if NEW
/* The process's buffer is too small for a message that fits the communicator's, and the other way
 * round. */
static void precedence(MPI_Comm c) {
  MPI_Comm other;
  int small = MPI_BSEND_OVERHEAD + 64, size = room_of(c), was;
  void *tiny = malloc(small), *large = malloc(size), *back;
  MPI_Comm_dup(c, &other);
  MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN);
  for (int turn = 0; turn < 2; turn++) {
    MPI_Comm fits = turn ? other : c, fails = turn ? c : other;
    MPI_Buffer_attach(turn ? large : tiny, turn ? size : small);
    MPI_Comm_attach_buffer(c, turn ? tiny : large, turn ? small : size);
    for (int p = 0; p < np; p++)
      CHECK(MPI_Bsend(out, N, MPI_INT, p, 3, fails) != MPI_SUCCESS, "a message that does not fit, in turn %d", turn);
    send_all(3, fits);
    receive_all(3, fits);
    MPI_Comm_detach_buffer(c, &back, &was);
    CHECK(back == (turn ? tiny : large) && was == (turn ? small : size), "the communicator's buffer");
    MPI_Buffer_detach(&back, &was);
    CHECK(back == (turn ? large : tiny) && was == (turn ? size : small), "the process's buffer");
  }
  MPI_Comm_set_errhandler(c, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_free(&other);
  free(tiny), free(large);
}

/* A session's buffer serves the communicators that are derived from it. */
static void of_session(void) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm c, copy;
  MPI_Request r;
  int size = 2 * room_of(MPI_COMM_WORLD), was = 0;
  void *buffer = malloc(size), *back = NULL;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "buffers", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &c);
  MPI_Comm_dup(c, &copy);
  SAME(MPI_Session_attach_buffer(session, buffer, size), MPI_SUCCESS, "Session_attach_buffer");
  for (int round = 0; round < 2; round++) {
    send_all(round, c), send_all(round, copy);
    MPI_Session_iflush_buffer(session, &r);
    receive_all(round, c), receive_all(round, copy);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    SAME(MPI_Session_flush_buffer(session), MPI_SUCCESS, "Session_flush_buffer");
  }
  SAME(MPI_Session_detach_buffer(session, &back, &was), MPI_SUCCESS, "Session_detach_buffer");
  CHECK(back == buffer && was == size, "the session's buffer of %d bytes", was);
  MPI_Group_free(&group);
  MPI_Comm_free(&copy), MPI_Comm_free(&c);
  MPI_Session_finalize(&session);
  free(buffer);
}

#else
static void precedence(MPI_Comm c) { (void)c; }
static void of_session(void) {}
#endif

/* A buffer of more than 2 GiB, which is hardly touched. */
static void large(MPI_Comm c) {
#if MPI_VERSION >= 4
  MPI_Count size = (MPI_Count)3 << 30, was = 0;
  void *buffer = malloc(size), *back = NULL;
  SAME(MPI_Buffer_attach_c(buffer, size), MPI_SUCCESS, "Buffer_attach_c");
  send_all(4, c), receive_all(4, c);
  SAME(MPI_Buffer_detach_c(&back, &was), MPI_SUCCESS, "Buffer_detach_c");
#else
  int size = room_of(c), was = 0;
  void *buffer = malloc(size), *back = NULL;
  MPI_Buffer_attach(buffer, size);
  send_all(4, c), receive_all(4, c);
  MPI_Buffer_detach(&back, &was);
#endif
  CHECK(back == buffer && was == size, "the large buffer");
  free(buffer);
  line("large: done");
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  MPI_Comm c, half;
  fill(out, sizeof out, me);
  MPI_Comm_dup(MPI_COMM_WORLD, &c);
  automatic();
  of_communicator(c, "communicator");
  in_turns(c);
  int everywhere = NEW; /* the clusters may have libraries of several versions */
  MPI_Allreduce(MPI_IN_PLACE, &everywhere, 1, MPI_INT, MPI_MIN, c);
  if (everywhere) precedence(c);
  if (everywhere) of_session();
  large(c);
  /* a communicator that is freed with its buffer attached */
  MPI_Comm_dup(c, &half);
  int size = room_of(c);
  void *buffer = malloc(size);
  comm_attach(half, buffer, size);
  send_all(5, half), receive_all(5, half);
  if (!NEW) comm_detach(half, &buffer, &size);
  MPI_Comm_free(&half);
  MPI_Comm_dup(c, &half);
  of_communicator(half, "another communicator");
  MPI_Comm_free(&half);
  free(buffer);
  MPI_Comm_free(&c);
  return finish();
}
