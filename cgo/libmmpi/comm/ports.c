/* Connections to other jobs: ports, names for them, and the intercommunicators that are made over
 * them. The engine connects to a process of the other job and agrees with it (Go's package ports).
 * Then all processes that are to be connected join a job of their own, which is a link of the
 * engine. Processes of one job are not joined that way: they get an intercommunicator like any
 * other. */
#include "comm/comm.h"
#include "core/error.h"
#include "core/privcomm.h"
#include <stdio.h>
#include <string.h>

/* ---- operations of the engine in the background ---- */

static int over(void *cell) { return __atomic_load_n(&((z_cell *)cell)->done, __ATOMIC_ACQUIRE); }

/* Waits until an operation of the engine in the background has completed, and serves everything
 * meanwhile. Returns Z_OK, or the enum z_error of the operation, whose text ze_error returns. */
static int await(z_cell *cell) {
  z_wait_outside();
  z_wait_links(over, cell);
  return Z_ENGINE(ze_result(cell));
}

static int fails(MPI_Comm comm, int class_, const char *function) {
  return z_raise_on(comm, class_, function, "%s", Z_ENGINE(ze_error()));
}

/* Raises the error with which an operation on a published name has ended, and returns the code for
 * the program. class_ is for errors of which the name is the cause; others, such as a forwarder
 * that cannot be reached, have the text of the engine. */
static int fails_for_name(int z_error, int class_, const char *function) {
  if (z_error == Z_ERR_ARG) return fails(z_no_object(), class_, function);
  return z_raise_because(NULL, MPI_ERR_OTHER, function, Z_ENGINE(ze_error()), NULL);
}

/* ---- ports and names ---- */

int z_Open_port(MPI_Info info, char *name) {
  (void)info;
  const int room = MPI_MAX_PORT_NAME < Z_PORT_NAME ? MPI_MAX_PORT_NAME : Z_PORT_NAME;
  return Z_ENGINE(ze_port_open(name, room)) ? fails(z_no_object(), MPI_ERR_INTERN, "MPI_Open_port") : MPI_SUCCESS;
}

int z_Close_port(const char *name) {
  return Z_ENGINE(ze_port_close(name)) ? fails(z_no_object(), MPI_ERR_PORT, "MPI_Close_port") : MPI_SUCCESS;
}

int z_Publish_name(const char *service, MPI_Info info, const char *port) {
  (void)info;
  z_cell cell = {0};
  Z_ENGINE(ze_publish(service, port, &cell));
  int failed = await(&cell);
  return failed ? fails_for_name(failed, MPI_ERR_SERVICE, "MPI_Publish_name") : MPI_SUCCESS;
}

int z_Unpublish_name(const char *service, MPI_Info info, const char *port) {
  (void)info, (void)port;
  return Z_ENGINE(ze_unpublish(service)) ? fails(z_no_object(), MPI_ERR_SERVICE, "MPI_Unpublish_name") : MPI_SUCCESS;
}

int z_Lookup_name(const char *service, MPI_Info info, char *port) {
  (void)info;
  z_cell cell = {0};
  char found[Z_PORT_NAME];
  Z_ENGINE(ze_lookup(service, found, &cell));
  int failed = await(&cell);
  if (failed) return fails_for_name(failed, MPI_ERR_NAME, "MPI_Lookup_name");
  snprintf(port, MPI_MAX_PORT_NAME, "%s", found);
  return MPI_SUCCESS;
}

/* ---- connections ---- */

/* The message that the root broadcasts once it has met the root of the other job. */
typedef struct agreed {
  int64_t bytes;  /* the size in bytes of the plan of the connection */
  int32_t failed; /* the code of the error that the root has raised, or MPI_SUCCESS */
} agreed;

/* A connection of processes of this job with processes of another job. */
typedef struct connection {
  /* the plan of the connection, bytes that are the same on both sides and by which processes join
   * it */
  void *plan;
  /* n is the number of all processes of the connection; low is that of the processes of the
   * accepting side, which come first; link is the number of the link to the other job, or 0 if all
   * processes are of this job. */
  int32_t n, low, link;
  int32_t *numbers; /* [n] the number by which this process knows each process */
} connection;

/* Sets *out to the group of comm, after checking that all its processes are of this job. Raises
 * errors and returns the code for the program. */
static int members(MPI_Comm comm, const char *function, MPI_Group *out) {
  int inter, rc = z_Comm_test_inter(comm, &inter);
  if (rc) return rc;
  if (inter) return z_raise_on(comm, MPI_ERR_COMM, function, "the communicator is an intercommunicator");
  if ((rc = z_Comm_group(comm, out))) return rc;
  const zgroup *g = zgroup_get(*out);
  for (int i = 0; i < g->size; i++)
    if (g->rank[i] >= z_layout.size) {
      z_Group_free(out);
      return z_raise_on(comm, MPI_ERR_UNSUPPORTED_OPERATION, function,
                        "not supported by MMPI where the communicator has processes of several jobs");
    }
  return MPI_SUCCESS;
}

/* Connects the root to the root of the other job at a port, and sets *plan and a->bytes to the plan
 * of the connection. With accepts = 1 the root waits at the port, otherwise it connects to it.
 * Raises errors and returns the code for the program. */
static int meet(const char *port, int accepts, const zgroup *g, MPI_Comm comm, const char *function, agreed *a,
                void **plan) {
  z_cell cell = {0};
  if (Z_ENGINE(ze_meet(port, accepts, g->rank, g->size, &cell, plan))) return fails(comm, MPI_ERR_PORT, function);
  if (await(&cell)) return fails(comm, MPI_ERR_PORT, function);
  a->bytes = cell.bytes;
  return MPI_SUCCESS;
}

/* Joins the connection k, whose plan has `bytes` bytes, and fills in its other fields. All
 * processes of comm call it. Raises errors and returns the code for the program. */
static int join(connection *k, int64_t bytes, int accepts, MPI_Comm comm, const char *function) {
  z_cell cell = {0};
  if (Z_ENGINE(ze_join(k->plan, bytes, accepts, &cell, &k->n, &k->low, &k->numbers)) || await(&cell))
    return fails(comm, MPI_ERR_OTHER, function);
  k->link = cell.source;
  for (int i = 0; i < k->n; i++) {
    int32_t others = __atomic_load_n(&z_others, __ATOMIC_ACQUIRE), want = k->numbers[i] + 1 - z_layout.size;
    while (others < want &&
           !__atomic_compare_exchange_n(&z_others, &others, want, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    }
  }
  return MPI_SUCCESS;
}

/* Returns a hash of the plan of a connection, which identifies the connection. Both sides compute
 * it from the same plan. */
static uint64_t hash_of(const void *plan, int64_t bytes) {
  uint64_t h = 14695981039346656037u;
  for (int64_t i = 0; i < bytes; i++) h = (h ^ ((const unsigned char *)plan)[i]) * 1099511628211u;
  return h;
}

/* Returns whether a connection has processes of another job. Then all processes of the connection
 * have come to join if one of them has joined. */
static int is_outside(const connection *k) {
  int any = 0;
  for (int i = 0; i < k->n; i++) any |= k->numbers[i] >= z_layout.size;
  return any;
}

static int make(connection *k, uint64_t hash, MPI_Comm comm, const char *function, MPI_Comm *out) {
  int tag = (int)(hash & 0x7fff), rc;
  zcomm *c;
  MPI_Comm made;
  if (k->link) {
    uint64_t first = 0xFFFFFFFF00000000u; /* the first context over the link */
    rc = zcomm_part(z_private, k->numbers, k->n, tag, &made);
    if (!rc && !(rc = zcomm_add(k->link, made, first, k->numbers, k->n, &c))) zinter_set(c, k->low);
  } else {
    /* a context that no virtual rank makes */
    rc = zinter_make(k->numbers, k->n, k->low, tag, hash >> 2 | (uint64_t)1 << 62, &made);
  }
  if (!rc) rc = zinter_inherit(comm, made);
  if (rc) return z_raise_on(comm, rc, function, "the communicator cannot be created");
  *out = made;
  return MPI_SUCCESS;
}

static int connect_to(const char *port, int root, MPI_Comm comm, int accepts, const char *function, MPI_Comm *out) {
  agreed a = {0};
  connection k = {0};
  MPI_Group group;
  int rank, size, rc = z_Comm_rank(comm, &rank);
  *out = MPI_COMM_NULL;
  if (rc || (rc = z_Comm_size(comm, &size)) || (rc = members(comm, function, &group))) return rc;
  if (root < 0 || root >= size)
    rc = z_raise_on(comm, MPI_ERR_ROOT, function, "the root is %d; the communicator has ranks 0 to %d", root, size - 1);
  else if (rank == root) a.failed = meet(port, accepts, zgroup_get(group), comm, function, &a, &k.plan);
  z_Group_free(&group);
  int raised = a.failed;
  if (rc || (rc = zinter_spread(comm, &a, sizeof a, root, function))) goto end;
  if ((rc = a.failed)) {
    if (!raised) rc = z_raise_on(comm, MPI_ERR_PORT, function, "the root did not reach the other job");
    goto end;
  }
  if (rank != root && !(k.plan = malloc((size_t)a.bytes))) z_no_memory("a connection to another job");
  if ((rc = zinter_spread(comm, k.plan, (int)a.bytes, root, function))) goto end;
  const uint64_t hash = hash_of(k.plan, a.bytes);
  rc = join(&k, a.bytes, accepts, comm, function);
  if (z_layout.on_loss && is_outside(&k) && zcomm_vote_among(hash, k.numbers, k.n, rc) && !rc)
    rc = z_raise_on(comm, Z_CLASS_PROC_FAILED, function, "another process of this cluster could not join");
  if (!rc) rc = make(&k, hash, comm, function, out);
  if (rc && k.link) Z_ENGINE(ze_link_drop(k.link));
end:
  free(k.plan);
  free(k.numbers);
  return rc;
}

int z_Comm_accept(const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *out) {
  (void)info;
  return connect_to(port, root, comm, 1, "MPI_Comm_accept", out);
}

int z_Comm_connect(const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *out) {
  (void)info;
  return connect_to(port, root, comm, 0, "MPI_Comm_connect", out);
}
