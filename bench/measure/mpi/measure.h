/* The parts of the MPI program of bench/measure. */
#pragma once
#define _GNU_SOURCE
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define WORLD MPI_COMM_WORLD
#define PART out, size, MPI_CHAR

/* An operation that is measured at a size. Exactly one of the three functions is set. */
typedef struct {
  const char *name;    /* NULL ends a table */
  void (*one)(void);   /* makes one call of a collective */
  int (*calls)(int);   /* makes so many calls and returns how many operations these were */
  void (*whole)(void); /* measures by itself and prints points */
  int parts;           /* number of messages that a buffer holds; 0: one for each rank */
  int window;          /* tells that it accesses the window */
} operation;

extern const operation pairwise[], smalls[], collectives[], longs[];

/* The command line. */
extern struct options {
  double seconds; /* measured time of a point or stream */
  double warm;    /* seconds of a stream before the measured time */
  double window;  /* bytes in flight, of all streams together */
  int count;      /* number of blocking sends, or of calls of a collective; 0: the seconds decide */
} options;

extern int rank, ranks, last; /* last: the last rank */
extern int size;              /* of a message, in bytes */
extern char *out, *in;        /* buffers of at least 8 bytes */
extern int *counts, *places;  /* of the parts in the buffers, for each rank */

double now(void); /* seconds of a clock that all processes of a machine share */
_Noreturn void die(const char *why);
void *room(size_t bytes);
void open_window(size_t bytes);
void close_window(void);
MPI_Datatype number(void);                   /* of reductions: float, or char if the size is no multiple of a float's */
int numbers(void);                           /* that make up the size */
int ascending(const void *a, const void *b); /* compares two doubles, for qsort */
void point(const char *name, const double *values, int n);
