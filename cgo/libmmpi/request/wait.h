/* Waiting. There is one wait loop; whoever waits serves everything else meanwhile. */
#ifndef ZIPPER_WAIT_H
#define ZIPPER_WAIT_H
#include "core/job.h"
#include "request/fault.h"

#pragma GCC visibility push(hidden)

/* How many tests of native requests that were not over this thread has made. Each has driven native
 * MPI */
extern _Thread_local unsigned z_looks;

/* The wait loop: moves on what can be moved, natively too, until over(arg) is not 0. It never
 * blocks natively. */
void z_wait(int (*over)(void *), void *arg);
void z_wait_links(int (*over)(void *), void *arg); /* … for a message that the engine was not asked for: a probe */
void z_wait_cell(z_cell *cell);
int z_wait_native(MPI_Request *request, MPI_Status *status); /* a native request; MPI error code, not raised by us */
/* A native stage of a collective, which may take long: spins, then sleeps */
int z_wait_stage(MPI_Request *request);
/* The same for a blocking call on comm, where errors are raised */
int z_wait_for_call(MPI_Comm comm, MPI_Request *request, MPI_Status *status);
int z_wait_natives(int n, MPI_Request requests[], MPI_Status statuses[]);
int z_wait_each(int n, MPI_Request requests[]); /* all, also when one has failed; the first error code */
/* Called before a native call that blocks and has no nonblocking form. When it returns all of comm
 * are there; each has served the others meanwhile */
int z_native_barrier(MPI_Comm comm);
/* Called before the first wait: reads from the environment how to wait. native_size is the size of
 * the native world. stages_moved tells whether a native stage of a collective is over; it is asked
 * while the engine has nothing else (Z_STAGING). */
void z_poll_start(int native_size, int (*stages_moved)(void));
void z_poll(void);          /* once, never blocking */
void z_poll_if_busy(void);  /* … unless only native MPI has anything to do */
extern int z_native_yields; /* 1: each turn of native progress that finds nothing gives the core away */

#pragma GCC visibility pop
#endif
