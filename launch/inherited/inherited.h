/* What a process was started with, noted before Go's runtime changes it. */
#ifndef ZIPPER_INHERITED_H
#define ZIPPER_INHERITED_H
int zi_is_ignored(int number);            /* a signal, from 1 to 64 */
unsigned long long zi_blocked_mask(void); /* bit n - 1 is signal n */
#endif
