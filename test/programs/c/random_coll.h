/* Part of random.c: one random collective, blocking or not, whose outcome is computed
 * beforehand. */

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
  int rank = my_rank(c), size = c->n, kind = below(g, 15), root = below(g, size), n = random_size(g),
      nonblocking = below(g, 2), op = below(g, 3);
  int pairs = below(g, 3) == 0, in_place = below(g, 3) == 0, finish_form = below(g, 8), defer = below(g, 2);
  uint64_t id = draw(g);
  if (n > 20000) n /= 8;
  if (n * size > 100000) n = 100000 / size;
  int counts[MAX_RANKS], displs[MAX_RANKS], scounts[MAX_RANKS], sdispls[MAX_RANKS], total = 0, stotal = 0;
  for (int p = 0; p < size; p++) { /* v-variants: uneven counts, zeros, reverse order, gaps */
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
    if (rank == root)
      for (int i = 0; i < n * size; i++) want[i] = word(id + i / n, i % n);
    if (rank == root && in_place) memcpy(b + rank * n, a, n * sizeof *a), send = MPI_IN_PLACE;
    if (nonblocking) MPI_Igather(send, n, MPI_INT, b, n, MPI_INT, root, c->handle, &r);
    else MPI_Gather(send, n, MPI_INT, b, n, MPI_INT, root, c->handle);
    break;
  case 3:
    words = full;
    if (rank == root)
      for (int p = 0; p < size; p++)
        for (int i = 0; i < counts[p]; i++) want[displs[p] + i] = word(id + p, i);
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
    for (int p = 0; p < size; p++)
      for (int i = 0; i < counts[p]; i++) want[displs[p] + i] = word(id + p, i);
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
    for (int p = 0; p < size; p++)
      for (int i = 0; i < rc[p]; i++) want[(size - 1 - p) * n + i] = word(id + p, rank * n + i);
    for (int p = 0; p < size; p++) displs[p] = (size - 1 - p) * n;
    if (nonblocking) { /* the arrays must stay valid: wait at once, as the blocking form does */
      MPI_Ialltoallv(a, scounts, sdispls, MPI_INT, b, rc, displs, MPI_INT, c->handle, &r);
      MPI_Wait(&r, MPI_STATUS_IGNORE);
    } else MPI_Alltoallv(a, scounts, sdispls, MPI_INT, b, rc, displs, MPI_INT, c->handle);
    break;
  }
  case 10:
    if (rank == root) fold(want, n, id, 0, size - 1, 0, op, pairs), words = n * w;
    /* not in place, where MPICH 4.0 sometimes crashes */
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
