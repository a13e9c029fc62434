/* Making communicators: dup, split with keys that interleave the ranks, create, create_group, idup,
 * dup_with_info, split_type; comparison; point to point and collectives on each; results that are
 * smaller than the world, of one rank, or without this rank. */
#include "check.h"

/* Uses every rank of the communicator, whose members must be world ranks want[0..n). */
static uint64_t use(const char *what, MPI_Comm comm, const int *want, int n) {
  int rank, size, x, y = -1, world[64];
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  SAME(size, n, what);
  MPI_Allgather(&me, 1, MPI_INT, world, 1, MPI_INT, comm);
  for (int i = 0; i < n; i++)
    if (world[i] != want[i])
      failed(__FILE__, __LINE__, "%s: rank %d is world rank %d, want %d", what, i, world[i], want[i]);
  SAME(world[rank], me, what);
  MPI_Status st;
  for (int shift = 0; shift < size; shift++) {
    x = me;
    MPI_Sendrecv(&x, 1, MPI_INT, (rank + shift) % size, 3, &y, 1, MPI_INT,
                 shift % 2 ? MPI_ANY_SOURCE : (rank + size - shift) % size, 3, comm, &st);
    SAME(y, want[(rank + size - shift) % size], what);
    SAME(st.MPI_SOURCE, (rank + size - shift) % size, what);
    MPI_Barrier(comm);
  }
  x = me + 1;
  MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_PROD, comm);
  int prod = 1;
  for (int i = 0; i < n; i++) prod *= want[i] + 1;
  SAME(y, prod, what);
  for (int root = 0; root < size; root++) {
    x = rank == root ? me : -1;
    MPI_Bcast(&x, 1, MPI_INT, root, comm);
    SAME(x, want[root], what);
  }
  MPI_Group group, all;
  int ranks[64], translated[64];
  MPI_Comm_group(comm, &group);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  for (int i = 0; i < n; i++) ranks[i] = i;
  MPI_Group_translate_ranks(group, n, ranks, all, translated);
  for (int i = 0; i < n; i++) SAME(translated[i], want[i], what);
  MPI_Group_free(&group), MPI_Group_free(&all);
  return digest(digest(0, world, n * sizeof *world), &y, sizeof y);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  int all[64], some[64], n, result;
  MPI_Comm c, d, e;
  for (int i = 0; i < np; i++) all[i] = i;
#define SAY(what, h) line("%s: %016llx", what, (unsigned long long)(h))

  SAY("world", use("world", MPI_COMM_WORLD, all, np));
  SAY("self", use("self", MPI_COMM_SELF, &me, 1));
  MPI_Comm_dup(MPI_COMM_WORLD, &c);
  SAY("dup", use("dup", c, all, np));
  MPI_Comm_compare(c, MPI_COMM_WORLD, &result);
  SAME(result, MPI_CONGRUENT, "dup compared with the world");
  MPI_Comm_compare(c, c, &result);
  SAME(result, MPI_IDENT, "compared with itself");
  MPI_Comm_dup(c, &d);
  SAY("dup of dup", use("dup of dup", d, all, np));
  MPI_Comm_free(&d);
  CHECK(d == MPI_COMM_NULL, "free left the handle");
  MPI_Request r;
  MPI_Comm_idup(c, &d, &r);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  SAY("idup", use("idup", d, all, np));
  MPI_Comm_free(&d);
  MPI_Comm_dup_with_info(c, MPI_INFO_NULL, &d);
  SAY("dup_with_info", use("dup_with_info", d, all, np));
  MPI_Comm_free(&d);

  /* duplications of one communicator in progress while others are made from another one, in calls
   * that block */
  for (int k = 0; k < 8; k++) {
    MPI_Comm copies[3];
    MPI_Request three[3];
    MPI_Group group;
    for (int i = 0; i < 3; i++) MPI_Comm_idup(MPI_COMM_WORLD, &copies[i], &three[i]);
    if (k % 4 == 0) MPI_Comm_dup(c, &d);
    if (k % 4 == 1) MPI_Comm_split(c, 0, me, &d);
    if (k % 4 == 2) MPI_Comm_split_type(c, MPI_COMM_TYPE_SHARED, me, MPI_INFO_NULL, &d);
    if (k % 4 == 3) {
      MPI_Comm_group(c, &group);
      MPI_Comm_create_group(c, group, 5, &d);
      MPI_Group_free(&group);
    }
    MPI_Comm_free(&d);
    MPI_Waitall(3, three, MPI_STATUSES_IGNORE);
    SAY("idup beside others", use("idup beside others", copies[k % 3], all, np));
    for (int i = 0; i < 3; i++) MPI_Comm_free(&copies[i]);
  }

  /* messages of one communicator do not appear in another */
  int x = 1, y = 2, got = 0, right = (me + 1) % np, left = (me + np - 1) % np;
  MPI_Request q[2];
  MPI_Isend(&x, 1, MPI_INT, right, 0, c, &q[0]);
  MPI_Isend(&y, 1, MPI_INT, right, 0, MPI_COMM_WORLD, &q[1]);
  MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  SAME(got, 2, "message of the world");
  MPI_Recv(&got, 1, MPI_INT, left, 0, c, MPI_STATUS_IGNORE);
  SAME(got, 1, "message of the dup");
  MPI_Waitall(2, q, MPI_STATUSES_IGNORE);

  /* split: reversed; interleaved; even and odd; each alone; some without a color; equal keys keep
   * the order */
  MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &d);
  for (int i = 0; i < np; i++) some[i] = np - 1 - i;
  SAY("reversed", use("reversed", d, some, np));
  MPI_Comm_compare(d, MPI_COMM_WORLD, &result);
  SAME(result, np == 1 ? MPI_CONGRUENT : MPI_SIMILAR, "reversed compared with the world");
  MPI_Comm_split(d, 1, me % 2 * 100 + me, &e); /* even ranks first, from the reversed communicator */
  n = 0;
  for (int i = 0; i < np; i += 2) some[n++] = i;
  for (int i = 1; i < np; i += 2) some[n++] = i;
  SAY("interleaved", use("interleaved", e, some, np));
  MPI_Comm_free(&e);
  MPI_Comm_split(d, 5, 7, &e);
  for (int i = 0; i < np; i++) some[i] = np - 1 - i;
  SAY("equal keys", use("equal keys", e, some, np));
  MPI_Comm_free(&e), MPI_Comm_free(&d);
  MPI_Comm_split(MPI_COMM_WORLD, me % 2, 0, &d);
  n = 0;
  for (int i = me % 2; i < np; i += 2) some[n++] = i;
  SAY("even and odd", use("even and odd", d, some, n));
  MPI_Comm_compare(d, MPI_COMM_WORLD, &result);
  SAME(result, np == 1 ? MPI_CONGRUENT : MPI_UNEQUAL, "half compared with the world");
  MPI_Comm_split(d, 0, -me, &e); /* split of a split */
  for (int i = 0, j = n - 1; i < j; i++, j--) {
    int t = some[i];
    some[i] = some[j], some[j] = t;
  }
  SAY("split of a split", use("split of a split", e, some, n));
  MPI_Comm_free(&e), MPI_Comm_free(&d);
  MPI_Comm_split(MPI_COMM_WORLD, me, 0, &d);
  SAY("alone", use("alone", d, &me, 1));
  MPI_Comm_free(&d);
  MPI_Comm_split(MPI_COMM_WORLD, me == 0 || me == np - 1 ? 3 : MPI_UNDEFINED, 0, &d);
  if (me == 0 || me == np - 1) {
    some[0] = 0, some[1] = np - 1;
    SAY("first and last", use("first and last", d, some, np == 1 ? 1 : 2));
    MPI_Comm_free(&d);
  } else CHECK(d == MPI_COMM_NULL, "not null");
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, me, MPI_INFO_NULL, &d);
  int size;
  MPI_Comm_size(d, &size);
  CHECK(size >= 1 && size <= np, "split_type gave %d", size);
  MPI_Comm_free(&d);

  /* create and create_group with the group in another order, without some of the ranks */
  MPI_Group world, group;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  n = 0;
  for (int i = np - 1; i >= 0; i -= 2) some[n++] = i;
  MPI_Group_incl(world, n, some, &group);
  MPI_Comm_create(MPI_COMM_WORLD, group, &d);
  int inside = (np - 1 - me) % 2 == 0;
  CHECK((d != MPI_COMM_NULL) == inside, "create");
  if (inside) {
    SAY("create", use("create", d, some, n));
    MPI_Comm_create_group(c, group, 77, &e);
    SAY("create_group", use("create_group", e, some, n));
    MPI_Comm_compare(d, e, &result);
    SAME(result, MPI_CONGRUENT, "create compared with create_group");
    MPI_Comm_free(&d), MPI_Comm_free(&e);
  }
  MPI_Group_free(&group);
  /* create with disjoint groups at once */
  int cut = (np + 1) / 2;
  MPI_Group_incl(world, me < cut ? cut : np - cut, me < cut ? all : all + cut, &group);
  if (np > 1) {
    MPI_Comm_create(MPI_COMM_WORLD, group, &d);
    SAY("two halves", use("two halves", d, me < cut ? all : all + cut, me < cut ? cut : np - cut));
    MPI_Comm_free(&d);
  }
  MPI_Group_free(&group);
  MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &d);
  CHECK(d == MPI_COMM_NULL, "create with an empty group");
  MPI_Group_free(&world);

  /* freed with messages in flight, which arrive all the same */
  MPI_Comm_dup(c, &d);
  int in[20000], out[20000];
  fill(out, sizeof out, me);
  MPI_Irecv(in, 20000, MPI_INT, left, 9, d, &q[0]);
  MPI_Isend(out, 20000, MPI_INT, right, 9, d, &q[1]);
  MPI_Comm_free(&d);
  MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
  CHECK(filled(in, sizeof in, left), "message of a freed communicator");
  MPI_Comm_free(&c);
  return finish();
}
