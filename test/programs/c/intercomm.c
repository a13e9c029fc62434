/* Intercommunicators between groups of every shape: making and merging them, their properties,
 * point to point in all modes, and communicators made from them. Collectives over them are in
 * coll/inter.c. */
#include "check.h"

static MPI_Comm world;
static int mine, others, rank;    /* the sizes of the groups, and this process's rank in its group */
static int my_first, other_first; /* world ranks of the groups' first members */

/* Returns the group, 0 or 1, of a world rank in a shape, or -1 if it is in neither. */
static int shape(int which, int r) {
  switch (which) {
  case 0: return r >= (np + 1) / 2;
  case 1: return r % 2 == 0; /* the group with rank 0 is not the first */
  case 2: return r != np - 1;
  default: return r < np - 2 ? -1 : r == np - 1; /* two single ranks */
  }
}

static int world_rank(int which, int group, int r) {
  for (int w = 0; w < np; w++)
    if (shape(which, w) == group && r-- == 0) return w;
  return -1;
}

static void describe(const char *what, MPI_Comm c) {
  int inter, local, remote, r, size, ranks[2][64];
  MPI_Group g[2], w;
  MPI_Comm_test_inter(c, &inter);
  MPI_Comm_size(c, &local);
  MPI_Comm_remote_size(c, &remote);
  MPI_Comm_rank(c, &r);
  MPI_Comm_group(c, &g[0]);
  MPI_Comm_remote_group(c, &g[1]);
  MPI_Comm_group(world, &w);
  char text[400];
  int n = snprintf(text, sizeof text, "%s: inter %d, rank %d of %d to %d:", what, inter, r, local, remote);
  for (int k = 0; k < 2; k++) {
    MPI_Group_size(g[k], &size);
    SAME(size, k ? remote : local, "size of a group");
    int all[64];
    for (int i = 0; i < size; i++) all[i] = i;
    MPI_Group_translate_ranks(g[k], size, all, w, ranks[k]);
    for (int i = 0; i < size; i++)
      n += snprintf(text + n, sizeof text - n, "%s%d", i ? "," : k ? " / " : " ", ranks[k][i]);
    MPI_Group_free(&g[k]);
  }
  MPI_Group_free(&w);
  line("%s", text);
}

/* Exchanges messages between every two processes of different groups. */
static void modes(MPI_Comm c) {
  enum { N = 300 };
  static double out[N], in[64][N];
  char *attached = malloc(64 * (N * 8 + MPI_BSEND_OVERHEAD));
  MPI_Request r[128];
  MPI_Status s[128], one;
  int n = 0;
  for (int i = 0; i < N; i++) out[i] = me * 1000 + i;
  MPI_Buffer_attach(attached, 64 * (N * 8 + MPI_BSEND_OVERHEAD));
  for (int mode = 0; mode < 8; mode++) {
    n = 0;
    for (int p = 0; p < others; p++) MPI_Irecv(in[p], N, MPI_DOUBLE, p, 10 + mode, c, &r[n++]);
    MPI_Barrier(c); /* ready sends need their receives */
    for (int p = 0; p < others; p++) {
      int count = N - p - mode;
      switch (mode) {
      case 0: MPI_Send(out, count, MPI_DOUBLE, p, 10, c); break;
      case 1: MPI_Rsend(out, count, MPI_DOUBLE, p, 11, c); break;
      case 2: MPI_Bsend(out, count, MPI_DOUBLE, p, 12, c); break;
      case 3: MPI_Issend(out, count, MPI_DOUBLE, p, 13, c, &r[n++]); break;
      case 4: MPI_Isend(out, count, MPI_DOUBLE, p, 14, c, &r[n++]); break;
      case 5: MPI_Irsend(out, count, MPI_DOUBLE, p, 15, c, &r[n++]); break;
      case 6: MPI_Ibsend(out, count, MPI_DOUBLE, p, 16, c, &r[n++]); break;
      case 7: MPI_Ssend(out, count, MPI_DOUBLE, p, 17, c); break;
      }
    }
    MPI_Waitall(n, r, s);
    for (int p = 0; p < others; p++) {
      int got;
      MPI_Get_count(&s[p], MPI_DOUBLE, &got);
      SAME(s[p].MPI_SOURCE, p, "source");
      SAME(s[p].MPI_TAG, 10 + mode, "tag");
      line("mode %d from %d: %d, %g", mode, p, got, in[p][got - 1]);
    }
  }
  void *was;
  int size;
  MPI_Buffer_detach(&was, &size);
  free(attached);

  /* Persistent, twice, with a wildcard at the receiving end. */
  int value[64], from[64] = {0};
  n = 0;
  int x = me;
  for (int p = 0; p < others; p++) MPI_Send_init(&x, 1, MPI_INT, p, 20, c, &r[n++]);
  for (int p = 0; p < others; p++) MPI_Recv_init(&value[p], 1, MPI_INT, MPI_ANY_SOURCE, 20, c, &r[n++]);
  for (int round = 0; round < 2; round++) {
    MPI_Startall(n, r);
    MPI_Waitall(n, r, s);
    for (int p = 0; p < others; p++) from[s[others + p].MPI_SOURCE] += 1 + value[p];
    MPI_Barrier(c);
  }
  for (int i = 0; i < n; i++) MPI_Request_free(&r[i]);
  for (int p = 0; p < others; p++) line("persistent from %d: %d", p, from[p]);

  /* Probes with wildcards, matched ones too; then a ring of Sendrecv with the same rank of the
   * other group. */
  for (int p = 0; p < others; p++) {
    MPI_Isend(&x, 1, MPI_INT, p, 30 + rank, c, &r[2 * p]);
    MPI_Isend(&x, 1, MPI_INT, p, 130 + rank, c, &r[2 * p + 1]);
  }
  for (int p = 0; p < others; p++) {
    MPI_Probe(p, MPI_ANY_TAG, c, &one);
    SAME(one.MPI_SOURCE, p, "probed source");
    SAME(one.MPI_TAG, 30 + p, "probed tag");
    int flag = 0;
    while (!flag) MPI_Iprobe(MPI_ANY_SOURCE, 30 + p, c, &flag, &one);
    SAME(one.MPI_SOURCE, p, "source of a probe for any");
    MPI_Recv(&value[p], 1, MPI_INT, MPI_ANY_SOURCE, 30 + p, c, &one);
    SAME(one.MPI_SOURCE, p, "source of a receive from any");
    MPI_Message m;
    if (p % 2) {
      MPI_Mprobe(MPI_ANY_SOURCE, 130 + p, c, &m, &one);
    } else {
      for (flag = 0; !flag;) MPI_Improbe(p, MPI_ANY_TAG, c, &flag, &m, &one);
    }
    SAME(one.MPI_SOURCE, p, "source of a matched probe");
    int again;
    MPI_Mrecv(&again, 1, MPI_INT, &m, &one);
    SAME(one.MPI_SOURCE, p, "source of a matched message");
    SAME(again, value[p], "matched value");
    line("probed from %d: %d", p, value[p]);
  }
  MPI_Waitall(2 * others, r, MPI_STATUSES_IGNORE);
  int peer = rank < others ? rank : MPI_PROC_NULL, got = -1;
  MPI_Sendrecv(&x, 1, MPI_INT, peer, 40, &got, 1, MPI_INT, peer, 40, c, &one);
  SAME(one.MPI_SOURCE, peer, "source of Sendrecv");
  line("sendrecv: %d", got);
  got = me;
  MPI_Sendrecv_replace(&got, 1, MPI_INT, peer, 41, peer, 41, c, &one);
  line("sendrecv_replace: %d", got);

  for (int p = 0; p < others; p++) MPI_Isend(&x, 1, MPI_INT, p, 60, c, &r[p]);
  for (int p = 0; p < others; p++) {
    MPI_Recv(&got, 1, MPI_INT, p, 60, c, &one);
    SAME(one.MPI_SOURCE, p, "source of Recv");
    line("received from %d: %d", p, got);
  }
  MPI_Waitall(others, r, MPI_STATUSES_IGNORE);

  /* A large message, and a type with gaps. */
  enum { LARGE = 400000 };
  static int big[LARGE], back[LARGE];
  MPI_Datatype gaps;
  MPI_Type_vector(LARGE / 4, 1, 2, MPI_INT, &gaps);
  MPI_Type_commit(&gaps);
  fill(big, sizeof big, me);
  memset(back, 0, sizeof back);
  MPI_Irecv(back, 1, gaps, peer, 50, c, &r[0]);
  MPI_Isend(big, LARGE / 4, MPI_INT, peer, 50, c, &r[1]);
  MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  line("large: %016llx", (unsigned long long)digest(0, back, sizeof back));
  MPI_Type_free(&gaps);
}

/* Checks the errors; the error handler is the local communicator's. */
static void errors(MPI_Comm c) {
  int x = 0, class_;
  MPI_Errhandler h;
  MPI_Comm_get_errhandler(c, &h);
  CHECK(h == MPI_ERRORS_RETURN, "the error handler is not the group's");
  MPI_Error_class(MPI_Send(&x, 1, MPI_INT, others, 0, c), &class_);
  SAME(class_, MPI_ERR_RANK, "class of a wrong rank");
}

static int copies, deletions;
static int copy(MPI_Comm c, int key, void *extra, void *value, void *out, int *flag) {
  (void)c, (void)key, (void)extra;
  return copies++, *(void **)out = value, *flag = 1, MPI_SUCCESS;
}
static int del(MPI_Comm c, int key, void *value, void *extra) {
  (void)c, (void)key, (void)value, (void)extra;
  return deletions++, MPI_SUCCESS;
}

static void made_from(MPI_Comm c) {
  MPI_Comm d, e;
  MPI_Request r;
  int result, key, flag, *value, stays = 7;
  char name[MPI_MAX_OBJECT_NAME];
  MPI_Comm_compare(c, c, &result);
  SAME(result, MPI_IDENT, "compared with itself");
  MPI_Comm_compare(c, world, &result);
  SAME(result, MPI_UNEQUAL, "compared with the world");
  MPI_Comm_create_keyval(copy, del, &key, NULL);
  MPI_Comm_set_attr(c, key, &stays);
  copies = deletions = 0;
  MPI_Comm_dup(c, &d);
  MPI_Comm_get_attr(d, key, &value, &flag);
  CHECK(flag && *value == 7, "the attribute was not copied");
  MPI_Comm_compare(c, d, &result);
  SAME(result, MPI_CONGRUENT, "compared with its duplicate");
  describe("dup", d);
  int x = me, y = -1, peer = rank < others ? rank : MPI_PROC_NULL;
  MPI_Sendrecv(&x, 1, MPI_INT, peer, 0, &y, 1, MPI_INT, peer, 0, d, MPI_STATUS_IGNORE);
  line("over the duplicate: %d", y);
  MPI_Comm_set_name(d, "between two groups");
  MPI_Comm_get_name(d, name, &result);
  CHECK(!strcmp(name, "between two groups"), "name");
  MPI_Comm_free(&d);
  SAME(copies, 1, "copies of the attribute");
  SAME(deletions, 1, "deletions of the attribute");
  MPI_Comm_delete_attr(c, key);
  MPI_Comm_free_keyval(&key);
  MPI_Comm_idup(c, &d, &r);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  describe("idup", d);
  MPI_Comm_disconnect(&d);

  /* By parity; reversed; some without a color; a color that only one group has. */
  MPI_Comm_split(c, rank % 2, -rank, &d);
  if (d == MPI_COMM_NULL) line("split: none");
  else {
    describe("split", d);
    int a, b;
    MPI_Comm_rank(d, &a);
    MPI_Comm_remote_size(d, &b);
    y = -1, peer = a < b ? a : MPI_PROC_NULL;
    MPI_Sendrecv(&x, 1, MPI_INT, peer, 0, &y, 1, MPI_INT, peer, 0, d, MPI_STATUS_IGNORE);
    line("over the part: %d", y);
    MPI_Comm_free(&d);
  }
  MPI_Comm_split(c, rank == 0 ? 3 : MPI_UNDEFINED, 0, &d);
  SAME(d == MPI_COMM_NULL, rank != 0, "no part");
  if (d != MPI_COMM_NULL) describe("firsts", d), MPI_Comm_free(&d);

  /* Of the group's last member only, on both sides. */
  MPI_Group g, last;
  int n = mine - 1;
  MPI_Comm_group(c, &g);
  MPI_Group_incl(g, 1, &n, &last);
  MPI_Comm_create(c, last, &d);
  SAME(d == MPI_COMM_NULL, rank != n, "not in the new one");
  if (d != MPI_COMM_NULL) describe("create", d), MPI_Comm_free(&d);
  MPI_Group_free(&g), MPI_Group_free(&last);

  /* Merged, with each group first in turn, and split into two again. */
  for (int high = 0; high < 2; high++) {
    int r0, size, sum = 0, at_zero;
    MPI_Intercomm_merge(c, (other_first < my_first) != high, &d);
    MPI_Comm_rank(d, &r0), MPI_Comm_size(d, &size);
    MPI_Comm_test_inter(d, &flag);
    SAME(flag, 0, "a merged one is inter");
    at_zero = me;
    MPI_Bcast(&at_zero, 1, MPI_INT, 0, d);
    MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, d);
    line("merged: %d of %d, first is %d, sum %d", r0, size, at_zero, sum);
    if (high) {
      MPI_Comm half;
      MPI_Comm_split(d, r0 * 2 < size, r0, &half);
      MPI_Intercomm_create(half, 0, d, r0 * 2 < size ? (size + 1) / 2 : 0, 77, &e);
      describe("from the merged", e);
      MPI_Comm_free(&half);
      MPI_Comm_free(&e);
    }
    MPI_Comm_free(&d);
  }
}

static void each(int which) {
  int group = shape(which, me);
  MPI_Comm local, c;
  MPI_Comm_split(world, group < 0 ? MPI_UNDEFINED : group, me, &local);
  if (group < 0) return;
  MPI_Comm_set_errhandler(local, MPI_ERRORS_RETURN);
  MPI_Comm_rank(local, &rank), MPI_Comm_size(local, &mine);
  /* The last member leads, and only leaders know the peer communicator. */
  int root = mine - 1, leader = rank == root, count = 0;
  for (int w = 0; w < np; w++) count += shape(which, w) == !group;
  SAME(MPI_Intercomm_create(local, root, leader ? world : MPI_COMM_NULL,
                            leader ? world_rank(which, !group, count - 1) : -5, 9 + which, &c),
       MPI_SUCCESS, "Intercomm_create");
  MPI_Comm_free(&local); /* not needed any more */
  MPI_Comm_remote_size(c, &others);
  SAME(others, count, "the other group's size");
  my_first = world_rank(which, group, 0), other_first = world_rank(which, !group, 0);
  line("shape %d", which);
  describe("created", c);
  modes(c);
  errors(c);
  made_from(c);
  MPI_Comm_free(&c);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &world);
  for (int which = 0; which < 4; which++) each(which);
  /* Many, one after the other and several at once. */
  MPI_Comm half, many[8];
  MPI_Comm_split(world, me % 2, me, &half);
  for (int round = 0; round < 5; round++) {
    for (int i = 0; i < 8; i++) MPI_Intercomm_create(half, 0, world, 1 - me % 2, i, &many[i]);
    for (int i = 0; i < 8; i++) {
      int r, n, x = 100 * i + me, y = -1;
      MPI_Comm_rank(many[i], &r), MPI_Comm_remote_size(many[i], &n);
      int peer = r < n ? r : MPI_PROC_NULL;
      MPI_Sendrecv(&x, 1, MPI_INT, peer, 0, &y, 1, MPI_INT, peer, 0, many[i], MPI_STATUS_IGNORE);
      if (peer != MPI_PROC_NULL) SAME(y / 100, i, "the message of another communicator");
    }
    for (int i = 0; i < 8; i++) MPI_Comm_free(&many[7 - i]);
  }
  MPI_Comm_free(&half);
  MPI_Comm_free(&world);
  return finish();
}
