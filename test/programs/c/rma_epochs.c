/* Windows with post, start, complete, wait and test; dynamic windows; names, attributes of the
 * program's own, info, error handlers. */
#include "check.h"

static int calls, last_class;
static void handler(MPI_Win *w, int *code, ...) { (void)w, calls++, MPI_Error_class(*code, &last_class); }

static int copies, deletes;
static int deleted(MPI_Win w, int key, void *value, void *extra) {
  (void)w, (void)key, (void)extra;
  deletes++;
  SAME((intptr_t)value, 4711, "value of the deleted attribute");
  return MPI_SUCCESS;
}

static MPI_Group group_of(int n, const int *ranks) {
  MPI_Group all, g;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, n, ranks, &g);
  MPI_Group_free(&all);
  return g;
}

/* Exchanges halos in a ring: each rank is origin and target at once. */
static void ring(void) {
  int *cells, around[2] = {(me + np - 1) % np, (me + 1) % np}, n = np == 1 ? 0 : np == 2 ? 1 : 2;
  MPI_Win w;
  MPI_Win_allocate(2 * sizeof *cells, sizeof *cells, MPI_INFO_NULL, MPI_COMM_WORLD, &cells, &w);
  MPI_Group g = group_of(n, around);
  for (int round = 0; round < 10; round++) {
    int value = 100 * me + round;
    MPI_Win_post(g, 0, w);
    MPI_Win_start(g, 0, w);
    MPI_Put(&value, 1, MPI_INT, around[0], 1, 1, MPI_INT, w);
    MPI_Put(&value, 1, MPI_INT, around[1], 0, 1, MPI_INT, w);
    MPI_Win_complete(w);
    if (round % 2) {
      MPI_Win_wait(w);
    } else {
      int over = 0;
      while (!over) MPI_Win_test(w, &over);
    }
    SAME(cells[0], 100 * around[0] + round, "from the left");
    SAME(cells[1], 100 * around[1] + round, "from the right");
  }
  MPI_Group_free(&g);
  MPI_Win_free(&w);
}

/* Has one target, with all other ranks as origins, and results. */
static void star(void) {
  long mine[2] = {5, 0}, got = -1, add = me;
  MPI_Win w;
  int others[64], n = 0, hub = np - 1;
  for (int r = 0; r < np; r++)
    if (r != hub) others[n++] = r;
  MPI_Win_create(mine, sizeof mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &w);
  MPI_Group all = group_of(n, others), one = group_of(1, &hub);
  if (me == hub) {
    MPI_Win_post(all, 0, w);
    MPI_Win_wait(w);
    line("star %ld %ld", mine[0], mine[1]);
  } else {
    MPI_Win_start(one, 0, w);
    MPI_Get(&got, 1, MPI_LONG, hub, 0, 1, MPI_LONG, w);
    MPI_Accumulate(&add, 1, MPI_LONG, hub, 1, 1, MPI_LONG, MPI_SUM, w);
    MPI_Win_complete(w);
    SAME(got, 5, "got from the hub");
  }
  MPI_Group_free(&all), MPI_Group_free(&one);
  MPI_Win_free(&w);
}

static void dynamic(void) {
  MPI_Win w;
  MPI_Aint at[64], second[64];
  int next = (me + 1) % np;
  long *a = malloc(10 * sizeof *a), *b = malloc(20 * sizeof *b), out[20], in[20];
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &w);
  MPI_Win_attach(w, a, 10 * sizeof *a);
  MPI_Win_attach(w, b, 20 * sizeof *b);
  for (int i = 0; i < 10; i++) a[i] = 10 * me + i;
  MPI_Get_address(a, &at[me]), MPI_Get_address(b, &second[me]);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_AINT, at, 1, MPI_AINT, MPI_COMM_WORLD);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_AINT, second, 1, MPI_AINT, MPI_COMM_WORLD);
  for (int i = 0; i < 20; i++) out[i] = 1000 * me + i;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, w);
  MPI_Put(out, 20, MPI_LONG, next, second[next], 20, MPI_LONG, w);
  MPI_Get(in, 10, MPI_LONG, next, at[next], 10, MPI_LONG, w);
  MPI_Win_unlock(next, w);
  for (int i = 0; i < 10; i++) SAME(in[i], 10 * next + i, "got from attached memory");
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 20; i++) SAME(b[i], 1000 * ((me + np - 1) % np) + i, "put to attached memory");
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_detach(w, a), MPI_Win_detach(w, b);
  MPI_Win_free(&w);
  free(a), free(b);
}

/* Checks that memory which was attached in parts, in any order, is one area for puts, accumulates
 * and gets across their borders; an element may lie across a border too. */
static void neighbours(void) {
  MPI_Win w;
  MPI_Aint at[64];
  int next = (me + 1) % np, left = (me + np - 1) % np, one = 1;
  char *memory = calloc(1, 400);
  long out[30], in[30];
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &w);
  MPI_Win_attach(w, memory + 84, 100), MPI_Win_attach(w, memory, 84), MPI_Win_attach(w, memory + 184, 216);
  MPI_Get_address(memory, &at[me]);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_AINT, at, 1, MPI_AINT, MPI_COMM_WORLD);
  for (int i = 0; i < 30; i++) out[i] = 1000 * me + i;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, w);
  MPI_Put(out, 30, MPI_LONG, next, at[next], 30, MPI_LONG, w);
  MPI_Win_flush(next, w);
  for (int i = 0; i < 30; i++) out[i] = 7;
  MPI_Accumulate(out, 30, MPI_LONG, next, at[next], 30, MPI_LONG, MPI_SUM, w);
  MPI_Win_flush(next, w);
  MPI_Get(in, 30, MPI_LONG, next, at[next], 30, MPI_LONG, w);
  MPI_Win_unlock(next, w);
  for (int i = 0; i < 30; i++) SAME(in[i], 1000 * me + i + 7, "got across attached parts");
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 30; i++) SAME(((long *)memory)[i], 1000 * left + i + 7, "put across attached parts");
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, w);
  for (int p = 0; p < np; p++) MPI_Accumulate(&one, 1, MPI_INT, p, at[p] + 300, 1, MPI_INT, MPI_SUM, w);
  MPI_Win_unlock_all(w);
  MPI_Barrier(MPI_COMM_WORLD);
  SAME(*(int *)(memory + 300), np, "sum in the last part");
  MPI_Win_detach(w, memory), MPI_Win_detach(w, memory + 84), MPI_Win_detach(w, memory + 184);
  MPI_Win_free(&w);
  free(memory);
}

static void belongings(void) {
  MPI_Win w;
  int cell = 0, key, flag, length;
  char name[MPI_MAX_OBJECT_NAME];
  void *value;
  MPI_Info info;
  MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &value, &w);
  MPI_Win_set_name(w, "a window");
  MPI_Win_get_name(w, name, &length);
  CHECK(!strcmp(name, "a window"), "name %s", name);
  MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, deleted, &key, NULL);
  MPI_Win_get_attr(w, key, &value, &flag);
  SAME(flag, 0, "an attribute that is not set");
  MPI_Win_set_attr(w, key, (void *)4711);
  MPI_Win_get_attr(w, key, &value, &flag);
  CHECK(flag && value == (void *)4711, "attribute");
  SAME(MPI_Win_get_info(w, &info), MPI_SUCCESS, "Win_get_info");
  SAME(MPI_Win_set_info(w, info), MPI_SUCCESS, "Win_set_info");
  MPI_Info_free(&info);

  MPI_Errhandler own, set;
  MPI_Win_create_errhandler(handler, &own);
  MPI_Win_set_errhandler(w, own);
  MPI_Win_get_errhandler(w, &set);
  CHECK(set == own, "error handler");
  MPI_Win_call_errhandler(w, MPI_ERR_OTHER);
  SAME(calls, 1, "calls of the error handler");
  SAME(last_class, MPI_ERR_OTHER, "its class");
  MPI_Errhandler_free(&set), MPI_Errhandler_free(&own);
  MPI_Put(&cell, 1, MPI_INT, np, 0, 1, MPI_INT, w);
  SAME(calls, 2, "calls after a wrong rank");
  MPI_Win_set_errhandler(w, MPI_ERRORS_RETURN);
  int rc = MPI_Win_unlock(0, w), class_ = -1;
  MPI_Error_class(rc, &class_);
  SAME(class_, MPI_ERR_RMA_SYNC, "unlock without lock");
  for (int wrong = -7; wrong <= np; wrong += np + 7) {
    MPI_Error_class(MPI_Win_lock(MPI_LOCK_SHARED, wrong, 0, w), &class_);
    SAME(class_, MPI_ERR_RANK, "lock of no rank");
  }
  MPI_Win_fence(0, w);
#ifdef OPEN_MPI /* MPICH rejects the buffers */
  SAME(MPI_Compare_and_swap(NULL, NULL, NULL, MPI_INT, MPI_PROC_NULL, 0, w), MPI_SUCCESS,
       "compare and swap nothing with nobody");
#endif
  MPI_Win_fence(0, w);
  MPI_Win_free(&w);
  SAME(deletes, 1, "deleted attributes");
  SAME(copies, 0, "copies");
  MPI_Win_free_keyval(&key);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  ring();
  star();
  dynamic();
  neighbours();
  belongings();
  return finish();
}
