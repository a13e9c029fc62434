/* Files that cannot be opened, and files that are left open.
 *
 *   file_errors DIR handler    a handler on MPI_FILE_NULL is called once at each rank
 *   file_errors DIR forgiving  the handler turns the error into MPI_SUCCESS
 *   file_errors DIR hosts      a hint has the names that MPI_Get_processor_name gives
 *   file_errors DIR left       a file is open at MPI_Finalize, after use of its shared pointer
 */
#include "check.h"

static int forgiving, calls, class_;
static MPI_File on;
static MPI_Info info;

static void handler(MPI_File *file, int *code, ...) {
  calls++, on = *file;
  MPI_Error_class(*code, &class_);
  if (forgiving) *code = MPI_SUCCESS;
}

static MPI_File opened(MPI_Comm comm, const char *dir, const char *name, int amode, int *rc) {
  char path[1000];
  MPI_File file = MPI_FILE_NULL;
  snprintf(path, sizeof path, "%s/%s", dir, name);
  calls = 0, class_ = MPI_SUCCESS;
  *rc = MPI_File_open(comm, path, amode, info, &file);
  if (*rc) MPI_Error_class(*rc, rc);
  return file;
}

static void fails(MPI_Comm comm, const char *dir, const char *name, int amode, int want) {
  int rc;
  MPI_File file = opened(comm, dir, name, amode, &rc);
  CHECK(file == MPI_FILE_NULL, "%s", name);
  SAME(calls, 1, name);
  CHECK(on == MPI_FILE_NULL, "%s: the handler gets another file", name);
  if (forgiving) return; /* a library that hides an error reports it to no one */
  SAME(class_, want, name);
  SAME(rc, want, name);
}

static void errors(const char *dir) {
  MPI_Errhandler mine;
  MPI_Comm part;
  int rc;
  opened(MPI_COMM_WORLD, dir, "missing", MPI_MODE_RDWR, &rc);
  SAME(rc, MPI_ERR_NO_SUCH_FILE, "without a handler");
  SAME(calls, 0, "calls without a handler");
  MPI_File_create_errhandler(handler, &mine);
  MPI_File_set_errhandler(MPI_FILE_NULL, mine);
  fails(MPI_COMM_WORLD, dir, "missing", MPI_MODE_RDWR, MPI_ERR_NO_SUCH_FILE);
  fails(MPI_COMM_WORLD, dir, "missing/file", MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_ERR_NO_SUCH_FILE);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &part);
  fails(part, dir, "missing", MPI_MODE_RDWR, MPI_ERR_NO_SUCH_FILE);
  MPI_Comm_free(&part);
  MPI_File file = opened(MPI_COMM_WORLD, dir, "there", MPI_MODE_RDWR | MPI_MODE_CREATE, &rc);
  SAME(rc, MPI_SUCCESS, "MPI_File_open");
  MPI_File_close(&file);
  /* The handler is not freed, because MPICH 4.0 counts its users wrongly, natively too */
}

/* Checks the hint from which ROMIO takes aggregators: a comma-separated list of hosts, with a
 * number each. */
static void hosts(const char *dir) {
  enum { ENOUGH = 300 };
  char name[ENOUGH] = "", *all = calloc((size_t)np, ENOUGH), list[MPI_MAX_INFO_VAL] = "", got[8] = "";
  int n, rc;
  MPI_Comm part;
  MPI_Status status;
  MPI_Get_processor_name(name, &n);
  MPI_Allgather(name, ENOUGH, MPI_CHAR, all, ENOUGH, MPI_CHAR, MPI_COMM_WORLD);
  for (int i = 0; i < np; i++)
    if (!strstr(list, all + (size_t)i * ENOUGH))
      snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s:1", *list ? "," : "", all + (size_t)i * ENOUGH);
  MPI_Info_set(info, "cb_config_list", list);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &part);
  MPI_Comm comms[] = {MPI_COMM_WORLD, part};
  for (int i = 0; i < 2; i++) {
    int rank;
    MPI_Comm_rank(comms[i], &rank);
    snprintf(name, sizeof name, "aggregated-%d", i ? me - rank : np);
    MPI_File file = opened(comms[i], dir, name, MPI_MODE_RDWR | MPI_MODE_CREATE, &rc);
    SAME(rc, MPI_SUCCESS, list);
    if (rc) continue;
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", info);
    MPI_File_set_info(file, info);
    MPI_File_write_at_all(file, 4 * rank, "abcd", 4, MPI_BYTE, &status);
    MPI_File_read_at_all(file, 4 * rank, got, 4, MPI_BYTE, &status);
    CHECK(!memcmp(got, "abcd", 4), "read %s", got);
    MPI_File_close(&file);
  }
  MPI_Comm_free(&part);
  free(all);
}

static void left(const char *dir) {
  int rc;
  MPI_Status status;
  opened(MPI_COMM_WORLD, dir, "unused", MPI_MODE_RDWR | MPI_MODE_CREATE, &rc);
  SAME(rc, MPI_SUCCESS, "MPI_File_open");
  MPI_File file = opened(MPI_COMM_WORLD, dir, "used", MPI_MODE_RDWR | MPI_MODE_CREATE, &rc);
  SAME(rc, MPI_SUCCESS, "MPI_File_open");
  SAME(MPI_File_write_shared(file, "abcd", 4, MPI_BYTE, &status), MPI_SUCCESS, "MPI_File_write_shared");
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  const char *dir = argc > 1 ? argv[1] : ".", *what = argc > 2 ? argv[2] : "";
  MPI_Info_create(&info);
  MPI_Info_set(info, "zipper_shared", "true");
  forgiving = !strcmp(what, "forgiving");
  if (!strcmp(what, "hosts")) hosts(dir);
  else if (!strcmp(what, "left")) left(dir);
  else errors(dir);
  MPI_Info_free(&info);
  return finish();
}
