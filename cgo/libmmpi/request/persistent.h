/* What every persistent request of ours has in `extra`. */
#ifndef ZIPPER_PERSISTENT_H
#define ZIPPER_PERSISTENT_H
#include "request/request.h"

typedef struct zpersistent {
  int (*start)(zreq *r); /* sets r->inner; the code to return, raised */
  void (*end)(zreq *r);  /* the program frees r: what else extra holds. NULL: nothing */
} zpersistent;
#endif
