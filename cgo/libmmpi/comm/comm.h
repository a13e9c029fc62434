/* Making communicators. */
#ifndef ZIPPER_COMM_H
#define ZIPPER_COMM_H
#include "coll/coll.h"
#include "comm/group.h"

/* Makes a native communicator the local part of a new spanning one, which is returned in *out. The
 * native communicator must have those of the spanning one's ranks that are in this cluster, in the
 * order of rank. Rank i of the spanning one is process world[i], reached over a link (0: the job).
 * Returns an MPI error code. */
int zcomm_add(int32_t link, MPI_Comm native, uint64_t context, const int32_t *world, int size, zcomm **out);

/* Returns the result of a native call that makes a communicator: rc, or an error if no communicator
 * was made although rc is MPI_SUCCESS, because an error handler of the program's may hide an error.
 * *made must be MPI_COMM_NULL before the call. */
static inline int zcomm_made(int rc, MPI_Comm made) { return rc || made != MPI_COMM_NULL ? rc : MPI_ERR_OTHER; }

/* Makes a native communicator the local part of a new spanning one that has all ranks of the job,
 * in the order of MPI_COMM_WORLD. Returns an MPI error code. */
int zcomm_add_all(MPI_Comm native, uint64_t context, zcomm **out);

/* Gives a duplicate of c the topology and the groups of c. Returns MPI_ERR_NO_MEM if memory is
 * exhausted. */
int zcomm_like(zcomm *made, const zcomm *c);
/* adds a duplicate of c, as zcomm_add does */
int zcomm_add_like(MPI_Comm native, uint64_t context, const zcomm *c);

/* Exchange data among the ranks of c and raise errors. When one of these functions returns, all
 * collectives that this process started on c before have completed in this process, so that native
 * collectives on the local part have the same order everywhere. zcomm_bcast sends the bytes of
 * `root` to all ranks. */
int zcomm_bcast(zcomm *c, void *data, int bytes, int root, const char *function);
int zcomm_allgather(zcomm *c, const void *mine, int bytes, void *all, const char *function);
/* Gathers bytes[i] bytes from each rank i. */
int zcomm_allgatherv(zcomm *c, const void *mine, const int64_t *bytes, void *all, const char *function);

/* Sets *most to the maximum of the values `mine` of all ranks of a communicator, which may span
 * clusters or not. Raises errors. */
int zcomm_most(MPI_Comm comm, int mine, int *most, const char *function);

/* Makes the result of a collective the same in all clusters after each library has made its part or
 * failed with rc, an error that it has raised: libraries run out of communicators at different
 * numbers. If one has failed, *made is freed and an error is raised. Collective. */
int zcomm_agree(zcomm *c, int rc, MPI_Comm *made, const char *function);
/* Does what zcomm_agree does, without communication, because the results of the other processes are
 * known already: `worst` is not 0 if a process has failed. */
int zcomm_verdict(zcomm *c, int rc, int worst, MPI_Comm *made, const char *function);

/* Makes the communicator of the ranks of c with this color, in the order of key, then rank. A
 * process with a negative color gets MPI_COMM_NULL in *out. Errors are raised. */
int zcomm_split(zcomm *c, int color, int key, const char *function, MPI_Comm *out);

/* Splits an intercommunicator c by color and key into intercommunicators. Each group of the result
 * has the members of one group of c. *out is MPI_COMM_NULL if one of the groups is empty. Errors
 * are raised. */
int zcomm_split_groups(zcomm *c, int color, int key, const char *function, MPI_Comm *out);

/* Makes a copy of a communicator inside this cluster that is known to the engine although it does
 * not span clusters, so that the engine can serve windows and files on it. Errors are raised. */
int zcomm_adopt(MPI_Comm comm, const char *function, MPI_Comm *out);

/* Sets ranks[i] to the rank in c of member i of g. Returns MPI_ERR_GROUP if a member is not in
 * c. */
int zcomm_members_of(const zcomm *c, const zgroup *g, int *ranks);

/* Makes a native communicator of those of the n virtual ranks that are in this cluster, in their
 * order, from a communicator that has them all. All of these processes call this function, this
 * process among them; each serves the others meanwhile. Returns an MPI error code. */
int zcomm_part(MPI_Comm from, const int32_t *world, int n, int tag, MPI_Comm *out);
/* Waits until all of the n virtual ranks that are in this cluster have called this function. Each
 * of them serves the others meanwhile. Returns an MPI error code. */
int zcomm_meet_members(const int32_t *world, int n, int tag);

/* Makes the communicator of a group's members. All members call this function, this process among
 * them. *out spans clusters or is native. c is comm's spanning communicator, or NULL. Returns an
 * MPI error code. */
int zcomm_make_group(zcomm *c, MPI_Comm comm, const zgroup *g, int tag, MPI_Comm *out);

#ifdef Z_HAVE_Session_init
/* Raises an error of a class through the session's handler, and returns the code for the
 * program. */
int zsession_raise(MPI_Session session, int class_, const char *function, const char *text);
/* Raises an error of a class through the handler that the program has passed for a communicator
 * that could not be made, and returns the code for the program. */
int zcomm_unmade(MPI_Errhandler handler, int class_, const char *function, const char *text);
#endif

/* Makes the communicator over which the communicators of sessions are made, for MPI_Session_init
 * (session.c). Returns an MPI error code. */
int zcomm_sessions_start(void);

/* Intercommunicators (intercomm.c). zinter_set makes c an intercommunicator whose first `low` ranks
 * are one group and whose other ranks are the other group. Both groups know the ranks in this
 * order. */
void zinter_set(zcomm *c, int low);
/* Replaces *comm, a native communicator of the members of both groups, by a native
 * intercommunicator whose first group has the first `low` ranks. Both groups are inside one
 * cluster. */
int zinter_native(MPI_Comm *comm, int low);
/* Broadcasts the root's bytes on an intracommunicator that may span clusters or not. */
int zinter_spread(MPI_Comm comm, void *data, int bytes, int root, const char *function);
int zinter_inherit(MPI_Comm from, MPI_Comm to); /* sets the error handler of `to` to that of `from` */

/* Called before a native function that blocks, has no nonblocking form and makes a communicator
 * (meet.c). It returns when all processes of comm have called it and none of them has a duplication
 * whose native part is in progress. It is a collective: all ranks call it, whether their engine is
 * idle or not, or none does. */
int zcomm_meet(MPI_Comm comm);
/* Returns 1 while no duplication may start its native part. */
int zmeet_held(void);
/* Adds `by` to the number of this process's duplications whose native part is in progress. */
void zmeet_copying(int by);

/* Adds MPI_COMM_WORLD as a spanning communicator (context 0xFFFFFFFF00000000) if there are several
 * clusters. Called after ze_start. Returns an MPI error code. */
int zcomm_start(void);
void zcomm_stop(void); /* called before native MPI_Finalize */

/* Named process sets (pset.c): "mpi://WORLD", "mpi://SELF", and "zipper://cluster/NAME" for each
 * cluster, numbered in that order. */
#define ZPSET_CLUSTER "zipper://cluster"
/* Reads the clusters from a layout such as "a=4,b=2". Returns an MPI error code. */
int zpset_start(const char *layout);
void zpset_stop(void);                      /* frees the list of clusters */
int zpset_count(void);                      /* returns the number of sets */
int zpset_name(int i, char *out, int size); /* writes the name of set i as snprintf does */
/* Returns the number of a set, or -1 if no set has this name. */
int zpset_find(const char *name);
int zpset_size(int i);                 /* returns the number of processes in set i */
int32_t zpset_member(int i, int rank); /* returns the virtual rank of a rank in set i */
int zpset_has_me(int i);               /* returns 1 if this process is in set i */

/* Returns a pointer to the value of a predefined attribute whose value concerns the whole job, or
 * NULL if keyval is another attribute or the native library's value applies. `found` tells whether
 * the native library has a value on the communicator. */
int *zattr_of_job(int keyval, int found);
/* Returns 1 if the job's value of an attribute is unknown and the native value is wrong. */
int zattr_hidden(int keyval);
/* Called before the program can ask for attributes. Returns an MPI error code. */
int zattr_start(void);
void zattr_note(int keyval); /* notes a keyval that the program has made */
/* Runs the delete callbacks of all attributes that the program has set, those of the newest keyval
 * first. If a callback fails, its error has been raised, and the attribute and the older ones
 * remain. */
int zattr_delete_all(MPI_Comm comm);
#endif
