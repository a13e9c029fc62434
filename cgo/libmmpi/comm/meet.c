/* Meeting before a blocking native call that makes a communicator.
 *
 * Native libraries make communicators one after the other, in an order of their own. Suppose other
 * processes of comm have started the native part of a duplication (idup.c) and this process has
 * not. A blocking function would wait here for that duplication, which this process could then not
 * start. So all processes meet first, and repeat the meeting until none of them has a duplication
 * in its native part. Such a duplication has been called in all processes, so it completes. */
#include "comm/comm.h"
#include "core/privcomm.h"
#include "p2p/p2p.h"
#include <string.h>

/* The number of this process's nonblocking duplications whose native part is in progress. */
static int32_t copies;
/* the number of calls in this process that forbid duplications to start their native part */
static int32_t held;

int zmeet_held(void) { return __atomic_load_n(&held, __ATOMIC_SEQ_CST) > 0; }
void zmeet_copying(int by) { __atomic_add_fetch(&copies, by, __ATOMIC_SEQ_CST); }

/* Forbids the nonblocking duplications of this process to start their native part, until go_on is
 * called. Returns whether the native part of one is in progress. */
static int hold_duplications(void) {
  __atomic_add_fetch(&held, 1, __ATOMIC_SEQ_CST);
  return __atomic_load_n(&copies, __ATOMIC_SEQ_CST) > 0;
}

static void go_on(int again) {
  __atomic_sub_fetch(&held, 1, __ATOMIC_SEQ_CST);
  if (again) z_poll(); /* otherwise the native call comes next, and nothing may be started before it */
}

int zcomm_meet(MPI_Comm comm) {
  int inter, any = 1, rc = real.Comm_test_inter(comm, &inter);
  while (!rc && any) {
    any = hold_duplications();
    /* On an intercommunicator the first round tells each group about the other one, and the second
     * about itself */
    for (int round = 0; round <= inter && !rc; round++) {
      MPI_Request request = MPI_REQUEST_NULL;
      int mine = any, others;
      if (!(rc = real.Iallreduce(&mine, &others, 1, MPI_INT, MPI_MAX, comm, &request)))
        rc = z_wait_native(&request, MPI_STATUS_IGNORE);
      any = mine | others;
    }
    go_on(any && !rc);
  }
  return rc;
}

/* ---- the same among some processes, by messages ---- */

/* Combines a flag of several processes by OR. They are those of the `size` virtual ranks world[i]
 * that are in this cluster. *any is the flag of this process, which says that the native part of a
 * duplication is in progress (zcomm_meet), and becomes the result. The first process collects the
 * flags and sends the result to all. Returns an MPI error code. */
static int meet_once(const int32_t *world, int size, int tag, int *any) {
  int n = 0, first = -1, rc = MPI_SUCCESS, mine = *any;
  MPI_Request *requests = malloc((size_t)size * sizeof *requests);
  int *flags = calloc((size_t)size, sizeof *flags);
  if (!requests || !flags) rc = MPI_ERR_NO_MEM;
  for (int round = 0; round < 2 && !rc; round++) { /* to the first process, and back */
    n = 0, first = -1;
    for (int i = 0; i < size && !rc; i++) {
      if (!zcluster_has(world[i])) continue;
      if (first < 0) first = world[i];
      int is_first = z_layout.rank == first, peer = zcluster_rank(is_first ? world[i] : first);
      if (world[i] == first || (!is_first && world[i] != z_layout.rank)) continue;
      if (is_first == (round == 0))
        rc = real.Irecv(&flags[i], 1, MPI_INT, peer, zprivate_tag(ZTAG_MEET, tag), z_private, &requests[n++]);
      else
        rc = real.Isend(is_first ? any : &mine, 1, MPI_INT, peer, zprivate_tag(ZTAG_MEET, tag), z_private,
                        &requests[n++]);
    }
    if (!rc) rc = z_wait_each(n, requests);
    for (int i = 0; i < size && !rc; i++) *any |= flags[i];
  }
  free(requests);
  free(flags);
  return rc;
}

int zcomm_meet_members(const int32_t *world, int size, int tag) {
  int any, rc;
  do {
    any = hold_duplications();
    rc = meet_once(world, size, tag, &any);
    go_on(any && !rc);
  } while (any && !rc);
  return rc;
}

/* ---- whether all processes of the cluster go on ---- */

/* A message of zcomm_vote: the vote of a process, or the decision of local rank 0. */
typedef struct ballot {
  uint64_t id;                  /* the number that the calls of all processes have in common */
  enum { VOTE, DECISION } kind; /* whether the message is a vote or the decision */
  int32_t yes;                  /* 1 if the sender goes on, or all do */
} ballot;

/* A ballot that has arrived. */
typedef struct letter {
  struct letter *next;
  ballot b;
  int from; /* the sender's rank in z_private */
} letter;

/* The ballots that have arrived and have not been read, in the order of their arrival. Those of
 * collectives that have failed stay. */
static struct {
  pthread_mutex_t lock;
  letter *first;
} mailbox = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void cast(int to, ballot b) {
  zreq *r = zreq_new_blocking(NULL, ZREQ_SEND, "MPI_Isend");
  if (!(r->packed = malloc(sizeof b))) z_no_memory("a ballot");
  memcpy(r->packed, &b, sizeof b);
  p2p_now_native(r);
  z_must(real.Isend(r->packed, sizeof b, MPI_BYTE, to, ZTAG_BALLOT, z_private, &r->native), "MPI_Isend");
  zreq_release(r);
}

/* Puts the ballots that have arrived into the mailbox, which the caller has locked. */
static void empty_network(void) {
  letter **end = &mailbox.first;
  while (*end) end = &(*end)->next;
  for (int flag = 1; flag;) {
    MPI_Message message;
    MPI_Status status;
    z_must(real.Improbe(MPI_ANY_SOURCE, ZTAG_BALLOT, z_private, &flag, &message, &status), "MPI_Improbe");
    if (!flag) return;
    letter *l = calloc(1, sizeof *l);
    if (!l) z_no_memory("a ballot");
    z_must(real.Mrecv(&l->b, sizeof l->b, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
    l->from = status.MPI_SOURCE;
    *end = l, end = &l->next;
  }
}

/* Takes the first ballot of a kind from a process out of the mailbox. Returns its `yes`, or -1 if
 * there is none. */
static int take(uint64_t id, int kind, int from) {
  for (letter **at = &mailbox.first, *l; (l = *at); at = &l->next) {
    if (l->b.id != id || (int)l->b.kind != kind || l->from != from) continue;
    int yes = l->b.yes;
    *at = l->next;
    free(l);
    return yes;
  }
  return -1;
}

void zmeet_stop(void) {
  if (!z_layout.on_loss) return;
  empty_network();
  for (letter *l; (l = mailbox.first);) {
    mailbox.first = l->next;
    free(l);
  }
}

/* The state of a vote. */
typedef struct poll {
  uint64_t id;
  const int *places; /* the ranks in z_private of the processes that vote */
  int kind;          /* the kind of ballot for which this process waits */
  int next, end;     /* the ballots of places[next] to places[end - 1] have not come yet */
  int yes;           /* 1 if all ballots so far are */
} poll;

static int poll_over(void *arg) {
  poll *p = arg;
  z_lock(&mailbox.lock);
  empty_network();
  for (int yes; p->next < p->end && (yes = take(p->id, p->kind, p->places[p->next])) >= 0; p->next++) p->yes &= yes;
  z_unlock(&mailbox.lock);
  z_looks += p->next < p->end;
  return p->next == p->end;
}

/* Lets the n processes places[i] of this cluster vote. The first one decides. A process that has
 * failed waits for nothing, because the others may not even call. Returns whether all go on. */
static int vote(uint64_t id, const int *places, int n, int yes) {
  int leads = places[0] == zcluster_rank(z_layout.rank);
  poll p = {id, places, leads ? VOTE : DECISION, leads, leads ? n : 1, yes};
  if (!leads) cast(places[0], (ballot){id, VOTE, yes});
  if (yes && !poll_over(&p)) z_wait(poll_over, &p);
  for (int i = 1; leads && i < n; i++) cast(places[i], (ballot){id, DECISION, p.yes});
  return p.yes;
}

int zcomm_vote_among(uint64_t id, const int32_t *world, int n, int rc) {
  int *places = malloc((size_t)n * sizeof *places), locals = 0;
  if (!places) z_no_memory("the members of a communicator");
  for (int i = 0; i < n; i++)
    if (zcluster_has(world[i])) places[locals++] = zcluster_rank(world[i]);
  int all = vote(id, places, locals, rc == MPI_SUCCESS);
  free(places);
  return rc || all ? rc : Z_CLASS_PROC_FAILED;
}

int zcomm_vote(zcomm *c, int rc, const char *function) {
  if (!z_layout.on_loss || c->native_size == 1) return rc;
  int failed = zcomm_vote_among(c->context, c->world, c->size, rc);
  if (rc || !failed) return failed;
  return z_raise_engine(c, Z_ENGINE(ze_revoked(c->id)) ? Z_ERR_REVOKED : Z_ERR_PROC_FAILED, function);
}
