/* Virtual topologies of communicators that span clusters. */
#ifndef ZIPPER_TOPO_H
#define ZIPPER_TOPO_H
#include "core/comm.h"

typedef struct ztopo {
  zattached base;
  int kind; /* MPI_CART, MPI_GRAPH or MPI_DIST_GRAPH */
  /* cart: dimensions, 0; graph: nodes, edges; distributed graph: sources and destinations of this
   * process */
  int n, m;
  int weighted; /* distributed graph */
  int length;   /* of data */
  /* cart: dims[n], periods[n]; graph: index[n], edges[m]; distributed: sources[n], weights[n],
   * destinations[m], weights[m] */
  int data[];
} ztopo;

ztopo *ztopo_make(int kind, int n, int m);                                             /* zeroed; NULL: no memory */
static inline const ztopo *ztopo_of(const zcomm *c) { return (const ztopo *)c->topo; } /* NULL: c has none */

/* The neighbours of a rank, MPI_PROC_NULL among them. *in and *out are to be freed; they may be the
 * same. MPI error class. */
int ztopo_neighbors(const ztopo *t, int rank, int *indegree, int **in, int *outdegree, int **out);

/* Cartesian arithmetic; MPI_PROC_NULL outside. */
int zcart_rank(const ztopo *t, const int *coords);
void zcart_coords(const ztopo *t, int rank, int *coords);
int zcart_shift(const ztopo *t, int rank, int dim, int by);

/* Reordering (reorder.c): which of n processes takes which position, so that few neighbours are in
 * different clusters. cluster[i] is the cluster of process i, and position[i] becomes its position.
 * The same everywhere. MPI error class. */
int zreorder_cart(const ztopo *t, int n, const int *cluster, int *position);
int zreorder_graph(int n, const int *index, const int *edges, const int *cluster, int *position);

/* Making (topo.c). Errors are raised. */
/* The communicator of those of c with that color (< 0: none), in order of position, with the
 * topology t, which it takes over. */
int ztopo_comm(zcomm *c, ztopo *t, int color, int position, const char *function, MPI_Comm *out);
/* The position of each of the first n ranks of c: its rank, or with `reorder` one near its
 * neighbours. */
int ztopo_reorder(zcomm *c, const ztopo *t, int n, int reorder, const char *function, int *position);
int ztopo_no_inter(zcomm *c, const char *function);
int ztopo_fails(zcomm *c, int class_, const char *function, const char *why);
#endif
