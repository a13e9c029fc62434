/* The signals that a process was started to ignore or block, recorded before Go's runtime changes
 * that. */
#ifndef ZIPPER_INHERITED_H
#define ZIPPER_INHERITED_H
int zi_is_ignored(int number);            /* a signal, from 1 to 64 */
unsigned long long zi_blocked_mask(void); /* bit n - 1 is signal n */
#endif
