/* A random program: point to point in every form, collectives, communicators made and freed. All ranks derive the same script from the seed;
 * everything that arrives is known beforehand and checked, and rank r prints a digest of what it got.
 *
 *   random SEED [OPERATIONS [SKIP]]     SKIP: "100-250,300-300" leaves these operations out
 *
 * An operation is a round of messages, a collective, or the making or freeing of a communicator. Each draws from a generator of its own, and
 * what it uses it finds in the state that the operations before it left, so any subset of the operations is again a valid program: on
 * failure a driver leaves out more and more of them (test/e2e: minimize).
 *
 * Why the outcome is determined. In a round each rank posts its early receives, then starts its sends, then does its late
 * receives; a pair of ranks is early or late as a whole, and all its receives are posted in the order of the sends. A message
 * is matched by a receive for its source, or by ANY_SOURCE with a tag that only its source uses; then the k-th message of a
 * source goes to the k-th receive for that source, whatever else happens. Rounds for which this does not hold (ANY_SOURCE with a tag
 * that many senders use) check instead that each message comes once and in order per sender; their tag belongs to the round.
 * Blocking sends are used only within early pairs, so a rank that blocks waits for one that is in an earlier operation or phase.
 */
#include "check.h"

enum { MAX_COMMS = 10, MAX_RANKS = 64, MAX_MESSAGES = 40, MAX_PENDING = 400 };

typedef struct { MPI_Comm handle; int n, world[MAX_RANKS]; } comm_state; /* handle null if I am not a member */
static comm_state comms[MAX_COMMS];
static int live, operation;
static uint64_t seed, result, messages, bytes, collectives, made;

#define BAD(...) do { failed(__FILE__, __LINE__, __VA_ARGS__); fprintf(stderr, "rank %d: in operation %d of seed %llu\n", me, operation, \
    (unsigned long long)seed); fflush(stderr); MPI_Abort(MPI_COMM_WORLD, 3); } while (0)

/* Datatypes: each is `ints` 4-byte words per element at these positions within `extent` words. Same words, same signature: any
 * of them may meet any other. */
typedef struct { MPI_Datatype type; int ints, extent, at[24]; } layout;
enum { LAYOUTS = 9 };
static layout layouts[LAYOUTS];

static void make_layouts(void) {
  MPI_Datatype t;
  int k = 0;
  layouts[k++] = (layout){MPI_INT, 1, 1, {0}};
  layouts[k++] = (layout){MPI_INT, 1, 1, {0}};
  MPI_Type_contiguous(3, MPI_INT, &layouts[k].type);
  layouts[k].ints = 3, layouts[k].extent = 3;
  for (int i = 0; i < 3; i++) layouts[k].at[i] = i;
  k++;
  MPI_Type_vector(4, 2, 3, MPI_INT, &layouts[k].type); /* extent 11 */
  layouts[k].ints = 8, layouts[k].extent = 11;
  for (int i = 0; i < 8; i++) layouts[k].at[i] = i / 2 * 3 + i % 2;
  k++;
  int lengths[3] = {2, 1, 3}, displs[3] = {5, 0, 8}; /* not in order of address */
  MPI_Type_indexed(3, lengths, displs, MPI_INT, &layouts[k].type);
  layouts[k] = (layout){layouts[k].type, 6, 11, {5, 6, 0, 8, 9, 10}};
  k++;
  MPI_Aint places[2] = {4, 16};
  int blocks[2] = {2, 1};
  MPI_Datatype kinds[2] = {MPI_INT, MPI_INT};
  MPI_Type_create_struct(2, blocks, places, kinds, &t);
  MPI_Type_create_resized(t, 0, 24, &layouts[k].type);
  MPI_Type_free(&t);
  layouts[k] = (layout){layouts[k].type, 3, 6, {1, 2, 4}};
  k++;
  int sizes[2] = {4, 5}, sub[2] = {2, 3}, first[2] = {1, 1};
  MPI_Type_create_subarray(2, sizes, sub, first, MPI_ORDER_C, MPI_INT, &layouts[k].type);
  layouts[k] = (layout){layouts[k].type, 6, 20, {6, 7, 8, 11, 12, 13}};
  k++;
  layouts[k] = layouts[3], layouts[k].extent = 16;
  MPI_Type_create_resized(layouts[3].type, 0, 4 * 16, &layouts[k].type);
  k++;
  MPI_Type_create_indexed_block(3, 2, (int[]){4, 0, 2}, MPI_INT, &layouts[k].type);
  layouts[k] = (layout){layouts[k].type, 6, 6, {4, 5, 0, 1, 2, 3}};
  k++;
  for (int i = 2; i < k; i++) MPI_Type_commit(&layouts[i].type);
}

static int trace;
/* With RANDOM_TRACE set each rank says what it does. */
static void say(const comm_state *c, const char *what, int kind, int root, int n) {
  char text[400];
  int at = 0;
  if (!trace) return;
  for (int i = 0; i < c->n; i++) at += snprintf(text + at, sizeof text - at, " %d", c->world[i]);
  fprintf(stderr, "rank %d: operation %d: %s %d root %d size %d in%s\n", me, operation, what, kind, root, n, text);
}

static inline int word(uint64_t id, int i) { return (int)mix(id * 0x9e3779b1u + (unsigned)i); }

enum { GAP = 0x6b6b6b6b };
/* A buffer for `ints` words in a layout, filled with message id's words (or only gaps, if receiving). */
static int *buffer(const layout *l, int ints, uint64_t id, int sending) {
  int elements = (ints + l->ints - 1) / l->ints, n = elements * l->extent + 24;
  int *p = malloc((size_t)n * sizeof *p);
  for (int i = 0; i < n; i++) p[i] = GAP;
  if (sending) for (int i = 0; i < ints; i++) p[i / l->ints * l->extent + l->at[i % l->ints]] = word(id, i);
  return p;
}
static void verify(int *p, const layout *l, int room, int ints, uint64_t id) {
  int elements = (room + l->ints - 1) / l->ints, n = elements * l->extent + 24;
  for (int i = 0; i < ints; i++) {
    int *at = &p[i / l->ints * l->extent + l->at[i % l->ints]];
    if (*at != word(id, i)) BAD("message %llx: word %d of %d is %x, want %x", (unsigned long long)id, i, ints, *at, word(id, i));
    result = mix(result ^ (unsigned)*at);
    *at = GAP;
  }
  for (int i = 0; i < n; i++) if (p[i] != GAP) BAD("message %llx of %d words: wrote %x outside, at word %d of %d", (unsigned long long)id, ints, p[i], i, n);
}

/* What is under way, completed now or some operations later. */
typedef struct { int *p, *p2, room, ints, source, tag; const layout *l; uint64_t id; int kind; int *want; } pending_info;
enum { P_SEND, P_RECEIVE, P_COLLECTIVE };
static MPI_Request requests[MAX_PENDING];
static pending_info infos[MAX_PENDING];
static int pendings;

static void completed(pending_info *o, MPI_Status *st) {
  if (o->kind == P_RECEIVE) {
    int n;
    MPI_Get_elements(st, o->l->type, &n);
    if (n != o->ints || st->MPI_SOURCE != o->source || st->MPI_TAG != o->tag)
      BAD("message %llx: %d words from %d tag %d, want %d words from %d tag %d", (unsigned long long)o->id, n, st->MPI_SOURCE, st->MPI_TAG, o->ints, o->source, o->tag);
    verify(o->p, o->l, o->room, o->ints, o->id);
  } else if (o->kind == P_COLLECTIVE) {
    for (int i = 0; i < o->ints; i++) {
      if (o->p[i] != o->want[i]) BAD("collective %llx: word %d of %d is %x, want %x", (unsigned long long)o->id, i, o->ints, o->p[i], o->want[i]);
      result = mix(result ^ (unsigned)o->p[i]);
    }
    free(o->want);
  }
  free(o->p), free(o->p2);
  o->p = NULL;
}

/* Completes everything pending in one of the forms; `some` leaves what is not done yet. The digest must not depend on the order of
 * completion, so results are folded per request in order of posting. */
static void finish_pending(int form) {
  static MPI_Status st[MAX_PENDING], many[MAX_PENDING];
  static int indices[MAX_PENDING];
  int n = pendings, index, count, flag, left = n;
  switch (form) {
  case 0: MPI_Waitall(n, requests, st); break;
  case 1: for (; left > 0; left--) { MPI_Waitany(n, requests, &index, &many[0]); if (index < 0 || index >= n) BAD("Waitany gave %d", index); st[index] = many[0]; } break;
  case 2:
    for (; left > 0; left -= count) {
      MPI_Waitsome(n, requests, &count, indices, many);
      if (count < 1 || count > left) BAD("Waitsome gave %d", count);
      for (int i = 0; i < count; i++) st[indices[i]] = many[i];
    }
    break;
  case 3: for (flag = 0; !flag;) MPI_Testall(n, requests, &flag, st); break;
  case 4: while (left > 0) { MPI_Testany(n, requests, &index, &flag, &many[0]); if (flag) { if (index < 0) BAD("Testany gave none"); st[index] = many[0], left--; } } break;
  case 5:
    while (left > 0) {
      MPI_Testsome(n, requests, &count, indices, many);
      if (count < 0 || count > left) BAD("Testsome gave %d", count);
      for (int i = 0; i < count; i++) st[indices[i]] = many[i];
      left -= count;
    }
    break;
  case 6: for (int i = n - 1; i >= 0; i--) MPI_Wait(&requests[i], &st[i]); break;
  case 7: for (int i = 0; left > 0; i = (i + 1) % n) if (requests[i] != MPI_REQUEST_NULL) { MPI_Test(&requests[i], &flag, &st[i]); left -= flag; } break;
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
  for (int i = 0; i < c->n; i++) if (c->world[i] == me) return i;
  return -1;
}

static int random_size(uint64_t *g) {
  switch (below(g, 12)) {
  case 0: return 0;
  case 1: case 2: case 3: case 4: return 1 + below(g, 8);
  case 5: case 6: case 7: return 1 + below(g, 300);
  case 8: case 9: return 1 + below(g, 3000);
  case 10: return 16384 - 4 + below(g, 8); /* around 64 KiB */
  default: return below(g, 8) ? 5000 + below(g, 30000) : 150000;
  }
}

/* A round of messages whose receives are determined one by one. */
static void exchange(uint64_t *g) {
  const comm_state *c = &comms[below(g, live)];
  int rank = my_rank(c), n = 1 + below(g, MAX_MESSAGES), defer = below(g, 3) == 0, form = below(g, 8), hot = below(g, 4) == 0 ? below(g, c->n) : -1;
  struct { int source, dest, tag, ints, send, receive, slack, how; uint64_t id; } m[MAX_MESSAGES];
  char late[MAX_RANKS][MAX_RANKS];
  for (int a = 0; a < c->n; a++) for (int b = 0; b < c->n; b++) late[a][b] = below(g, 2);
  for (int i = 0; i < n; i++) {
    m[i].source = below(g, c->n), m[i].dest = hot >= 0 ? hot : below(g, c->n);
    /* Not to oneself: MPICH 4.0 mixes up the order of these (see p2p_self_null for those that it gets right). */
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
          if (how == 4) { /* a persistent request stays after completion: complete it here if that cannot block others */
            MPI_Status st;
            if (is_late || !(m[i].how & 8)) {
              int flag = 0;
              MPI_Test(&r, &flag, &st);
              if (!flag) { MPI_Request_free(&r); /* the buffer is given up for good */ continue; }
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
        int source = how & 1 ? MPI_ANY_SOURCE : m[i].source, tag = how & 2 && source != MPI_ANY_SOURCE ? MPI_ANY_TAG : m[i].tag;
        pending_info info = {.p = p, .room = room, .ints = m[i].ints, .source = m[i].source, .tag = m[i].tag, .l = l, .id = m[i].id, .kind = P_RECEIVE};
        MPI_Status st, probed;
        MPI_Message message;
        int form_of = phase == 0 || tag == MPI_ANY_TAG ? 0 : m[i].how % 6, flag = 0;
        /* A probe sees the first message that no receive posted earlier takes: so there must be none of these receives outstanding that
         * could still take a later one. Receives for the same source are posted in order, all for earlier messages: it is the next. */
        switch (form_of) {
        case 1: MPI_Recv(p, count, l->type, source, tag, c->handle, &st); break;
        case 2: MPI_Probe(source, tag, c->handle, &probed); MPI_Recv(p, count, l->type, probed.MPI_SOURCE, probed.MPI_TAG, c->handle, &st); break;
        case 3: MPI_Mprobe(source, tag, c->handle, &message, &probed); MPI_Mrecv(p, count, l->type, &message, &st); break;
        case 4: while (!flag) MPI_Improbe(source, tag, c->handle, &flag, &message, &probed); MPI_Imrecv(p, count, l->type, &message, &r); break;
        case 5: while (!flag) MPI_Iprobe(source, tag, c->handle, &flag, &probed); MPI_Irecv(p, count, l->type, probed.MPI_SOURCE, probed.MPI_TAG, c->handle, &r); break;
        default: MPI_Irecv(p, count, l->type, source, tag, c->handle, &r);
        }
        if (form_of >= 2) {
          int words;
          MPI_Get_elements(&probed, MPI_INT, &words);
          if (words != m[i].ints || probed.MPI_SOURCE != m[i].source || probed.MPI_TAG != m[i].tag) BAD("probe: %d words from %d tag %d, want %d from %d tag %d",
              words, probed.MPI_SOURCE, probed.MPI_TAG, m[i].ints, m[i].source, m[i].tag);
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
  int rank = my_rank(c), root = below(g, c->n), each = 1 + below(g, 6), ints = 2 + random_size(g) % 20000, tag = 5000 + operation % 20000, form = below(g, 3);
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
      if (s < 0 || s >= c->n || in[i][0] != s || k != next[s]) BAD("from %d: message %d of rank %d, want %d", s, k, in[i][0], s >= 0 && s < c->n ? next[s] : -1);
      next[s]++;
      if (n != (k % 2 ? ints : 2)) BAD("from %d: length %d", s, n);
      for (int w = 2; w < n; w++) if (in[i][w] != word(seed + operation, w + s + k)) BAD("from %d: wrong data", s);
      sum += mix(s * 100 + k);
      free(in[i]);
    }
    result = mix(result ^ sum);
    free(in), free(q), free(st);
  }
  MPI_Waitall(each, r, MPI_STATUSES_IGNORE);
  for (int i = 0; i < each; i++) free(out[i]);
}

/* x -> a x + b mod 2^32: associative, not commutative */
static void op_affine(void *in, void *inout, int *n, MPI_Datatype *type) {
  unsigned *f = in, *g = inout;
  (void)type;
  for (int i = 0; i < *n; i++, f += 2, g += 2) {
    unsigned a = f[0] * g[0], b = g[0] * f[1] + g[1];
    g[0] = a, g[1] = b;
  }
}
static MPI_Op affine;
static MPI_Datatype two_ints;

static void fold(int *want, int n, uint64_t id, int first, int last, int from, int op, int pairs) {
  for (int i = 0; i < n; i++) {
    if (pairs) {
      unsigned a = word(id + first, 2 * (from + i)), b = word(id + first, 2 * (from + i) + 1);
      for (int p = first + 1; p <= last; p++) {
        unsigned c = word(id + p, 2 * (from + i)), d = word(id + p, 2 * (from + i) + 1);
        b = c * b + d, a = a * c;
      }
      want[2 * i] = (int)a, want[2 * i + 1] = (int)b;
      continue;
    }
    int v = word(id + first, from + i);
    for (int p = first + 1; p <= last; p++) {
      int w = word(id + p, from + i);
      v = op == 0 ? (int)((unsigned)v + (unsigned)w) : op == 1 ? (v > w ? v : w) : v ^ w;
    }
    want[i] = v;
  }
}

static void collective(uint64_t *g) {
  const comm_state *c = &comms[below(g, live)];
  int rank = my_rank(c), size = c->n, kind = below(g, 15), root = below(g, size), n = random_size(g), nonblocking = below(g, 2), op = below(g, 3);
  int pairs = below(g, 3) == 0, in_place = below(g, 3) == 0, finish_form = below(g, 8), defer = below(g, 2);
  uint64_t id = draw(g);
  if (n > 20000) n /= 8;
  if (n * size > 100000) n = 100000 / size;
  int counts[MAX_RANKS], displs[MAX_RANKS], scounts[MAX_RANKS], sdispls[MAX_RANKS], total = 0, stotal = 0;
  for (int p = 0; p < size; p++) { /* v-variants: uneven, zeros, in reverse order, gaps */
    counts[p] = below(g, 3) ? below(g, n + 1) : 0;
  }
  if (rank < 0) return;
  say(c, nonblocking ? "nonblocking collective" : "collective", kind, root, n);
  collectives++;
  for (int p = size - 1; p >= 0; p--) displs[p] = total, total += counts[p] + 3;
  int full = n * size * (pairs ? 2 : 1) + total + 16;
  int *a = malloc(full * sizeof *a), *b = malloc(full * sizeof *b), *want = malloc(full * sizeof *want), words = 0;
  for (int i = 0; i < full; i++) a[i] = word(id + rank, i), b[i] = want[i] = GAP;
  MPI_Request r = MPI_REQUEST_NULL;
  MPI_Op ops[3] = {MPI_SUM, MPI_MAX, MPI_BXOR}, the_op = pairs ? affine : ops[op];
  MPI_Datatype type = pairs ? two_ints : MPI_INT;
  int w = pairs ? 2 : 1;
  const void *send = a;
#define CALL(NAME, ...) (nonblocking ? MPI_I##NAME(__VA_ARGS__, c->handle, &r) : MPI_##NAME(__VA_ARGS__, c->handle))
#define bcast_ Bcast
  switch (kind) {
  case 0:
    if (nonblocking) MPI_Ibarrier(c->handle, &r);
    else MPI_Barrier(c->handle);
    break;
  case 1:
    words = n;
    for (int i = 0; i < n; i++) want[i] = word(id + root, i), b[i] = rank == root ? want[i] : GAP;
    if (nonblocking) MPI_Ibcast(b, n, MPI_INT, root, c->handle, &r);
    else MPI_Bcast(b, n, MPI_INT, root, c->handle);
    break;
  case 2:
    words = full;
    if (rank == root) for (int i = 0; i < n * size; i++) want[i] = word(id + i / n, i % n);
    if (rank == root && in_place) memcpy(b + rank * n, a, n * sizeof *a), send = MPI_IN_PLACE;
    if (nonblocking) MPI_Igather(send, n, MPI_INT, b, n, MPI_INT, root, c->handle, &r);
    else MPI_Gather(send, n, MPI_INT, b, n, MPI_INT, root, c->handle);
    break;
  case 3:
    words = full;
    if (rank == root) for (int p = 0; p < size; p++) for (int i = 0; i < counts[p]; i++) want[displs[p] + i] = word(id + p, i);
    if (nonblocking) MPI_Igatherv(a, counts[rank], MPI_INT, b, counts, displs, MPI_INT, root, c->handle, &r);
    else MPI_Gatherv(a, counts[rank], MPI_INT, b, counts, displs, MPI_INT, root, c->handle);
    break;
  case 4:
    words = full;
    for (int i = 0; i < n; i++) want[i] = word(id + root, rank * n + i);
    if (nonblocking) MPI_Iscatter(a, n, MPI_INT, b, n, MPI_INT, root, c->handle, &r);
    else MPI_Scatter(a, n, MPI_INT, b, n, MPI_INT, root, c->handle);
    break;
  case 5:
    words = full;
    for (int i = 0; i < counts[rank]; i++) want[i] = word(id + root, displs[rank] + i);
    if (nonblocking) MPI_Iscatterv(a, counts, displs, MPI_INT, b, counts[rank], MPI_INT, root, c->handle, &r);
    else MPI_Scatterv(a, counts, displs, MPI_INT, b, counts[rank], MPI_INT, root, c->handle);
    break;
  case 6:
    words = full;
    for (int i = 0; i < n * size; i++) want[i] = word(id + i / n, i % n);
    if (in_place) memcpy(b + rank * n, a, n * sizeof *a), send = MPI_IN_PLACE;
    if (nonblocking) MPI_Iallgather(send, n, MPI_INT, b, n, MPI_INT, c->handle, &r);
    else MPI_Allgather(send, n, MPI_INT, b, n, MPI_INT, c->handle);
    break;
  case 7:
    words = full;
    for (int p = 0; p < size; p++) for (int i = 0; i < counts[p]; i++) want[displs[p] + i] = word(id + p, i);
    if (nonblocking) MPI_Iallgatherv(a, counts[rank], MPI_INT, b, counts, displs, MPI_INT, c->handle, &r);
    else MPI_Allgatherv(a, counts[rank], MPI_INT, b, counts, displs, MPI_INT, c->handle);
    break;
  case 8:
    words = full;
    for (int i = 0; i < n * size; i++) want[i] = word(id + i / n, rank * n + i % n);
    if (nonblocking) MPI_Ialltoall(a, n, MPI_INT, b, n, MPI_INT, c->handle, &r);
    else MPI_Alltoall(a, n, MPI_INT, b, n, MPI_INT, c->handle);
    break;
  case 9: { /* p sends to q: counts[(p + 2 q) % size] words from q * n on */
    words = full;
    for (int p = 0; p < size; p++) scounts[p] = counts[(rank + 2 * p) % size], sdispls[p] = p * n, stotal += scounts[p];
    int rc[MAX_RANKS];
    for (int p = 0; p < size; p++) rc[p] = counts[(p + 2 * rank) % size];
    for (int p = 0; p < size; p++) for (int i = 0; i < rc[p]; i++) want[(size - 1 - p) * n + i] = word(id + p, rank * n + i);
    for (int p = 0; p < size; p++) displs[p] = (size - 1 - p) * n;
    if (nonblocking) { /* the arrays must stay: take the blocking form's place by waiting at once */
      MPI_Ialltoallv(a, scounts, sdispls, MPI_INT, b, rc, displs, MPI_INT, c->handle, &r);
      MPI_Wait(&r, MPI_STATUS_IGNORE);
    } else MPI_Alltoallv(a, scounts, sdispls, MPI_INT, b, rc, displs, MPI_INT, c->handle);
    break;
  }
  case 10:
    if (rank == root) fold(want, n, id, 0, size - 1, 0, op, pairs), words = n * w;
    /* not in place: there MPICH 4.0 crashes now and then */
    if (nonblocking) MPI_Ireduce(send, b, n, type, the_op, root, c->handle, &r);
    else MPI_Reduce(send, b, n, type, the_op, root, c->handle);
    break;
  case 11:
    fold(want, n, id, 0, size - 1, 0, op, pairs), words = full;
    if (in_place) memcpy(b, a, n * w * sizeof *a), send = MPI_IN_PLACE;
    if (nonblocking) MPI_Iallreduce(send, b, n, type, the_op, c->handle, &r);
    else MPI_Allreduce(send, b, n, type, the_op, c->handle);
    break;
  case 12:
    fold(want, n, id, 0, rank, 0, op, pairs), words = full;
    if (in_place) memcpy(b, a, n * w * sizeof *a), send = MPI_IN_PLACE;
    if (nonblocking) MPI_Iscan(send, b, n, type, the_op, c->handle, &r);
    else MPI_Scan(send, b, n, type, the_op, c->handle);
    break;
  case 13:
    if (rank > 0) fold(want, n, id, 0, rank - 1, 0, op, pairs), words = n * w;
    if (nonblocking) MPI_Iexscan(a, b, n, type, the_op, c->handle, &r);
    else MPI_Exscan(a, b, n, type, the_op, c->handle);
    break;
  case 14:
    fold(want, n, id, 0, size - 1, rank * n, op, pairs), words = n * w;
    if (nonblocking) MPI_Ireduce_scatter_block(a, b, n, type, the_op, c->handle, &r);
    else MPI_Reduce_scatter_block(a, b, n, type, the_op, c->handle);
    break;
  }
  pending_info info = {.p = b, .p2 = a, .ints = words, .want = want, .id = id, .kind = P_COLLECTIVE};
  if (r == MPI_REQUEST_NULL) completed(&info, MPI_STATUS_IGNORE);
  else {
    /* count arrays of the v-variants are on this stack */
    if (kind == 3 || kind == 5 || kind == 7) {
      MPI_Wait(&r, MPI_STATUS_IGNORE);
      completed(&info, MPI_STATUS_IGNORE);
    } else keep(r, info);
  }
  if (!defer || pendings > MAX_PENDING - 2 * MAX_MESSAGES - 10) finish_pending(finish_form);
}

/* Makes one or more communicators out of an existing one; everybody keeps the membership of all of them. */
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
    if (kind <= 1) { made_now[x].n = c->n; memcpy(made_now[x].world, c->world, sizeof c->world); continue; }
    if (kind == 2 || kind == 3) { /* split: by colour, in order of (key, rank) */
      for (int want = 0; want < 4; want++)
        for (int i = 0; i < c->n; i++) if (colour[i] == x && key[i] == want) made_now[x].world[made_now[x].n++] = c->world[i];
    } else /* groups: in reverse order */
      for (int i = c->n - 1; i >= 0; i--) if (colour[i] == x) made_now[x].world[made_now[x].n++] = c->world[i];
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
      for (int i = c->n - 1; i >= 0; i--) if (colour[i] == colour[rank]) members[n++] = i;
      if (colour[rank] < 0) n = 0;
      MPI_Group_incl(all, n, members, &mine);
      if (key[0] % 2) MPI_Comm_create(c->handle, mine, &d);
      else if (n > 0) MPI_Comm_create_group(c->handle, mine, 4000 + colour[rank], &d);
      MPI_Group_free(&all), MPI_Group_free(&mine);
    }
    int mine = kind <= 1 ? 0 : colour[rank];
    if ((d != MPI_COMM_NULL) != (mine >= 0)) BAD("communicator of kind %d: null %d, want %d", kind, d == MPI_COMM_NULL, mine < 0);
    if (d != MPI_COMM_NULL) {
      made_now[mine].handle = d;
      int size, r;
      MPI_Comm_size(d, &size), MPI_Comm_rank(d, &r);
      if (size != made_now[mine].n || made_now[mine].world[r] != me) BAD("communicator of kind %d: rank %d of %d", kind, r, size);
    }
  }
  for (int x = 0; x < k; x++) if (made_now[x].n > 0) comms[live++] = made_now[x];
  (void)was;
}

static void drop(uint64_t *g) {
  if (live < 3) return;
  int i = 1 + below(g, live - 1), form = below(g, 8), under_way = below(g, 4) == 0;
  if (comms[i].handle != MPI_COMM_NULL) {
    /* With messages pending they complete all the same. So should collectives, but Open MPI 4.1 uses what it has freed then, natively too. */
    for (int k = 0; k < pendings; k++) if (infos[k].kind == P_COLLECTIVE) under_way = 0;
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
  line("seed %llu: %llu messages, %llu bytes, %llu collectives, %llu communicators: %016llx", (unsigned long long)seed, (unsigned long long)messages,
       (unsigned long long)bytes, (unsigned long long)collectives, (unsigned long long)made, (unsigned long long)result);
  return finish();
}
