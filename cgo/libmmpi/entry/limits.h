/* The numbers of entries into the engine. */
#ifndef ZIPPER_ENTRY_LIMITS_H
#define ZIPPER_ENTRY_LIMITS_H

/* How much of the stack is searched for the place that a signal handler has interrupted
 * (entry/resume.c), bytes: what the handler and the functions that it has called may have on the
 * stack when they call MPI_Abort. Chosen, not measured; the search ends where the stack does. */
enum { Z_HANDLER_BYTES = 8 << 20 };

#endif
