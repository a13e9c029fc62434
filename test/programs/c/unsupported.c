/* Communicators that span clusters: functions that MMPI does not support return an error at every
 * rank, with the documented class, through the communicator's error handler; error handlers and
 * info objects themselves work; nothing is broken afterwards. Not for native runs. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "check.h"

static int calls, last;
static MPI_Comm on = MPI_COMM_NULL;
static void handler(MPI_Comm *comm, int *code, ...) { calls++, on = *comm, MPI_Error_class(*code, &last); }

static void refused(const char *what, int rc) {
  int class_ = -1, length = 0;
  char text[MPI_MAX_ERROR_STRING];
  MPI_Error_class(rc, &class_);
  SAME(class_, MPI_ERR_UNSUPPORTED_OPERATION, what);
  SAME(MPI_Error_string(rc, text, &length), MPI_SUCCESS, "Error_string");
  CHECK(length > 0, "no text");
  line("%s is refused", what);
}

/* Calls the functions of fault tolerance, which no library's headers have completely. */
static void fault_tolerance(MPI_Comm c) {
  static const char *const names[] = {"MPIX_Comm_revoke",      "MPIX_Comm_shrink",     "MPIX_Comm_agree",
                                      "MPIX_Comm_failure_ack", "MPIX_Comm_is_revoked", "MPIX_Comm_failure_get_acked",
                                      "MPIX_Comm_get_failed"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char text[MPI_MAX_ERROR_STRING] = "";
    void *place[2] = {NULL, NULL}; /* room for any result */
    int length, rc;
    int (*call)(MPI_Comm, void *) = (int (*)(MPI_Comm, void *))dlsym(RTLD_DEFAULT, names[i]);
    CHECK(call, "no symbol %s", names[i]);
    if (!call) continue;
    refused(names[i], rc = call(c, place));
    MPI_Error_string(rc, text, &length);
    CHECK(strstr(text, "--on-loss continue"), "%s: %s", names[i], text);
  }
}

static void each(MPI_Comm c) {
  MPI_Win w = MPI_WIN_NULL;
  MPI_File f;
  MPI_Comm other;
  int codes[1];
  void *memory;
  refused("Win_allocate_shared", MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, c, &memory, &w));
  refused("Comm_spawn", MPI_Comm_spawn("true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, c, &other, codes));
  fault_tolerance(c);
  refused("File_open", MPI_File_open(c, "/nonexistent/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &f));
}

/* Requests processes in another cluster than the caller's, or in none: all processes of the
 * communicator get an error, though only its root names a cluster. */
static void spawn_elsewhere(const char *cluster) {
  MPI_Comm host, other;
  MPI_Info info, of_root;
  int rank, codes[2], numbers[] = {1, 1};
  char *commands[] = {"true", "true"};
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, me, MPI_INFO_NULL, &host);
  MPI_Comm_rank(host, &rank);
  MPI_Comm_set_errhandler(host, MPI_ERRORS_RETURN);
  MPI_Info_create(&info);
  MPI_Info_set(info, "zipper_cluster", cluster);
  of_root = rank == 0 ? info : MPI_INFO_NULL;
  MPI_Info infos[] = {MPI_INFO_NULL, of_root};
  refused("Comm_spawn elsewhere", MPI_Comm_spawn("true", MPI_ARGV_NULL, 1, of_root, 0, host, &other, codes));
  refused("Comm_spawn_multiple elsewhere",
          MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, numbers, infos, 0, host, &other, codes));
  MPI_Info_free(&info), MPI_Comm_free(&host);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  MPI_Comm c, d;
  MPI_Errhandler mine, set;
  MPI_Comm_dup(MPI_COMM_WORLD, &c);
  MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  each(c);
  each(MPI_COMM_WORLD);
  const char *cluster = getenv("ZIPPER_CLUSTER"); /* this cluster's name, a or b */
  spawn_elsewhere(cluster && !strcmp(cluster, "a") ? "b" : "a");
  spawn_elsewhere("of nobody");
  MPI_Comm joined;
  int class_of_join = -1;
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Error_class(MPI_Comm_join(0, &joined), &class_of_join);
  SAME(class_of_join, MPI_ERR_UNSUPPORTED_OPERATION, "Comm_join");

  /* A handler of the program's gets the communicator and the code; a dup inherits it. */
  MPI_Comm_create_errhandler(handler, &mine);
  MPI_Comm_set_errhandler(c, mine);
  MPI_Comm_get_errhandler(c, &set);
  CHECK(set == mine, "Comm_get_errhandler");
  MPI_Errhandler_free(&set);
  MPI_Errhandler_free(&mine); /* still in use by c */
  MPI_Win w;
  void *memory;
  MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, c, &memory, &w);
  SAME(calls, 1, "calls of the handler");
  CHECK(on == c, "the handler's communicator");
  SAME(last, MPI_ERR_UNSUPPORTED_OPERATION, "the handler's error class");
  int x = me;
  MPI_Send(&x, 1, MPI_INT, np, 0, c);
  SAME(calls, 2, "calls after a wrong rank");
  SAME(last, MPI_ERR_RANK, "class of a wrong rank");
  MPI_Bcast(&x, 1, MPI_INT, -5, c);
  SAME(calls, 3, "calls after a wrong root");
  SAME(last, MPI_ERR_ROOT, "class of a wrong root");
  MPI_Comm_call_errhandler(c, MPI_ERR_OTHER);
  SAME(calls, 4, "calls after Comm_call_errhandler");
  MPI_Comm_dup(c, &d);
  MPI_Send(&x, 1, MPI_INT, np, 0, d);
  SAME(calls, 5, "calls of the dup's handler");
  CHECK(on == d, "the dup's communicator");
  MPI_Comm_free(&d);

  /* Info objects are kept. */
  MPI_Info info, used;
  char value[64];
  int flag;
  MPI_Info_create(&info);
  MPI_Info_set(info, "a_hint_of_nobody", "17");
  SAME(MPI_Comm_dup_with_info(c, info, &d), MPI_SUCCESS, "Comm_dup_with_info");
  SAME(MPI_Comm_set_info(d, info), MPI_SUCCESS, "Comm_set_info");
  SAME(MPI_Comm_get_info(d, &used), MPI_SUCCESS, "Comm_get_info");
  MPI_Info_get(info, "a_hint_of_nobody", sizeof value - 1, value, &flag);
  CHECK(flag && !strcmp(value, "17"), "Info_get");
  MPI_Info_free(&info), MPI_Info_free(&used);

  /* A window that spans clusters never has shared memory. */
  int rc, unit, class_of_query = -1;
  MPI_Aint bytes;
  MPI_Win_allocate(8, 1, MPI_INFO_NULL, d, &memory, &w);
  MPI_Win_set_errhandler(w, MPI_ERRORS_RETURN);
  rc = MPI_Win_shared_query(w, 0, &bytes, &unit, &memory);
  MPI_Error_class(rc, &class_of_query);
  SAME(class_of_query, MPI_ERR_RMA_FLAVOR, "Win_shared_query");
#if MPI_VERSION >= 4
  MPI_Aint units;
  MPI_Error_class(MPI_Win_shared_query_c(w, 0, &bytes, &units, &memory), &class_of_query);
  SAME(class_of_query, MPI_ERR_RMA_FLAVOR, "Win_shared_query_c");
#endif
  /* Compare and swap is not defined for floating point. */
  double one = 1, was = 0;
  rc = MPI_Compare_and_swap(&one, &one, &was, MPI_DOUBLE, 0, 0, w);
  MPI_Error_class(rc, &class_of_query);
  SAME(class_of_query, MPI_ERR_TYPE, "Compare_and_swap of MPI_DOUBLE");
  MPI_Win_free(&w);

  /* A communicator of one host is inside a cluster. */
  MPI_Comm inside;
  MPI_Comm_split_type(d, MPI_COMM_TYPE_SHARED, me, MPI_INFO_NULL, &inside);
  int size;
  MPI_Comm_size(inside, &size);
  CHECK(size < np, "a host's communicator of all clusters");
  MPI_Comm_free(&inside);

  int sum = 0;
  MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, d);
  SAME(sum, np * (np - 1) / 2, "sum at the end");
  MPI_Comm_free(&d), MPI_Comm_free(&c);
  return finish();
}
