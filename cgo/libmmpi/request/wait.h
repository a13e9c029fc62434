/* Waiting. There is one wait loop; a thread in it serves everything else meanwhile. */
#ifndef ZIPPER_WAIT_H
#define ZIPPER_WAIT_H
#include "core/job.h"
#include "request/fault.h"

#pragma GCC visibility push(hidden)

/* The number of tests by this thread that have found a native request incomplete. Each test has
 * driven native progress, so a caller whose count has changed need not drive it again. */
extern _Thread_local unsigned z_looks;

/* Runs the wait loop until over(arg) returns a value other than 0. The loop drives the links and
 * native progress, and never blocks in native MPI. */
void z_wait(int (*over)(void *), void *arg);
/* Runs the wait loop as z_wait does, for a wait that ends with a message for which the engine has
 * no receive, such as a probe. */
void z_wait_links(int (*over)(void *), void *arg);
/* waits until the engine's operation with this cell has completed */
void z_wait_cell(z_cell *cell);
/* Waits for a native request, stores its status in *status, and returns its MPI error code. Native
 * MPI raises the error, as its MPI_Wait does. Everything else is served meanwhile. */
int z_wait_native(MPI_Request *request, MPI_Status *status);
/* Waits for the native request of a stage of a collective, and returns an MPI error code. The stage
 * may take long, so the wait spins and then sleeps. */
int z_wait_stage(MPI_Request *request);
/* Waits for the native request of a blocking call on comm as z_wait_native does, and returns the
 * code for the program. An error is raised on comm, also with MPICH 4.0, whose MPI_Wait raises
 * it on MPI_COMM_WORLD alone. */
int z_wait_for_call(MPI_Comm comm, MPI_Request *request, MPI_Status *status);
/* Waits for n native requests as MPI_Waitall does, and returns its MPI error code; native MPI
 * raises the error. */
int z_wait_natives(int n, MPI_Request requests[], MPI_Status statuses[]);
/* Waits for n native requests one after the other, also after one has failed, and returns the first
 * error code or MPI_SUCCESS. */
int z_wait_each(int n, MPI_Request requests[]);
/* Synchronizes the processes of a native communicator by a barrier, in which each of them serves
 * the others. It must precede a native call that blocks and has no nonblocking form. Returns an MPI
 * error code. */
int z_native_barrier(MPI_Comm comm);
/* Reads from the environment how waits behave (ZIPPER_POLL), before the first wait. native_size is
 * the size of the native world. stages_moved is zstages_moved, called while nothing but native
 * stages is in progress. */
void z_poll_start(int native_size, int (*stages_moved)(void));
void z_poll(void); /* drives the links and native MPI once, without blocking */
/* drives all progress once, unless nothing but native MPI has anything to do */
void z_poll_if_busy(void);
/* 1 if Open MPI yields the core in each turn of native progress that finds nothing, and cannot be
 * told not to. */
extern int z_native_yields;

#pragma GCC visibility pop
#endif
