/* Common functions of the programs that lose a cluster. Such a program is started with --on-loss
 * continue. The processes of the last cluster end by SIGKILL when the program calls perish(). */
#ifndef LOST_H
#define LOST_H
#include "../../../include/mmpi-ft.h"
#include "check.h"
#include <signal.h>
#include <unistd.h>

static int victims;            /* the number of ranks that end, the last ones of MPI_COMM_WORLD */
static int dying;              /* 1 if this process is one of them */
static int first_dying;        /* the first of them */
static const char *phase = ""; /* the name of the call in which the cluster is lost */

/* Begins a program with the arguments "victims phase". Errors are returned. */
static inline void begin_lost(int *argc, char ***argv) {
  start(argc, argv);
  victims = *argc > 1 ? atoi((*argv)[1]) : 1;
  phase = *argc > 2 ? (*argv)[2] : "";
  first_dying = np - victims;
  dying = me >= first_dying;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  alarm(getenv("LOST_BY") ? 180 : 90); /* a call that hangs ends the program */
}

/* Ends this process as a cluster is lost, if it is one of those that end. With LOST_BY=stop it
 * stops and, when it is continued, waits for the end of its job. With LOST_BY=cut it only waits. */
static inline void perish(void) {
  const char *by = getenv("LOST_BY");
  int x;
  if (!dying) return;
  if (!by) kill(getpid(), SIGKILL);
  printf("process %d is to be lost\n", (int)getpid());
  fflush(stdout);
  if (!strcmp(by, "stop")) raise(SIGSTOP);
  alarm(180);
  MPI_Recv(&x, 1, MPI_INT, 0, 31999, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  _exit(3);
}

static inline int class_of(int rc) {
  int class_ = -1;
  MPI_Error_class(rc, &class_);
  return class_;
}

static inline const char *name_of(int rc) {
  int class_ = class_of(rc);
  return class_ == MPI_SUCCESS                    ? "MPI_SUCCESS"
         : class_ == MPIX_ERR_PROC_FAILED         ? "MPI_ERR_PROC_FAILED"
         : class_ == MPIX_ERR_PROC_FAILED_PENDING ? "MPI_ERR_PROC_FAILED_PENDING"
         : class_ == MPIX_ERR_REVOKED             ? "MPI_ERR_REVOKED"
         : class_ == MPI_ERR_IN_STATUS            ? "MPI_ERR_IN_STATUS"
                                                  : "another class";
}
#define CLASS(rc, want)                                                                                 \
  do {                                                                                                  \
    int rc_ = (rc);                                                                                     \
    if (class_of(rc_) != (want)) failed(__FILE__, __LINE__, #rc " returns %s (%d)", name_of(rc_), rc_); \
  } while (0)

/* Waits until all processes have come this far. The barrier of a survivor may fail, because a
 * process that has left it may be lost already. */
static inline void meet(void) {
  int rc = MPI_Barrier(MPI_COMM_WORLD);
  if (rc) CLASS(rc, MPIX_ERR_PROC_FAILED);
}

/* Waits until this process knows that the processes have failed. */
static inline void await_loss(MPI_Comm comm) {
  for (int n = 0; n < victims;) {
    MPI_Group group;
    int flag;
    CLASS(MPIX_Comm_get_failed(comm, &group), MPI_SUCCESS);
    MPI_Group_size(group, &n);
    if (group != MPI_GROUP_EMPTY) MPI_Group_free(&group);
    MPI_Iprobe(0, 32000, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    usleep(1000);
  }
}

/* Ends the program on the communicator of the survivors: rank 0 prints the report. */
static inline int finish_lost(MPI_Comm alive) {
  MPI_Comm_rank(alive, &me);
  MPI_Comm_size(alive, &np);
  report(alive);
  MPI_Finalize();
  return failures != 0;
}
#endif
