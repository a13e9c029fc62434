/* The data that the preloaded library (preload/unmaps.c) and the engine share: notes of memory that
 * the program has returned to the system, or is about to. */
#ifndef ZIPPER_UNMAPS_H
#define ZIPPER_UNMAPS_H
#include <stdint.h>

#define ZU_NOTES 1024

/* Note t, counted from 0, is in note[t % ZU_NOTES]. Its number becomes t + 1 after from and to (the
 * first byte after the range) have been written. A reader that finds another number does not know
 * the noted range, and must take it for the whole address space. All fields are atomic. */
typedef struct zu_list {
  uint64_t count;
  struct {
    uint64_t number, from, to;
  } note[ZU_NOTES];
} zu_list;

#define ZU_SYMBOL "zipper_unmaps" /* the symbol of the list in libmmpi-unmaps.so */
#endif
