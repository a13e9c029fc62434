/* Waiting. There is one wait loop; a thread in it serves everything else meanwhile. */
#ifndef ZIPPER_WAIT_H
#define ZIPPER_WAIT_H
#include "core/job.h"
#include "request/fault.h"

#pragma GCC visibility push(hidden)

/* The number of tests by this thread that found a native request not complete. Each test has driven
 * native progress. */
extern _Thread_local unsigned z_looks;

/* Runs the wait loop until over(arg) returns a value other than 0. It drives the links and native
 * progress, and never blocks in native MPI. */
void z_wait(int (*over)(void *), void *arg);
/* Runs the wait loop as z_wait does, for a probe, which waits for a message for which the engine
 * has no receive. */
void z_wait_links(int (*over)(void *), void *arg);
void z_wait_cell(z_cell *cell); /* waits until the operation of a cell has completed */
/* Waits for a native request, and returns an MPI error code without raising it. */
int z_wait_native(MPI_Request *request, MPI_Status *status);
/* Waits for a native stage of a collective, which may take long: it spins, then sleeps. */
int z_wait_stage(MPI_Request *request);
/* Waits for the native request of a blocking call on comm, on which errors are raised. */
int z_wait_for_call(MPI_Comm comm, MPI_Request *request, MPI_Status *status);
/* Waits for n native requests as MPI_Waitall does, and returns an MPI error code without raising
 * it. */
int z_wait_natives(int n, MPI_Request requests[], MPI_Status statuses[]);
/* Waits for all requests, also after one has failed, and returns the first error code. */
int z_wait_each(int n, MPI_Request requests[]);
/* Synchronizes the processes of a native communicator, each of which serves the others meanwhile.
 * Called before a native call that blocks and has no nonblocking form. */
int z_native_barrier(MPI_Comm comm);
/* Reads from the environment how to wait. Called before the first wait. native_size is the size of
 * the native world. stages_moved returns whether a native stage of a collective has completed; it
 * is called while the engine has nothing else in progress (Z_STAGING). */
void z_poll_start(int native_size, int (*stages_moved)(void));
void z_poll(void);         /* drives all progress once, without blocking */
void z_poll_if_busy(void); /* drives all progress once, unless only native MPI has something to do */
/* 1 if each turn of native progress that finds nothing yields the core. */
extern int z_native_yields;

#pragma GCC visibility pop
#endif
