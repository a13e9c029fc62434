/* The constants of entries into the engine. */
#ifndef ZIPPER_ENTRY_LIMITS_H
#define ZIPPER_ENTRY_LIMITS_H

/* The number of bytes of the stack that are searched for the place that a signal handler has
 * interrupted (entry/resume.c). It bounds what the handler and the functions that it has called may
 * have on the stack when they call MPI_Abort. The search also ends at the end of the stack. The
 * value is chosen, not measured. */
enum { Z_HANDLER_BYTES = 8 << 20 };

#endif
