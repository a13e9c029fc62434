/* A random program: point to point in every form, collectives, communicators made and freed. All
 * ranks derive the same script from the seed; everything that arrives is known beforehand and
 * checked, and rank r prints a digest of what it got.
 *
 *   random SEED [OPERATIONS [SKIP]]     SKIP: "100-250,300-300" leaves these operations out
 *
 * An operation is a round of messages, a collective, or the making or freeing of a communicator.
 * Each draws from a generator of its own, and what it uses it finds in the state that the
 * operations before it left, so any subset of the operations is again a valid program: on failure a
 * driver leaves out more and more of them (test/e2e: minimize).
 *
 * Why the outcome is determined. In a round each rank posts its early receives, then starts its
 * sends, then does its late receives; a pair of ranks is early or late as a whole, and all its
 * receives are posted in the order of the sends. A message is matched by a receive for its source,
 * or by ANY_SOURCE with a tag that only its source uses; then the k-th message of a source goes to
 * the k-th receive for that source, whatever else happens. Rounds for which this does not hold
 * (ANY_SOURCE with a tag that many senders use) check instead that each message comes once and in
 * order per sender; their tag belongs to the round. Blocking sends are used only within early
 * pairs, so a rank that blocks waits for one that is in an earlier operation or phase.
 */
#include "check.h"

enum { MAX_COMMS = 10, MAX_RANKS = 64, MAX_MESSAGES = 40, MAX_PENDING = 400 };

typedef struct {
  MPI_Comm handle;
  int n, world[MAX_RANKS];
} comm_state; /* handle null if I am not a member */
static comm_state comms[MAX_COMMS];
static int live, operation;
static uint64_t seed, result, messages, bytes, collectives, made;

#define BAD(...)                                                                                         \
  do {                                                                                                   \
    failed(__FILE__, __LINE__, __VA_ARGS__);                                                             \
    fprintf(stderr, "rank %d: in operation %d of seed %llu\n", me, operation, (unsigned long long)seed); \
    fflush(stderr);                                                                                      \
    MPI_Abort(MPI_COMM_WORLD, 3);                                                                        \
  } while (0)

#include "random_layout.h"

/* What is under way, completed now or some operations later. */
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

/* Completes everything pending in one of the forms; `some` leaves what is not done yet. The digest
 * must not depend on the order of completion, so results are folded per request in order of
 * posting. */
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

static int my_rank(const comm_state *c) {
  for (int i = 0; i < c->n; i++)
    if (c->world[i] == me) return i;
  return -1;
}

static int random_size(uint64_t *g) {
  switch (below(g, 12)) {
  case 0: return 0;
  case 1:
  case 2:
  case 3:
  case 4: return 1 + below(g, 8);
  case 5:
  case 6:
  case 7: return 1 + below(g, 300);
  case 8:
  case 9: return 1 + below(g, 3000);
  case 10: return 16384 - 4 + below(g, 8); /* around 64 KiB */
  default: return below(g, 8) ? 5000 + below(g, 30000) : 150000;
  }
}

/* A round of messages whose receives are determined one by one. */
static void exchange(uint64_t *g) {
  const comm_state *c = &comms[below(g, live)];
  int rank = my_rank(c), n = 1 + below(g, MAX_MESSAGES), defer = below(g, 3) == 0, form = below(g, 8),
      hot = below(g, 4) == 0 ? below(g, c->n) : -1;
  struct {
    int source, dest, tag, ints, send, receive, slack, how;
    uint64_t id;
  } m[MAX_MESSAGES];
  char late[MAX_RANKS][MAX_RANKS];
  for (int a = 0; a < c->n; a++)
    for (int b = 0; b < c->n; b++) late[a][b] = below(g, 2);
  for (int i = 0; i < n; i++) {
    m[i].source = below(g, c->n), m[i].dest = hot >= 0 ? hot : below(g, c->n);
    /* Not to oneself: MPICH 4.0 mixes up the order of these (see p2p_self_null for those that it
     * gets right). */
    if (m[i].dest == m[i].source) m[i].dest = (m[i].dest + 1) % c->n;
    m[i].tag = 16 * m[i].source + below(g, 3); /* a tag is used by one source only */
    m[i].ints = random_size(g), m[i].send = below(g, LAYOUTS), m[i].receive = below(g, LAYOUTS);
    m[i].ints -= m[i].ints % 24; /* whole elements of every layout … */
    if (m[i].ints == 0 && below(g, 2)) m[i].ints = 24;
    if (layouts[m[i].receive].ints == 1 && layouts[m[i].send].ints == 1) m[i].ints += below(g, 24); /* … or of ints */
    m[i].slack = below(g, 3) ? 0 : 24 * below(g, 4), m[i].how = below(g, 64);
    m[i].id = draw(g);
  }
  if (rank < 0 || c->n == 1) return;
  say(c, "exchange, hot rank", hot, -1, n);
  for (int phase = 0; phase < 3; phase++)
    for (int i = 0; i < n; i++) {
      int is_late = late[m[i].source][m[i].dest];
      MPI_Request r;
      if (phase == 1 && m[i].source == rank) {
        const layout *l = &layouts[m[i].send];
        int *p = buffer(l, m[i].ints, m[i].id, 1), count = m[i].ints / l->ints, to = m[i].dest, how = m[i].how % 8;
        pending_info info = {.p = p, .kind = P_SEND};
        messages++, bytes += 4 * m[i].ints;
        if (!is_late && how < 2) {
          if (how == 0) MPI_Send(p, count, l->type, to, m[i].tag, c->handle);
          else MPI_Ssend(p, count, l->type, to, m[i].tag, c->handle);
          free(p);
        } else {
          MPI_Datatype type = l->type;
          if (how == 7) MPI_Type_dup(type, &type); /* freed while in use */
          if (how == 3) MPI_Issend(p, count, type, to, m[i].tag, c->handle, &r);
          else if (how == 4) MPI_Send_init(p, count, type, to, m[i].tag, c->handle, &r), MPI_Start(&r);
          else MPI_Isend(p, count, type, to, m[i].tag, c->handle, &r);
          if (how == 7) MPI_Type_free(&type);
          /* a persistent request stays after completion: complete it here if that cannot block
           * others */
          if (how == 4) {
            MPI_Status st;
            if (is_late || !(m[i].how & 8)) {
              int flag = 0;
              MPI_Test(&r, &flag, &st);
              if (!flag) {
                MPI_Request_free(&r); /* the buffer is given up for good */
                continue;
              }
            } else MPI_Wait(&r, &st);
            MPI_Request_free(&r);
            free(p);
          } else keep(r, info);
        }
      }
      if ((phase == 0 && !is_late && m[i].dest == rank) || (phase == 2 && is_late && m[i].dest == rank)) {
        const layout *l = &layouts[m[i].receive];
        int room = m[i].ints + m[i].slack;
        if (room % l->ints) room += l->ints - room % l->ints;
        int *p = buffer(l, room, 0, 0), count = room / l->ints, how = m[i].how / 8;
        int source = how & 1 ? MPI_ANY_SOURCE : m[i].source,
            tag = how & 2 && source != MPI_ANY_SOURCE ? MPI_ANY_TAG : m[i].tag;
        pending_info info = {.p = p,
                             .room = room,
                             .ints = m[i].ints,
                             .source = m[i].source,
                             .tag = m[i].tag,
                             .l = l,
                             .id = m[i].id,
                             .kind = P_RECEIVE};
        MPI_Status st, probed;
        MPI_Message message;
        int form_of = phase == 0 || tag == MPI_ANY_TAG ? 0 : m[i].how % 6, flag = 0;
        /* A probe sees the first message that no receive posted earlier takes: so there must be
         * none of these receives outstanding that could still take a later one. Receives for the
         * same source are posted in order, all for earlier messages: it is the next. */
        switch (form_of) {
        case 1: MPI_Recv(p, count, l->type, source, tag, c->handle, &st); break;
        case 2:
          MPI_Probe(source, tag, c->handle, &probed);
          MPI_Recv(p, count, l->type, probed.MPI_SOURCE, probed.MPI_TAG, c->handle, &st);
          break;
        case 3:
          MPI_Mprobe(source, tag, c->handle, &message, &probed);
          MPI_Mrecv(p, count, l->type, &message, &st);
          break;
        case 4:
          while (!flag) MPI_Improbe(source, tag, c->handle, &flag, &message, &probed);
          MPI_Imrecv(p, count, l->type, &message, &r);
          break;
        case 5:
          while (!flag) MPI_Iprobe(source, tag, c->handle, &flag, &probed);
          MPI_Irecv(p, count, l->type, probed.MPI_SOURCE, probed.MPI_TAG, c->handle, &r);
          break;
        default: MPI_Irecv(p, count, l->type, source, tag, c->handle, &r);
        }
        if (form_of >= 2) {
          int words;
          MPI_Get_elements(&probed, MPI_INT, &words);
          if (words != m[i].ints || probed.MPI_SOURCE != m[i].source || probed.MPI_TAG != m[i].tag)
            BAD("probe: %d words from %d tag %d, want %d from %d tag %d", words, probed.MPI_SOURCE, probed.MPI_TAG,
                m[i].ints, m[i].source, m[i].tag);
        }
        if (form_of >= 1 && form_of <= 3) completed(&info, &st);
        else keep(r, info);
      }
    }
  if (!defer || pendings > MAX_PENDING - 2 * MAX_MESSAGES - 10) finish_pending(form);
}

/* Everybody sends to one rank, which takes them with ANY_SOURCE and a tag that all share. */
static void gather_any(uint64_t *g) {
  const comm_state *c = &comms[below(g, live)];
  int rank = my_rank(c), root = below(g, c->n), each = 1 + below(g, 6), ints = 2 + random_size(g) % 20000,
      tag = 5000 + operation % 20000, form = below(g, 3);
  if (rank < 0) return;
  say(c, "gather from any, form", form, root, ints);
  int *out[8];
  MPI_Request r[8];
  for (int i = 0; i < each; i++) {
    int n = i % 2 ? ints : 2;
    out[i] = malloc(n * sizeof(int));
    for (int k = 2; k < n; k++) out[i][k] = word(seed + operation, k + rank + i);
    out[i][0] = rank, out[i][1] = i;
    MPI_Isend(out[i], n, MPI_INT, root, tag, c->handle, &r[i]);
    messages++, bytes += 4 * n;
  }
  if (rank == root) {
    int total = each * c->n, next[MAX_RANKS] = {0};
    int **in = malloc(total * sizeof *in);
    MPI_Request *q = malloc(total * sizeof *q);
    MPI_Status *st = malloc(total * sizeof *st);
    for (int i = 0; i < total; i++) {
      in[i] = malloc(ints * sizeof(int));
      if (form == 0) MPI_Recv(in[i], ints, MPI_INT, MPI_ANY_SOURCE, tag, c->handle, &st[i]);
      else if (form == 1) MPI_Irecv(in[i], ints, MPI_INT, MPI_ANY_SOURCE, tag, c->handle, &q[i]);
      else {
        MPI_Message message;
        MPI_Mprobe(MPI_ANY_SOURCE, tag, c->handle, &message, &st[i]);
        MPI_Mrecv(in[i], ints, MPI_INT, &message, &st[i]);
      }
    }
    if (form == 1) MPI_Waitall(total, q, st);
    uint64_t sum = 0;
    for (int i = 0; i < total; i++) {
      int n, s = st[i].MPI_SOURCE, k = in[i][1];
      MPI_Get_count(&st[i], MPI_INT, &n);
      if (s < 0 || s >= c->n || in[i][0] != s || k != next[s])
        BAD("from %d: message %d of rank %d, want %d", s, k, in[i][0], s >= 0 && s < c->n ? next[s] : -1);
      next[s]++;
      if (n != (k % 2 ? ints : 2)) BAD("from %d: length %d", s, n);
      for (int w = 2; w < n; w++)
        if (in[i][w] != word(seed + operation, w + s + k)) BAD("from %d: wrong data", s);
      sum += mix(s * 100 + k);
      free(in[i]);
    }
    result = mix(result ^ sum);
    free(in), free(q), free(st);
  }
  MPI_Waitall(each, r, MPI_STATUSES_IGNORE);
  for (int i = 0; i < each; i++) free(out[i]);
}

#include "random_coll.h"

/* Makes one or more communicators out of an existing one; everybody keeps the membership of all of
 * them. */
static void make(uint64_t *g) {
  const comm_state *c = &comms[below(g, live)];
  int kind = below(g, 5), colours = 1 + below(g, 3), colour[MAX_RANKS], key[MAX_RANKS];
  for (int i = 0; i < c->n; i++) colour[i] = below(g, 6) ? below(g, colours) : -1, key[i] = below(g, 4);
  if (live + (kind <= 1 ? 1 : colours) > MAX_COMMS) return;
  int rank = my_rank(c), was = live;
  comm_state made_now[4] = {0};
  int k = kind <= 1 ? 1 : colours;
  for (int x = 0; x < k; x++) {
    made_now[x].handle = MPI_COMM_NULL;
    if (kind <= 1) {
      made_now[x].n = c->n;
      memcpy(made_now[x].world, c->world, sizeof c->world);
      continue;
    }
    if (kind == 2 || kind == 3) { /* split: by colour, in order of (key, rank) */
      for (int want = 0; want < 4; want++)
        for (int i = 0; i < c->n; i++)
          if (colour[i] == x && key[i] == want) made_now[x].world[made_now[x].n++] = c->world[i];
    } else /* groups: in reverse order */
      for (int i = c->n - 1; i >= 0; i--)
        if (colour[i] == x) made_now[x].world[made_now[x].n++] = c->world[i];
  }
  if (rank >= 0) {
    MPI_Comm d = MPI_COMM_NULL;
    made++;
    if (kind == 0) MPI_Comm_dup(c->handle, &d);
    else if (kind == 1) {
      MPI_Request r;
      MPI_Comm_idup(c->handle, &d, &r);
      MPI_Wait(&r, MPI_STATUS_IGNORE);
    } else if (kind <= 3) MPI_Comm_split(c->handle, colour[rank] < 0 ? MPI_UNDEFINED : colour[rank], key[rank], &d);
    else {
      MPI_Group all, mine;
      MPI_Comm_group(c->handle, &all);
      int n = 0, members[MAX_RANKS];
      for (int i = c->n - 1; i >= 0; i--)
        if (colour[i] == colour[rank]) members[n++] = i;
      if (colour[rank] < 0) n = 0;
      MPI_Group_incl(all, n, members, &mine);
      if (key[0] % 2) MPI_Comm_create(c->handle, mine, &d);
      else if (n > 0) MPI_Comm_create_group(c->handle, mine, 4000 + colour[rank], &d);
      MPI_Group_free(&all), MPI_Group_free(&mine);
    }
    int mine = kind <= 1 ? 0 : colour[rank];
    if ((d != MPI_COMM_NULL) != (mine >= 0))
      BAD("communicator of kind %d: null %d, want %d", kind, d == MPI_COMM_NULL, mine < 0);
    if (d != MPI_COMM_NULL) {
      made_now[mine].handle = d;
      int size, r;
      MPI_Comm_size(d, &size), MPI_Comm_rank(d, &r);
      if (size != made_now[mine].n || made_now[mine].world[r] != me)
        BAD("communicator of kind %d: rank %d of %d", kind, r, size);
    }
  }
  for (int x = 0; x < k; x++)
    if (made_now[x].n > 0) comms[live++] = made_now[x];
  (void)was;
}

static void drop(uint64_t *g) {
  if (live < 3) return;
  int i = 1 + below(g, live - 1), form = below(g, 8), under_way = below(g, 4) == 0;
  if (comms[i].handle != MPI_COMM_NULL) {
    /* With messages pending they complete all the same. So should collectives, but Open MPI 4.1
     * uses what it has freed then, natively too. */
    for (int k = 0; k < pendings; k++)
      if (infos[k].kind == P_COLLECTIVE) under_way = 0;
    if (!under_way) finish_pending(form);
    MPI_Comm_free(&comms[i].handle);
  }
  comms[i] = comms[--live];
}

static int skipped(const char *list, int i) {
  while (list && *list) {
    char *end;
    long a = strtol(list, &end, 10), b = a;
    if (*end == '-') b = strtol(end + 1, &end, 10);
    if (i >= a && i <= b) return 1;
    list = *end == ',' ? end + 1 : end;
    if (end == list && *end) break;
  }
  return 0;
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  int operations = argc > 2 ? atoi(argv[2]) : 1000, say_all = getenv("RANDOM_TRACE") != NULL;
  trace = say_all;
  make_layouts();
  MPI_Op_create(op_affine, 0, &affine);
  MPI_Type_contiguous(2, MPI_INT, &two_ints);
  MPI_Type_commit(&two_ints);
  comms[0].handle = MPI_COMM_WORLD, comms[0].n = np;
  for (int i = 0; i < np; i++) comms[0].world[i] = i;
  live = 1;
  for (operation = 0; operation < operations; operation++) {
    uint64_t g = mix(seed) ^ mix(operation + 0x1000000);
    int kind = below(&g, 20);
    if (skipped(argc > 3 ? argv[3] : NULL, operation)) continue;
    if (kind < 8) exchange(&g);
    else if (kind < 10) gather_any(&g);
    else if (kind < 17) collective(&g);
    else if (kind < 19) make(&g);
    else drop(&g);
  }
  finish_pending(0);
  while (live > 1) {
    live--;
    if (comms[live].handle != MPI_COMM_NULL) MPI_Comm_free(&comms[live].handle);
  }
  for (int i = 2; i < LAYOUTS; i++) MPI_Type_free(&layouts[i].type);
  MPI_Op_free(&affine), MPI_Type_free(&two_ints);
  line("seed %llu: %llu messages, %llu bytes, %llu collectives, %llu communicators: %016llx", (unsigned long long)seed,
       (unsigned long long)messages, (unsigned long long)bytes, (unsigned long long)collectives,
       (unsigned long long)made, (unsigned long long)result);
  return finish();
}
