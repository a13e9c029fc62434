/* The functions of MPI for programs that go on when processes have failed (ULFM). Each raises
 * errors under the name `function`, by which the program has called it (MPI_ or MPIX_), and returns
 * the code for the program. In a job that ends when a cluster is lost all of them raise
 * MPI_ERR_UNSUPPORTED_OPERATION. */
#ifndef ZIPPER_FAILURE_H
#define ZIPPER_FAILURE_H
#include "comm/comm.h"

/* Checks that the job goes on when a cluster is lost, and that the processes of c, if it is not
 * NULL, are all of this job. Otherwise raises an error on comm and returns its code. */
int zfailure_check(MPI_Comm comm, const zcomm *c, const char *function);

/* Revokes a communicator in all of its processes. Of the communicators inside a cluster only those
 * of one process can be revoked. */
int zfailure_revoke(MPI_Comm comm, const char *function);
/* Sets *flag to 1 if comm has been revoked, otherwise to 0. */
int zfailure_is_revoked(MPI_Comm comm, int *flag, const char *function);
/* Makes the group of those processes of comm that this process knows to have failed. */
int zfailure_get_failed(MPI_Comm comm, MPI_Group *out, const char *function);
/* Acknowledges the failure of the first n processes of the group that zfailure_get_failed makes,
 * and sets *acked to the number of processes whose failure is acknowledged now. */
int zfailure_ack_failed(MPI_Comm comm, int n, int *acked, const char *function);
/* Acknowledges all failures that this process knows of. */
int zfailure_ack(MPI_Comm comm, const char *function);
/* Makes the group of the processes of comm whose failure is acknowledged. */
int zfailure_get_acked(MPI_Comm comm, MPI_Group *out, const char *function);
/* Sets *flag to the bitwise AND of the flags of all living processes of comm, which agree on it.
 * The error is that of a failed process if one of the processes has not acknowledged all failures.
 * `request` is NULL for the blocking function. */
int zfailure_agree(MPI_Comm comm, int *flag, MPI_Request *request, const char *function);
/* Makes the communicator of all living processes of comm, in the order of their ranks. `request` is
 * NULL for the blocking function. */
int zfailure_shrink(MPI_Comm comm, MPI_Comm *out, MPI_Request *request, const char *function);
#endif
