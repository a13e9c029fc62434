/* Runs a test program, which need not know it, with buffers in the memory of a device: the compiler
 * includes this file before the program (-include). Buffers that a call passes to other clusters
 * become addresses of the device; calls inside a cluster, whose MPI library may not take such
 * addresses, get the program's own.
 *
 *   ZIPPER_TEST_DEVICE=PATH     the driver's library: a fake one (fakedriver.c), or the real
 *                               libcuda.so.1 (mirror.h); unset: nothing is changed
 *   ZIPPER_TEST_DEVICE_AT=both (default)|even|odd|send|receive   the buffers that are concerned: all,
 *                               those of even or odd ranks, or, with fake drivers, those that are sent
 *                               or received into
 *   ZIPPER_TEST_DEVICE_MIRROR=1   a fake driver is used as the real one is
 */
#ifndef ON_DEVICE_H
#define ON_DEVICE_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mirror.h"

enum { OD_SENDS = 1, OD_RECEIVES = 2, OD_BOTH = 3 };

static int od_at;                         /* the buffers that are concerned, 0 before MPI_Init */
static void *(*od_address)(const void *); /* the device's address of memory of the program */
static int *od_cluster;                   /* the cluster of each process of MPI_COMM_WORLD */
static int od_me, od_size;

/* ---- beginning ---- */

static inline void od_open(const char *path) {
  const char *at = getenv("ZIPPER_TEST_DEVICE_AT");
  if (at && (!strcmp(at, "even") || !strcmp(at, "odd"))) {
    if (od_me % 2 != !strcmp(at, "odd")) return;
    at = NULL;
  }
  void *driver = dlopen(path, RTLD_NOW);
  if (!driver) {
    fprintf(stderr, "on_device: %s\n", dlerror());
    exit(9);
  }
  od_address = (void *(*)(const void *))dlsym(driver, "fake_device_address");
  if (!od_address || getenv("ZIPPER_TEST_DEVICE_MIRROR")) {
    mi_begin(driver);
    od_address = mi_address;
    at = NULL;
  }
  od_at = !at || !strcmp(at, "both") ? OD_BOTH : strcmp(at, "send") ? OD_RECEIVES : OD_SENDS;
}

/* Finds the cluster of each process in the job's layout, such as a=2,b=1. */
static inline void od_begin(void) {
  const char *path = getenv("ZIPPER_TEST_DEVICE"), *layout = getenv("ZIPPER_LAYOUT");
  if (!path || !*path || !layout || od_at) return;
  MPI_Comm_rank(MPI_COMM_WORLD, &od_me);
  MPI_Comm_size(MPI_COMM_WORLD, &od_size);
  od_cluster = calloc((size_t)od_size, sizeof *od_cluster);
  int rank = 0;
  for (int cluster = 0; layout; cluster++) {
    const char *n = strchr(layout, '=');
    for (int i = n ? atoi(n + 1) : 0; i > 0 && rank < od_size; i--) od_cluster[rank++] = cluster;
    layout = strchr(layout, ',');
    if (layout) layout++;
  }
  od_open(path);
}

static inline int od_init(int *argc, char ***argv) {
  int rc = MPI_Init(argc, argv);
  od_begin();
  return rc;
}

static inline int od_init_thread(int *argc, char ***argv, int want, int *got) {
  int rc = MPI_Init_thread(argc, argv, want, got);
  od_begin();
  return rc;
}

/* ---- which calls concern other clusters ---- */

/* Returns the number of members of a group that are in this process's cluster, and in *peers the
 * number of all. */
static inline int od_near(MPI_Group group, int *peers) {
  MPI_Group world;
  int n, near = 0;
  MPI_Group_size(group, &n);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  for (int i = 0, rank; i < n; i++) {
    MPI_Group_translate_ranks(group, 1, &i, world, &rank);
    near += rank >= 0 && od_cluster[rank] == od_cluster[od_me];
  }
  MPI_Group_free(&world);
  *peers = n;
  return near;
}

static inline MPI_Group od_peers(MPI_Comm comm) {
  int inter;
  MPI_Group group;
  MPI_Comm_test_inter(comm, &inter);
  if (inter) MPI_Comm_remote_group(comm, &group);
  else MPI_Comm_group(comm, &group);
  return group;
}

/* Returns whether a peer is in another cluster or, for MPI_ANY_SOURCE, may be. */
static inline int od_far(MPI_Comm comm, int peer) {
  if (comm == MPI_COMM_NULL || peer == MPI_PROC_NULL) return 0;
  MPI_Group all = od_peers(comm), one = MPI_GROUP_NULL;
  int n, near = 0;
  MPI_Group_size(all, &n);
  if (peer == MPI_ANY_SOURCE) near = od_near(all, &n) == n;
  else if (peer >= 0 && peer < n) {
    MPI_Group_incl(all, 1, &peer, &one);
    near = od_near(one, &n);
    MPI_Group_free(&one);
  } else near = 1;
  MPI_Group_free(&all);
  return !near;
}

/* Returns whether a communicator has processes of several clusters. */
static inline int od_spans(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) return 0;
  int n, near, inter;
  MPI_Group group = od_peers(comm);
  MPI_Comm_test_inter(comm, &inter);
  near = od_near(group, &n);
  MPI_Group_free(&group);
  if (near != n || !inter) return near != n;
  MPI_Comm_group(comm, &group);
  near = od_near(group, &n);
  MPI_Group_free(&group);
  return near != n;
}

static inline void *od_buffer(const void *p, int concerned) {
  mi_flush();
  return concerned && p && p != MPI_IN_PLACE && p != MPI_BOTTOM ? od_address(p) : (void *)(uintptr_t)p;
}

#define OD_P2P(USE, P, PEER, COMM) (od_at & (USE) ? od_buffer(P, od_far(COMM, PEER)) : (void *)(uintptr_t)(P))
#define OD_COLL(USE, P, COMM) (od_at & (USE) ? od_buffer(P, od_spans(COMM)) : (void *)(uintptr_t)(P))
#define OD_ANY(USE, P) (od_at & (USE) ? od_buffer(P, 1) : (void *)(uintptr_t)(P))

/* ---- matched probes: a message's source is in its status ---- */

static MPI_Message od_messages[64]; /* those from this cluster */

static inline void od_probed(MPI_Comm comm, const MPI_Message *m, const MPI_Status *s) {
  if (!od_at || od_far(comm, s->MPI_SOURCE)) return;
  for (int i = 0; i < 64; i++)
    if (!od_messages[i] || od_messages[i] == MPI_MESSAGE_NULL) {
      od_messages[i] = *m;
      return;
    }
}

static inline void *od_message(void *p, MPI_Message m) {
  mi_flush();
  if (!(od_at & OD_RECEIVES)) return p;
  for (int i = 0; i < 64; i++)
    if (od_messages[i] == m) return od_messages[i] = p ? MPI_MESSAGE_NULL : m, p; /* without a buffer it is an error */
  return !p || m == MPI_MESSAGE_NO_PROC ? p : od_address(p);
}

static inline int od_mprobe(int source, int tag, MPI_Comm comm, MPI_Message *m, MPI_Status *s) {
  MPI_Status own;
  int rc = MPI_Mprobe(source, tag, comm, m, s == MPI_STATUS_IGNORE ? s = &own : s);
  if (!rc && *m != MPI_MESSAGE_NO_PROC) od_probed(comm, m, s);
  return rc;
}

static inline int od_improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *m, MPI_Status *s) {
  MPI_Status own;
  int rc = MPI_Improbe(source, tag, comm, flag, m, s == MPI_STATUS_IGNORE ? s = &own : s);
  if (!rc && *flag && *m != MPI_MESSAGE_NO_PROC) od_probed(comm, m, s);
  return rc;
}

/* ---- a window's memory has the address that the program has passed ---- */

static inline int od_win_get_attr(MPI_Win w, int key, void *value, int *flag) {
  int rc = MPI_Win_get_attr(w, key, value, flag);
  uintptr_t p = *flag ? (uintptr_t) * (void **)value : 0, fake = (uintptr_t)1 << 62;
  if (rc || key != MPI_WIN_BASE || !od_at) return rc;
  if (mi.host && p >= mi.device && p < mi.device + MI_BYTES) *(void **)value = mi.host + (p - mi.device);
  else if (!mi.host) *(void **)value = (void *)(p & ~fake);
  return rc;
}
#define MPI_Win_get_attr(w, k, v, f) od_win_get_attr(w, k, v, f)

/* ---- the calls ---- */

/* A call of MPI, before and after which the data are in the device (mirror.h). */
#define OD_CALL(CALL)  \
  __extension__({      \
    mi_flush();        \
    int od_rc_ = CALL; \
    mi_flush();        \
    od_rc_;            \
  })

#define MPI_Init(a, b) OD_CALL(od_init(a, b))
#define MPI_Init_thread(a, b, c, d) OD_CALL(od_init_thread(a, b, c, d))

#define MPI_Send(p, n, t, peer, tag, c) OD_CALL(MPI_Send(OD_P2P(OD_SENDS, p, peer, c), n, t, peer, tag, c))
#define MPI_Ssend(p, n, t, peer, tag, c) OD_CALL(MPI_Ssend(OD_P2P(OD_SENDS, p, peer, c), n, t, peer, tag, c))
#define MPI_Bsend(p, n, t, peer, tag, c) OD_CALL(MPI_Bsend(OD_P2P(OD_SENDS, p, peer, c), n, t, peer, tag, c))
#define MPI_Rsend(p, n, t, peer, tag, c) OD_CALL(MPI_Rsend(OD_P2P(OD_SENDS, p, peer, c), n, t, peer, tag, c))
#define MPI_Isend(p, n, t, peer, tag, c, r) OD_CALL(MPI_Isend(OD_P2P(OD_SENDS, p, peer, c), n, t, peer, tag, c, r))
#define MPI_Issend(p, n, t, peer, tag, c, r) OD_CALL(MPI_Issend(OD_P2P(OD_SENDS, p, peer, c), n, t, peer, tag, c, r))
#define MPI_Ibsend(p, n, t, peer, tag, c, r) OD_CALL(MPI_Ibsend(OD_P2P(OD_SENDS, p, peer, c), n, t, peer, tag, c, r))
#define MPI_Irsend(p, n, t, peer, tag, c, r) OD_CALL(MPI_Irsend(OD_P2P(OD_SENDS, p, peer, c), n, t, peer, tag, c, r))
#define MPI_Send_init(p, n, t, peer, tag, c, r) \
  OD_CALL(MPI_Send_init(OD_P2P(OD_SENDS, p, peer, c), n, t, peer, tag, c, r))
#define MPI_Ssend_init(p, n, t, peer, tag, c, r) \
  OD_CALL(MPI_Ssend_init(OD_P2P(OD_SENDS, p, peer, c), n, t, peer, tag, c, r))
#define MPI_Bsend_init(p, n, t, peer, tag, c, r) \
  OD_CALL(MPI_Bsend_init(OD_P2P(OD_SENDS, p, peer, c), n, t, peer, tag, c, r))
#define MPI_Rsend_init(p, n, t, peer, tag, c, r) \
  OD_CALL(MPI_Rsend_init(OD_P2P(OD_SENDS, p, peer, c), n, t, peer, tag, c, r))
#define MPI_Recv(p, n, t, peer, tag, c, s) OD_CALL(MPI_Recv(OD_P2P(OD_RECEIVES, p, peer, c), n, t, peer, tag, c, s))
#define MPI_Irecv(p, n, t, peer, tag, c, r) OD_CALL(MPI_Irecv(OD_P2P(OD_RECEIVES, p, peer, c), n, t, peer, tag, c, r))
#define MPI_Recv_init(p, n, t, peer, tag, c, r) \
  OD_CALL(MPI_Recv_init(OD_P2P(OD_RECEIVES, p, peer, c), n, t, peer, tag, c, r))
#define MPI_Mprobe(s, tag, c, m, st) OD_CALL(od_mprobe(s, tag, c, m, st))
#define MPI_Improbe(s, tag, c, f, m, st) OD_CALL(od_improbe(s, tag, c, f, m, st))
#define MPI_Mrecv(p, n, t, m, s) OD_CALL(MPI_Mrecv(od_message(p, *(m)), n, t, m, s))
#define MPI_Imrecv(p, n, t, m, r) OD_CALL(MPI_Imrecv(od_message(p, *(m)), n, t, m, r))
#define MPI_Sendrecv(p, n, t, to, tag, q, m, u, from, tag2, c, s)                                                    \
  OD_CALL(MPI_Sendrecv(OD_P2P(OD_SENDS, p, to, c), n, t, to, tag, OD_P2P(OD_RECEIVES, q, from, c), m, u, from, tag2, \
                       c, s))
#define MPI_Isendrecv(p, n, t, to, tag, q, m, u, from, tag2, c, r)                                                    \
  OD_CALL(MPI_Isendrecv(OD_P2P(OD_SENDS, p, to, c), n, t, to, tag, OD_P2P(OD_RECEIVES, q, from, c), m, u, from, tag2, \
                        c, r))
#define OD_PAIR(p, to, from, c) (od_far(c, to) ? OD_P2P(OD_BOTH, p, from, c) : (void *)(p))
#define MPI_Sendrecv_replace(p, n, t, to, tag, from, tag2, c, s) \
  OD_CALL(MPI_Sendrecv_replace(od_at ? OD_PAIR(p, to, from, c) : (p), n, t, to, tag, from, tag2, c, s))
#define MPI_Isendrecv_replace(p, n, t, to, tag, from, tag2, c, r) \
  OD_CALL(MPI_Isendrecv_replace(od_at ? OD_PAIR(p, to, from, c) : (p), n, t, to, tag, from, tag2, c, r))
#define MPI_Psend_init(p, k, n, t, to, tag, c, i, r) \
  OD_CALL(MPI_Psend_init(OD_P2P(OD_SENDS, p, to, c), k, n, t, to, tag, c, i, r))
#define MPI_Precv_init(p, k, n, t, from, tag, c, i, r) \
  OD_CALL(MPI_Precv_init(OD_P2P(OD_RECEIVES, p, from, c), k, n, t, from, tag, c, i, r))

#define MPI_Pack(p, n, t, q, m, at, c) \
  OD_CALL(MPI_Pack(OD_COLL(OD_SENDS, p, c), n, t, OD_COLL(OD_RECEIVES, q, c), m, at, c))
#define MPI_Unpack(p, m, at, q, n, t, c) \
  OD_CALL(MPI_Unpack(OD_COLL(OD_SENDS, p, c), m, at, OD_COLL(OD_RECEIVES, q, c), n, t, c))

/* Collectives: S and R name the communicator's place, which is the last but for the request. */
#define OD_S(p, c) OD_COLL(OD_SENDS, p, c)
#define OD_R(p, c) OD_COLL(OD_RECEIVES, p, c)
#define MPI_Bcast(p, n, t, root, c) OD_CALL(MPI_Bcast(OD_COLL(OD_BOTH, p, c), n, t, root, c))
#define MPI_Ibcast(p, n, t, root, c, r) OD_CALL(MPI_Ibcast(OD_COLL(OD_BOTH, p, c), n, t, root, c, r))
#define MPI_Bcast_init(p, n, t, root, c, i, r) OD_CALL(MPI_Bcast_init(OD_COLL(OD_BOTH, p, c), n, t, root, c, i, r))
#define OD_GATHER(NAME, p, n, t, q, m, u, root, c, ...) NAME(OD_S(p, c), n, t, OD_R(q, c), m, u, root, c, ##__VA_ARGS__)
#define MPI_Gather(p, n, t, q, m, u, root, c) OD_CALL(OD_GATHER(MPI_Gather, p, n, t, q, m, u, root, c))
#define MPI_Igather(p, n, t, q, m, u, root, c, r) OD_CALL(OD_GATHER(MPI_Igather, p, n, t, q, m, u, root, c, r))
#define MPI_Gather_init(p, n, t, q, m, u, root, c, i, r) \
  OD_CALL(OD_GATHER(MPI_Gather_init, p, n, t, q, m, u, root, c, i, r))
#define MPI_Scatter(p, n, t, q, m, u, root, c) OD_CALL(OD_GATHER(MPI_Scatter, p, n, t, q, m, u, root, c))
#define MPI_Iscatter(p, n, t, q, m, u, root, c, r) OD_CALL(OD_GATHER(MPI_Iscatter, p, n, t, q, m, u, root, c, r))
#define MPI_Scatter_init(p, n, t, q, m, u, root, c, i, r) \
  OD_CALL(OD_GATHER(MPI_Scatter_init, p, n, t, q, m, u, root, c, i, r))
#define OD_GATHERV(NAME, p, n, t, q, m, d, u, root, c, ...) \
  NAME(OD_S(p, c), n, t, OD_R(q, c), m, d, u, root, c, ##__VA_ARGS__)
#define MPI_Gatherv(p, n, t, q, m, d, u, root, c) OD_CALL(OD_GATHERV(MPI_Gatherv, p, n, t, q, m, d, u, root, c))
#define MPI_Igatherv(p, n, t, q, m, d, u, root, c, r) OD_CALL(OD_GATHERV(MPI_Igatherv, p, n, t, q, m, d, u, root, c, r))
#define MPI_Gatherv_init(p, n, t, q, m, d, u, root, c, i, r) \
  OD_CALL(OD_GATHERV(MPI_Gatherv_init, p, n, t, q, m, d, u, root, c, i, r))
#define OD_SCATTERV(NAME, p, n, d, t, q, m, u, root, c, ...) \
  NAME(OD_S(p, c), n, d, t, OD_R(q, c), m, u, root, c, ##__VA_ARGS__)
#define MPI_Scatterv(p, n, d, t, q, m, u, root, c) OD_CALL(OD_SCATTERV(MPI_Scatterv, p, n, d, t, q, m, u, root, c))
#define MPI_Iscatterv(p, n, d, t, q, m, u, root, c, r) \
  OD_CALL(OD_SCATTERV(MPI_Iscatterv, p, n, d, t, q, m, u, root, c, r))
#define MPI_Scatterv_init(p, n, d, t, q, m, u, root, c, i, r) \
  OD_CALL(OD_SCATTERV(MPI_Scatterv_init, p, n, d, t, q, m, u, root, c, i, r))
#define OD_ALL(NAME, p, n, t, q, m, u, c, ...) NAME(OD_S(p, c), n, t, OD_R(q, c), m, u, c, ##__VA_ARGS__)
#define MPI_Allgather(p, n, t, q, m, u, c) OD_CALL(OD_ALL(MPI_Allgather, p, n, t, q, m, u, c))
#define MPI_Iallgather(p, n, t, q, m, u, c, r) OD_CALL(OD_ALL(MPI_Iallgather, p, n, t, q, m, u, c, r))
#define MPI_Allgather_init(p, n, t, q, m, u, c, i, r) OD_CALL(OD_ALL(MPI_Allgather_init, p, n, t, q, m, u, c, i, r))
#define MPI_Alltoall(p, n, t, q, m, u, c) OD_CALL(OD_ALL(MPI_Alltoall, p, n, t, q, m, u, c))
#define MPI_Ialltoall(p, n, t, q, m, u, c, r) OD_CALL(OD_ALL(MPI_Ialltoall, p, n, t, q, m, u, c, r))
#define MPI_Alltoall_init(p, n, t, q, m, u, c, i, r) OD_CALL(OD_ALL(MPI_Alltoall_init, p, n, t, q, m, u, c, i, r))
#define MPI_Neighbor_allgather(p, n, t, q, m, u, c) OD_CALL(OD_ALL(MPI_Neighbor_allgather, p, n, t, q, m, u, c))
#define MPI_Ineighbor_allgather(p, n, t, q, m, u, c, r) OD_CALL(OD_ALL(MPI_Ineighbor_allgather, p, n, t, q, m, u, c, r))
#define MPI_Neighbor_alltoall(p, n, t, q, m, u, c) OD_CALL(OD_ALL(MPI_Neighbor_alltoall, p, n, t, q, m, u, c))
#define MPI_Ineighbor_alltoall(p, n, t, q, m, u, c, r) OD_CALL(OD_ALL(MPI_Ineighbor_alltoall, p, n, t, q, m, u, c, r))
#define OD_ALLV(NAME, p, n, t, q, m, d, u, c, ...) NAME(OD_S(p, c), n, t, OD_R(q, c), m, d, u, c, ##__VA_ARGS__)
#define MPI_Allgatherv(p, n, t, q, m, d, u, c) OD_CALL(OD_ALLV(MPI_Allgatherv, p, n, t, q, m, d, u, c))
#define MPI_Iallgatherv(p, n, t, q, m, d, u, c, r) OD_CALL(OD_ALLV(MPI_Iallgatherv, p, n, t, q, m, d, u, c, r))
#define MPI_Allgatherv_init(p, n, t, q, m, d, u, c, i, r) \
  OD_CALL(OD_ALLV(MPI_Allgatherv_init, p, n, t, q, m, d, u, c, i, r))
#define MPI_Neighbor_allgatherv(p, n, t, q, m, d, u, c) \
  OD_CALL(OD_ALLV(MPI_Neighbor_allgatherv, p, n, t, q, m, d, u, c))
#define OD_TOALL(NAME, p, n, d, t, q, m, e, u, c, ...) NAME(OD_S(p, c), n, d, t, OD_R(q, c), m, e, u, c, ##__VA_ARGS__)
#define MPI_Alltoallv(p, n, d, t, q, m, e, u, c) OD_CALL(OD_TOALL(MPI_Alltoallv, p, n, d, t, q, m, e, u, c))
#define MPI_Ialltoallv(p, n, d, t, q, m, e, u, c, r) OD_CALL(OD_TOALL(MPI_Ialltoallv, p, n, d, t, q, m, e, u, c, r))
#define MPI_Alltoallw(p, n, d, t, q, m, e, u, c) OD_CALL(OD_TOALL(MPI_Alltoallw, p, n, d, t, q, m, e, u, c))
#define MPI_Ialltoallw(p, n, d, t, q, m, e, u, c, r) OD_CALL(OD_TOALL(MPI_Ialltoallw, p, n, d, t, q, m, e, u, c, r))
#define MPI_Neighbor_alltoallv(p, n, d, t, q, m, e, u, c) \
  OD_CALL(OD_TOALL(MPI_Neighbor_alltoallv, p, n, d, t, q, m, e, u, c))
#define MPI_Neighbor_alltoallw(p, n, d, t, q, m, e, u, c) \
  OD_CALL(OD_TOALL(MPI_Neighbor_alltoallw, p, n, d, t, q, m, e, u, c))
/* Two buffers that are the same, which is an error, stay the same. */
#define OD_IF_NOT(q, USE, p, c) OD_COLL((const void *)(p) == (const void *)(q) ? OD_BOTH : (USE), p, c)
#define OD_REDUCE(NAME, p, q, n, t, op, root, c, ...) \
  NAME(OD_IF_NOT(q, OD_SENDS, p, c), OD_IF_NOT(p, OD_RECEIVES, q, c), n, t, op, root, c, ##__VA_ARGS__)
#define MPI_Reduce(p, q, n, t, op, root, c) OD_CALL(OD_REDUCE(MPI_Reduce, p, q, n, t, op, root, c))
#define MPI_Ireduce(p, q, n, t, op, root, c, r) OD_CALL(OD_REDUCE(MPI_Ireduce, p, q, n, t, op, root, c, r))
#define MPI_Reduce_init(p, q, n, t, op, root, c, i, r) \
  OD_CALL(OD_REDUCE(MPI_Reduce_init, p, q, n, t, op, root, c, i, r))
#define OD_SUM(NAME, p, q, n, t, op, c, ...) NAME(OD_S(p, c), OD_R(q, c), n, t, op, c, ##__VA_ARGS__)
#define MPI_Allreduce(p, q, n, t, op, c) OD_CALL(OD_SUM(MPI_Allreduce, p, q, n, t, op, c))
#define MPI_Iallreduce(p, q, n, t, op, c, r) OD_CALL(OD_SUM(MPI_Iallreduce, p, q, n, t, op, c, r))
#define MPI_Allreduce_init(p, q, n, t, op, c, i, r) OD_CALL(OD_SUM(MPI_Allreduce_init, p, q, n, t, op, c, i, r))
#define MPI_Scan(p, q, n, t, op, c) OD_CALL(OD_SUM(MPI_Scan, p, q, n, t, op, c))
#define MPI_Iscan(p, q, n, t, op, c, r) OD_CALL(OD_SUM(MPI_Iscan, p, q, n, t, op, c, r))
#define MPI_Exscan(p, q, n, t, op, c) OD_CALL(OD_SUM(MPI_Exscan, p, q, n, t, op, c))
#define MPI_Iexscan(p, q, n, t, op, c, r) OD_CALL(OD_SUM(MPI_Iexscan, p, q, n, t, op, c, r))
#define MPI_Reduce_scatter(p, q, n, t, op, c) OD_CALL(OD_SUM(MPI_Reduce_scatter, p, q, n, t, op, c))
#define MPI_Ireduce_scatter(p, q, n, t, op, c, r) OD_CALL(OD_SUM(MPI_Ireduce_scatter, p, q, n, t, op, c, r))
#define MPI_Reduce_scatter_block(p, q, n, t, op, c) OD_CALL(OD_SUM(MPI_Reduce_scatter_block, p, q, n, t, op, c))
#define MPI_Ireduce_scatter_block(p, q, n, t, op, c, r) OD_CALL(OD_SUM(MPI_Ireduce_scatter_block, p, q, n, t, op, c, r))

/* Windows. Their memory counts as a buffer that is received into. */
#define MPI_Win_create(p, n, u, i, c, w) OD_CALL(MPI_Win_create(OD_COLL(OD_RECEIVES, p, c), n, u, i, c, w))
#define MPI_Put(p, n, t, k, d, m, u, w) OD_CALL(MPI_Put(OD_ANY(OD_SENDS, p), n, t, k, d, m, u, w))
#define MPI_Rput(p, n, t, k, d, m, u, w, r) OD_CALL(MPI_Rput(OD_ANY(OD_SENDS, p), n, t, k, d, m, u, w, r))
#define MPI_Get(p, n, t, k, d, m, u, w) OD_CALL(MPI_Get(OD_ANY(OD_RECEIVES, p), n, t, k, d, m, u, w))
#define MPI_Rget(p, n, t, k, d, m, u, w, r) OD_CALL(MPI_Rget(OD_ANY(OD_RECEIVES, p), n, t, k, d, m, u, w, r))
#define MPI_Accumulate(p, n, t, k, d, m, u, op, w) OD_CALL(MPI_Accumulate(OD_ANY(OD_SENDS, p), n, t, k, d, m, u, op, w))
#define MPI_Raccumulate(p, n, t, k, d, m, u, op, w, r) \
  OD_CALL(MPI_Raccumulate(OD_ANY(OD_SENDS, p), n, t, k, d, m, u, op, w, r))
#define MPI_Get_accumulate(p, n, t, q, l, v, k, d, m, u, op, w) \
  OD_CALL(MPI_Get_accumulate(OD_ANY(OD_SENDS, p), n, t, OD_ANY(OD_RECEIVES, q), l, v, k, d, m, u, op, w))
#define MPI_Rget_accumulate(p, n, t, q, l, v, k, d, m, u, op, w, r) \
  OD_CALL(MPI_Rget_accumulate(OD_ANY(OD_SENDS, p), n, t, OD_ANY(OD_RECEIVES, q), l, v, k, d, m, u, op, w, r))
#define MPI_Fetch_and_op(p, q, t, k, d, op, w) \
  OD_CALL(MPI_Fetch_and_op(OD_ANY(OD_SENDS, p), OD_ANY(OD_RECEIVES, q), t, k, d, op, w))
#define MPI_Compare_and_swap(p, x, q, t, k, d, w) \
  OD_CALL(MPI_Compare_and_swap(OD_ANY(OD_SENDS, p), OD_ANY(OD_SENDS, x), OD_ANY(OD_RECEIVES, q), t, k, d, w))

/* Calls without buffers after which, or before which, data move. */
#define MPI_Wait(r, s) OD_CALL(MPI_Wait(r, s))
#define MPI_Waitall(n, r, s) OD_CALL(MPI_Waitall(n, r, s))
#define MPI_Waitany(n, r, i, s) OD_CALL(MPI_Waitany(n, r, i, s))
#define MPI_Waitsome(n, r, m, i, s) OD_CALL(MPI_Waitsome(n, r, m, i, s))
#define MPI_Test(r, f, s) OD_CALL(MPI_Test(r, f, s))
#define MPI_Testall(n, r, f, s) OD_CALL(MPI_Testall(n, r, f, s))
#define MPI_Testany(n, r, i, f, s) OD_CALL(MPI_Testany(n, r, i, f, s))
#define MPI_Testsome(n, r, m, i, s) OD_CALL(MPI_Testsome(n, r, m, i, s))
#define MPI_Request_get_status(r, f, s) OD_CALL(MPI_Request_get_status(r, f, s))
#define MPI_Start(r) OD_CALL(MPI_Start(r))
#define MPI_Startall(n, r) OD_CALL(MPI_Startall(n, r))
#define MPI_Probe(s, tag, c, st) OD_CALL(MPI_Probe(s, tag, c, st))
#define MPI_Iprobe(s, tag, c, f, st) OD_CALL(MPI_Iprobe(s, tag, c, f, st))
#define MPI_Pready(i, r) OD_CALL(MPI_Pready(i, r))
#define MPI_Pready_range(i, k, r) OD_CALL(MPI_Pready_range(i, k, r))
#define MPI_Pready_list(n, l, r) OD_CALL(MPI_Pready_list(n, l, r))
#define MPI_Parrived(r, i, f) OD_CALL(MPI_Parrived(r, i, f))
#define MPI_Barrier(c) OD_CALL(MPI_Barrier(c))
#define MPI_Ibarrier(c, r) OD_CALL(MPI_Ibarrier(c, r))
#define MPI_Win_free(w) OD_CALL(MPI_Win_free(w))
#define MPI_Win_fence(a, w) OD_CALL(MPI_Win_fence(a, w))
#define MPI_Win_post(g, a, w) OD_CALL(MPI_Win_post(g, a, w))
#define MPI_Win_start(g, a, w) OD_CALL(MPI_Win_start(g, a, w))
#define MPI_Win_complete(w) OD_CALL(MPI_Win_complete(w))
#define MPI_Win_wait(w) OD_CALL(MPI_Win_wait(w))
#define MPI_Win_test(w, f) OD_CALL(MPI_Win_test(w, f))
#define MPI_Win_lock(t, k, a, w) OD_CALL(MPI_Win_lock(t, k, a, w))
#define MPI_Win_unlock(k, w) OD_CALL(MPI_Win_unlock(k, w))
#define MPI_Win_lock_all(a, w) OD_CALL(MPI_Win_lock_all(a, w))
#define MPI_Win_unlock_all(w) OD_CALL(MPI_Win_unlock_all(w))
#define MPI_Win_flush(k, w) OD_CALL(MPI_Win_flush(k, w))
#define MPI_Win_flush_all(w) OD_CALL(MPI_Win_flush_all(w))
#define MPI_Win_flush_local(k, w) OD_CALL(MPI_Win_flush_local(k, w))
#define MPI_Win_flush_local_all(w) OD_CALL(MPI_Win_flush_local_all(w))
#define MPI_Win_sync(w) OD_CALL(MPI_Win_sync(w))

#define fwrite(p, n, m, f) fwrite(mi_touch(p, (n) * (m)), n, m, f)
#define malloc(n) mi_malloc(n)
#define calloc(n, m) mi_calloc(n, m)
#define realloc(p, n) mi_realloc(p, n)
#define free(p) mi_free(p)
#endif
