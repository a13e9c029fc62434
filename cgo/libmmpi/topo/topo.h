/* Virtual topologies of communicators that span clusters. */
#ifndef ZIPPER_TOPO_H
#define ZIPPER_TOPO_H
#include "core/comm.h"

/* The virtual topology of a communicator: a Cartesian grid, a graph or a distributed graph. */
typedef struct ztopo {
  /* the head by which zcomm.topo refers to it */
  zattached base;
  /* the kind of the topology: MPI_CART, MPI_GRAPH or MPI_DIST_GRAPH */
  int kind;
  /* Cartesian: the number of dimensions, and 0. Graph: the numbers of nodes and edges. Distributed
   * graph: the numbers of this process's sources and destinations. */
  int n, m;
  /* 1 for a distributed graph with weights, otherwise 0 */
  int weighted;
  /* the number of elements of `data` */
  int length;
  /* Cartesian: dims[n], periods[n]. Graph: index[n], edges[m]. Distributed graph: sources[n],
   * weights[n], destinations[m], weights[m]. */
  int data[];
} ztopo;

/* Allocates a topology of a kind, with n and m as in ztopo, and zeroed data. Returns NULL if memory
 * is exhausted. */
ztopo *ztopo_make(int kind, int n, int m);
/* Returns the virtual topology of c, or NULL if c has none. */
static inline const ztopo *ztopo_of(const zcomm *c) { return (const ztopo *)c->topo; }

/* Returns the neighbours of a rank: the *indegree ranks *in from which it receives, and the
 * *outdegree ranks *out to which it sends, among which may be MPI_PROC_NULL. The caller frees *in
 * and *out, which may be the same array. Returns an MPI error class. */
int ztopo_neighbors(const ztopo *t, int rank, int *indegree, int **in, int *outdegree, int **out);

/* Returns the rank at the coordinates in a Cartesian topology, or MPI_PROC_NULL if they are outside
 * of the grid. */
int zcart_rank(const ztopo *t, const int *coords);
/* Sets coords to the coordinates of a rank in a Cartesian topology. */
void zcart_coords(const ztopo *t, int rank, int *coords);
/* Returns the rank that is `by` steps from a rank in dimension dim of a Cartesian topology, or
 * MPI_PROC_NULL if that is outside of the grid. */
int zcart_shift(const ztopo *t, int rank, int dim, int by);

/* Choose the positions of n processes so that few neighbours are in different clusters (reorder.c).
 * cluster[i] is the cluster of process i, and position[i] is set to its position. All processes get
 * the same result. They return an MPI error class. */
int zreorder_cart(const ztopo *t, int n, const int *cluster, int *position);
int zreorder_graph(int n, const int *index, const int *edges, const int *cluster, int *position);

/* Making communicators (make.c). Errors are raised. */
/* Makes *out the communicator of the ranks of c that pass the same color, in the order of position,
 * with the topology t, of which it takes ownership. A process with a negative color gets
 * MPI_COMM_NULL. Raises errors and returns the code for the program. Collective. */
int ztopo_comm(zcomm *c, ztopo *t, int color, int position, const char *function, MPI_Comm *out);
/* Sets position[i], for each of the first n ranks i of c, to the position in the topology t that
 * the rank takes: its own number or, with `reorder`, one near its neighbours. Raises errors and
 * returns the code for the program. */
int ztopo_reorder(zcomm *c, const ztopo *t, int n, int reorder, const char *function, int *position);
/* Raises an error if c is an intercommunicator, which can have no topology. Returns its code, or
 * MPI_SUCCESS. */
int ztopo_no_inter(zcomm *c, const char *function);
/* Raises an error of a class on c with the text `why`, and returns the code that the MPI function
 * must return. */
int ztopo_fails(zcomm *c, int class_, const char *function, const char *why);
#endif
