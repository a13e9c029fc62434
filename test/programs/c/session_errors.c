/* Errors of session functions are raised on the session's error handler, and those of functions
 * that make a communicator from groups on the handler that they get. MPICH 4.0 raises all of them
 * on MPI_COMM_WORLD natively, so the program verifies its own results. */
#include "check.h"

#ifdef MPI_SESSION_NULL
enum { WORLD, SESSION, GIVEN, HANDLERS };
static int calls[HANDLERS], class_;

static void on_world(MPI_Comm *comm, int *code, ...) {
  (void)comm, calls[WORLD]++;
  MPI_Error_class(*code, &class_);
}

static void on_given(MPI_Comm *comm, int *code, ...) {
  (void)comm, calls[GIVEN]++;
  MPI_Error_class(*code, &class_);
}

static void on_session(MPI_Session *session, int *code, ...) {
  (void)session, calls[SESSION]++;
  MPI_Error_class(*code, &class_);
}

static void raised(int rc, int want, int where, const char *what) {
  int got = -1;
  MPI_Error_class(rc, &got);
  SAME(got, want, what);
  SAME(class_, want, what);
  for (int i = 0; i < HANDLERS; i++) SAME(calls[i], i == where, what);
  memset(calls, 0, sizeof calls), class_ = -1;
}
#define RAISED(where, want, call) raised(call, want, where, #call)

int main(int argc, char **argv) {
  start(&argc, &argv);
  MPI_Session session;
  MPI_Errhandler world, given, mine;
  MPI_Group all, alone, none = MPI_GROUP_NULL;
  MPI_Comm comm;
  int length = 0, next = (me + 1) % np;
  char name[MPI_MAX_PSET_NAME_LEN + 1];
  MPI_Comm_create_errhandler(on_world, &world);
  MPI_Comm_create_errhandler(on_given, &given);
  MPI_Session_create_errhandler(on_session, &mine);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, world);
  SAME(MPI_Session_init(MPI_INFO_NULL, mine, &session), MPI_SUCCESS, "MPI_Session_init");
  MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
  MPI_Group_incl(all, 1, &next, &alone);

  RAISED(SESSION, MPI_ERR_ARG, MPI_Session_get_num_psets(session, MPI_INFO_NULL, NULL));
  RAISED(SESSION, MPI_ERR_ARG, MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, NULL, name));
  RAISED(SESSION, MPI_ERR_ARG, MPI_Session_get_nth_pset(session, MPI_INFO_NULL, -1, &length, name));
  SAME(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, NULL), MPI_SUCCESS, "the length of a name");
  RAISED(SESSION, MPI_ERR_ARG, MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, NULL));
  RAISED(SESSION, MPI_ERR_ARG, MPI_Session_get_pset_info(session, "mpi://WORLD", NULL));
  RAISED(SESSION, MPI_ERR_ARG, MPI_Session_get_pset_info(session, NULL, NULL));
  RAISED(SESSION, MPI_ERR_ARG, MPI_Group_from_session_pset(session, "mpi://WORLD", NULL));
  RAISED(SESSION, MPI_ERR_ARG, MPI_Group_from_session_pset(session, NULL, &none));

  RAISED(GIVEN, MPI_ERR_ARG, MPI_Comm_create_from_group(all, "a", MPI_INFO_NULL, given, NULL));
  RAISED(GIVEN, MPI_ERR_ARG, MPI_Comm_create_from_group(all, NULL, MPI_INFO_NULL, given, &comm));
  RAISED(GIVEN, MPI_ERR_GROUP, MPI_Comm_create_from_group(MPI_GROUP_NULL, "a", MPI_INFO_NULL, given, &comm));
  RAISED(GIVEN, MPI_ERR_GROUP, MPI_Comm_create_from_group(alone, "a", MPI_INFO_NULL, given, &comm));
  RAISED(GIVEN, MPI_ERR_ARG, MPI_Intercomm_create_from_groups(all, 0, alone, 0, "a", MPI_INFO_NULL, given, NULL));
  RAISED(GIVEN, MPI_ERR_GROUP, MPI_Intercomm_create_from_groups(all, np, alone, 0, "a", MPI_INFO_NULL, given, &comm));

  MPI_Group_free(&alone), MPI_Group_free(&all);
  MPI_Session_finalize(&session);
  MPI_Errhandler_free(&world), MPI_Errhandler_free(&given), MPI_Errhandler_free(&mine);
  line("done");
  return finish();
}
#else
int main(void) { return 1; } /* the library has no sessions */
#endif
