/* A part of random.c: making and freeing communicators. */

/* Makes one or more communicators from an existing one; every rank keeps the membership of all of
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
    /* Pending messages complete all the same. Collectives should too, but Open MPI 4.1 uses the
     * freed communicator then, natively too. */
    for (int k = 0; k < pendings; k++)
      if (infos[k].kind == P_COLLECTIVE) under_way = 0;
    if (!under_way) finish_pending(form);
    MPI_Comm_free(&comms[i].handle);
  }
  comms[i] = comms[--live];
}
