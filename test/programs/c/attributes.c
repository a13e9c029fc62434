/* Attributes with copy and delete callbacks on communicators, types; predefined attributes;
 * names. */
#include "check.h"

static int copies, deletes;
static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
  (void)comm, (void)key;
  copies++;
  *(void **)out = (char *)in + *(int *)extra;
  *flag = 1;
  return MPI_SUCCESS;
}
static int copy_not(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
  (void)comm, (void)key, (void)extra, (void)in, (void)out;
  copies++;
  *flag = 0;
  return MPI_SUCCESS;
}
static int gone(MPI_Comm comm, int key, void *value, void *extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  deletes++;
  return MPI_SUCCESS;
}
static int refuse_copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
  (void)comm, (void)key, (void)extra, (void)in, (void)out, (void)flag;
  return MPI_ERR_OTHER;
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  int k1, k2, k3, k4, step = 3, flag;
  char base[100], *p;
  MPI_Comm c, d, e;
  MPI_Comm_create_keyval(copy, gone, &k1, &step);
  MPI_Comm_create_keyval(copy_not, gone, &k2, NULL);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &k3, NULL);
  MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &k4, NULL);
  MPI_Comm_dup(MPI_COMM_WORLD, &c);
  MPI_Comm_get_attr(c, k1, &p, &flag);
  SAME(flag, 0, "attribute before it is set");
  MPI_Comm_set_attr(c, k1, base), MPI_Comm_set_attr(c, k2, base), MPI_Comm_set_attr(c, k3, base),
      MPI_Comm_set_attr(c, k4, base);
  MPI_Comm_dup(c, &d);
  SAME(copies, 2, "copy callbacks");
  MPI_Comm_get_attr(d, k1, &p, &flag);
  CHECK(flag && p == base + 3, "copied attribute");
  MPI_Comm_get_attr(d, k2, &p, &flag);
  SAME(flag, 0, "attribute not copied");
  MPI_Comm_get_attr(d, k3, &p, &flag);
  SAME(flag, 0, "attribute with NULL_COPY_FN");
  MPI_Comm_get_attr(d, k4, &p, &flag);
  CHECK(flag && p == base, "attribute with DUP_FN");
  MPI_Comm_split(c, 0, -me, &e); /* attributes are not copied */
  MPI_Comm_get_attr(e, k4, &p, &flag);
  SAME(flag, 0, "attribute after a split");
  SAME(copies, 2, "copy callbacks after a split");
  MPI_Comm_set_attr(d, k1, base + 50); /* replacing a value deletes the old one */
  SAME(deletes, 1, "delete callbacks");
  MPI_Comm_delete_attr(d, k1);
  SAME(deletes, 2, "delete callbacks");
  MPI_Comm_free(&d);
  SAME(deletes, 2, "delete callbacks after freeing the dup");
  MPI_Comm_free(&c);
  SAME(deletes, 4, "delete callbacks after freeing the original");
  MPI_Comm_free(&e);
  MPI_Comm_free_keyval(&k1), MPI_Comm_free_keyval(&k2), MPI_Comm_free_keyval(&k3), MPI_Comm_free_keyval(&k4);
  CHECK(k1 == MPI_KEYVAL_INVALID, "keyval left");

  /* a copy callback that fails makes the dup fail, in all processes */
  MPI_Comm_create_keyval(refuse_copy, MPI_COMM_NULL_DELETE_FN, &k1, NULL);
  MPI_Comm_dup(MPI_COMM_WORLD, &c);
  MPI_Comm_set_attr(c, k1, base);
  MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
  d = c;
  int code = MPI_Comm_dup(c, &d);
  CHECK(code != MPI_SUCCESS, "dup whose copy callback fails");
  CHECK(d == MPI_COMM_NULL, "communicator of a dup that failed");
  MPI_Comm_free(&c);
  MPI_Comm_free_keyval(&k1);

  int *v;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &v, &flag);
  CHECK(flag && *v >= 32767, "TAG_UB");
  int tag = *v, x = me, y = -1; /* the largest tag must work */
  MPI_Sendrecv(&x, 1, MPI_INT, (me + 1) % np, tag, &y, 1, MPI_INT, (me + np - 1) % np, tag, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  SAME(y, (me + np - 1) % np, "message with the largest tag");
  int tags[64];
  MPI_Allgather(&tag, 1, MPI_INT, tags, 1, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < np; i++) SAME(tags[i], tag, "TAG_UB of another rank");
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &v, &flag);
  CHECK(flag, "WTIME_IS_GLOBAL");
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, &v, &flag);
  CHECK(flag, "HOST");
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &v, &flag);
  CHECK(flag, "IO");
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &v, &flag);
  if (flag) CHECK(*v >= 1, "UNIVERSE_SIZE %d", *v);

  char name[MPI_MAX_OBJECT_NAME];
  int n;
  MPI_Comm_get_name(MPI_COMM_WORLD, name, &n);
  CHECK(!strcmp(name, "MPI_COMM_WORLD"), "name of the world: %s", name);
  MPI_Comm_dup(MPI_COMM_WORLD, &c);
  MPI_Comm_set_name(c, "zipped");
  MPI_Comm_get_name(c, name, &n);
  CHECK(!strcmp(name, "zipped") && n == 6, "name");
  MPI_Comm_free(&c);
  MPI_Get_processor_name(name, &n);
  CHECK(n > 0, "processor name");
  line("done");
  return finish();
}
