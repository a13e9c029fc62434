/* The sizes of alternate signal stacks. */
#ifndef ZIPPER_SIGNAL_LIMITS_H
#define ZIPPER_SIGNAL_LIMITS_H

/* An alternate stack is as long as RLIMIT_STACK says, as a thread's own stack is, within these
 * bounds. Bytes. Its pages take memory once a handler has used them. Where there is no address
 * space for it, it is the longest that fits, of Z_LEAST_STACK at least. */
enum { Z_SHORT_STACK = 1 << 20, Z_LONG_STACK = 8 << 20, Z_LEAST_STACK = 128 << 10 };

/* Bytes below the stack that cannot be touched: a handler that needs more gets SIGSEGV. */
enum { Z_STACK_GUARD = 64 << 10 };

/* An alternate stack of the program's is used as it is from so many bytes on. A shorter one was
 * meant for handlers that report a crash, and is replaced by one of ours. */
enum { Z_KEPT_STACK = 512 << 10 };

#endif
