/* A part of random.c: operations in progress, and their completion in every form. */

/* An operation that is completed now or some operations later. */
typedef struct {
  int *p, *p2, room, ints, source, tag;
  const layout *l;
  uint64_t id;
  int kind;
  int *want;
} pending_info;
enum { P_SEND, P_RECEIVE, P_COLLECTIVE };
static MPI_Request requests[MAX_PENDING];
static pending_info infos[MAX_PENDING];
static int pendings;

static void completed(pending_info *o, MPI_Status *st) {
  if (o->kind == P_RECEIVE) {
    int n;
    MPI_Get_elements(st, o->l->type, &n);
    if (n != o->ints || st->MPI_SOURCE != o->source || st->MPI_TAG != o->tag)
      BAD("message %llx: %d words from %d tag %d, want %d words from %d tag %d", (unsigned long long)o->id, n,
          st->MPI_SOURCE, st->MPI_TAG, o->ints, o->source, o->tag);
    verify(o->p, o->l, o->room, o->ints, o->id);
  } else if (o->kind == P_COLLECTIVE) {
    for (int i = 0; i < o->ints; i++) {
      if (o->p[i] != o->want[i])
        BAD("collective %llx: word %d of %d is %x, want %x", (unsigned long long)o->id, i, o->ints, o->p[i],
            o->want[i]);
      result = mix(result ^ (unsigned)o->p[i]);
    }
    free(o->want);
  }
  free(o->p), free(o->p2);
  o->p = NULL;
}

/* Completes all pending operations in one of the forms; `some` leaves those that have not completed
 * yet. The digest must not depend on the order of completion, so results are folded per request in
 * the order of posting. */
static void finish_pending(int form) {
  static MPI_Status st[MAX_PENDING], many[MAX_PENDING];
  static int indices[MAX_PENDING];
  int n = pendings, index, count, flag, left = n;
  switch (form) {
  case 0: MPI_Waitall(n, requests, st); break;
  case 1:
    for (; left > 0; left--) {
      MPI_Waitany(n, requests, &index, &many[0]);
      if (index < 0 || index >= n) BAD("Waitany gave %d", index);
      st[index] = many[0];
    }
    break;
  case 2:
    for (; left > 0; left -= count) {
      MPI_Waitsome(n, requests, &count, indices, many);
      if (count < 1 || count > left) BAD("Waitsome gave %d", count);
      for (int i = 0; i < count; i++) st[indices[i]] = many[i];
    }
    break;
  case 3:
    for (flag = 0; !flag;) MPI_Testall(n, requests, &flag, st);
    break;
  case 4:
    while (left > 0) {
      MPI_Testany(n, requests, &index, &flag, &many[0]);
      if (flag) {
        if (index < 0) BAD("Testany gave none");
        st[index] = many[0], left--;
      }
    }
    break;
  case 5:
    while (left > 0) {
      MPI_Testsome(n, requests, &count, indices, many);
      if (count < 0 || count > left) BAD("Testsome gave %d", count);
      for (int i = 0; i < count; i++) st[indices[i]] = many[i];
      left -= count;
    }
    break;
  case 6:
    for (int i = n - 1; i >= 0; i--) MPI_Wait(&requests[i], &st[i]);
    break;
  case 7:
    for (int i = 0; left > 0; i = (i + 1) % n)
      if (requests[i] != MPI_REQUEST_NULL) {
        MPI_Test(&requests[i], &flag, &st[i]);
        left -= flag;
      }
    break;
  }
  for (int i = 0; i < n; i++) {
    if (requests[i] != MPI_REQUEST_NULL) BAD("request %d left by form %d", i, form);
    completed(&infos[i], &st[i]);
  }
  pendings = 0;
}

static void keep(MPI_Request r, pending_info info) {
  requests[pendings] = r;
  infos[pendings++] = info;
  if (pendings == MAX_PENDING) BAD("too much pending");
}
