/* A part of random.c, which explains why the outcome is determined: rounds of messages. */

/* Runs a round of messages each of whose receives is determined. */
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
    /* Not to the same rank, because MPICH 4.0 mixes up the order of such messages (p2p_self_null
     * has those that it handles correctly). */
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
          /* a persistent request remains after completion: complete it here if that cannot block
           * others */
          if (how == 4) {
            MPI_Status st;
            if (is_late || !(m[i].how & 8)) {
              int flag = 0;
              MPI_Test(&r, &flag, &st);
              if (!flag) {
                MPI_Request_free(&r); /* the buffer is never reused */
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
        /* A probe finds the first message that no earlier receive matches. So none of these
         * receives may be outstanding that could match a later message. Receives for the same
         * source are posted in order, all for earlier messages, so the probe finds the next one. */
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

/* Lets all ranks send to one rank, which receives with ANY_SOURCE and a tag that all share. */
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
