/* The driver of a kind of devices. Each driver has a file with its zdriver, which also declares the
 * driver's types, because the driver's headers need not be installed. */
#ifndef ZIPPER_DRIVER_H
#define ZIPPER_DRIVER_H
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* A copy of `rows` rows of `width` bytes each. The pitches are the distances in bytes from one row
 * to the next, and at least the width. */
typedef struct zrows {
  char *to;
  const char *from;
  int64_t width, rows, to_pitch, from_pitch;
} zrows;

/* A thread's use of a device. */
typedef struct zplace {
  /* the device's queue of copies, which the library has made */
  void *queue;
  /* the device that was the thread's current one before, if the driver keeps one by number */
  int before;
} zplace;

/* A driver that the process has loaded. Functions that return int return 0 or an error of the
 * driver, unless a comment says otherwise. */
typedef struct zdriver {
  const char *name; /* the name for the user, such as "CUDA" */
  const char *file; /* the beginning of the file names of the driver's library */
  /* Looks up the functions of the driver in its library. Returns whether the driver can have
   * devices. */
  int (*open)(void *library);
  /* Returns whether the address p lies in memory of a device that the host cannot read. */
  int (*owns)(const void *p);
  /* Makes the context of the memory at `device` current in this thread, and sets *place. */
  int (*enter)(zplace *place, const void *device);
  /* Adds a copy to the queue of a place that has been entered. */
  int (*copy)(const zplace *place, const zrows *rows);
  /* Waits until all copies in the queue have been made. */
  int (*wait)(const zplace *place);
  /* Ends what a successful call of `enter` has begun. */
  void (*leave)(const zplace *place);
  /* Allocates memory of the host, in a context that has been entered, that the device can access
   * directly, so that copies need no further copy by the driver. Returns NULL if it fails. The
   * memory is not freed. */
  void *(*pin)(size_t bytes);
  /* Returns the text of an error. */
  const char *(*text)(int error);
} zdriver;

extern const zdriver zdriver_cuda, zdriver_hip, zdriver_ze;

/* A function of a driver: its name, and the pointer that gets its address. */
typedef struct zsymbol {
  const char *name;
  void **at;
} zsymbol;

/* Looks up n functions in a library, and returns the name of the first that it lacks, or NULL. */
const char *zdriver_look_up(void *library, const zsymbol *symbols, size_t n);

/* Returns whether p is to be taken for memory of a device, after the driver has answered the
 * question with an error, one of CUDA or HIP. Some errors are usual for ordinary memory. After
 * any other the device has failed, and the driver may recognize nothing; then p is the device's
 * if the processor cannot read it, and a copy will report the failure. */
int zdriver_owned_despite(int error, const void *p);

/* The error by which the files of this chapter denote that a driver lacks a function. */
enum { ZDRIVER_LACKS = -1 };

#pragma GCC visibility pop
#endif
