/* The sizes of alternate signal stacks, in bytes. */
#ifndef ZIPPER_SIGNAL_LIMITS_H
#define ZIPPER_SIGNAL_LIMITS_H

/* The bounds of an alternate stack. Within them it is as long as RLIMIT_STACK, like a thread's own
 * stack. Its pages take memory once a handler has used them. If the address space has no room for
 * it, its length is halved until it fits, but not below Z_LEAST_STACK. */
enum { Z_SHORT_STACK = 1 << 20, Z_LONG_STACK = 8 << 20, Z_LEAST_STACK = 128 << 10 };

/* The number of inaccessible bytes below the stack. A handler that needs more stack gets
 * SIGSEGV. */
enum { Z_STACK_GUARD = 64 << 10 };

/* The size from which on an alternate stack of the program's is used as it is. A shorter one was
 * meant for handlers that report a crash, and is replaced. */
enum { Z_KEPT_STACK = 512 << 10 };

#endif
