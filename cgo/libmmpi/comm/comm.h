/* The functions that make communicators, bring clusters to agree on them, and keep their
 * attributes; communicators of groups and of sessions; process sets. */
#ifndef ZIPPER_COMM_H
#define ZIPPER_COMM_H
#include "coll/coll.h"
#include "comm/group.h"

/* Makes a native communicator the local part of a new spanning one, which is returned in *out. The
 * native communicator must have those of the spanning one's ranks that are in this cluster, in the
 * order of rank. Rank i of the spanning one is process world[i], reached over a link (0: the job).
 * Returns an MPI error code. */
int zcomm_add(int32_t link, MPI_Comm native, uint64_t context, const int32_t *world, int size, zcomm **out);

/* Returns the result of a native call that makes a communicator: rc, the code that the call has
 * returned, or an error if `made` shows that the call made no communicator although rc is
 * MPI_SUCCESS, because an error handler of the program may hide an error. The variable must be
 * MPI_COMM_NULL before the call. */
static inline int zcomm_made(int rc, MPI_Comm made) { return rc || made != MPI_COMM_NULL ? rc : MPI_ERR_OTHER; }

/* Makes a native communicator the local part of a new spanning one that has all ranks of the job,
 * in the order of MPI_COMM_WORLD. Returns an MPI error code. */
int zcomm_add_all(MPI_Comm native, uint64_t context, zcomm **out);

/* Gives `made`, which is a duplicate of c, copies of the topology of c and of the bounds of its two
 * groups if c is an intercommunicator. Returns MPI_ERR_NO_MEM if memory is exhausted. */
int zcomm_like(zcomm *made, const zcomm *c);
/* Makes a new spanning communicator that is like c (zcomm_add, zcomm_like) and has the context id
 * `context`. Its local part, the native communicator of its ranks in this cluster, is `native`, a
 * duplicate of c's. Returns an MPI error code. */
int zcomm_add_like(MPI_Comm native, uint64_t context, const zcomm *c);

/* Exchange data among the ranks of c, as MPI_Bcast and MPI_Allgather do for `bytes` bytes; they
 * raise errors and return the code for the program. When one of these functions returns, all
 * collectives that this process started on c before have completed in this process, so that native
 * collectives on the local part have the same order everywhere. */
int zcomm_bcast(zcomm *c, void *data, int bytes, int root, const char *function);
int zcomm_allgather(zcomm *c, const void *mine, int bytes, void *all, const char *function);
/* Gathers bytes[i] bytes from each rank i of c to all ranks, where `all` has them in the order of
 * rank. `mine` are this process's bytes. Raises errors and returns the code for the program. */
int zcomm_allgatherv(zcomm *c, const void *mine, const int64_t *bytes, void *all, const char *function);

/* Sets *most to the maximum of the values `mine` that the ranks of a communicator pass, which may
 * span clusters or not. Raises errors and returns the code for the program. */
int zcomm_most(MPI_Comm comm, int mine, int *most, const char *function);

/* Makes the result of a collective the same in all clusters after each library has made its part or
 * failed with rc, an error that it has raised: libraries run out of communicators at different
 * numbers. If one has failed, *made is freed and an error is raised. Returns the code for the
 * program. Collective. */
int zcomm_agree(zcomm *c, int rc, MPI_Comm *made, const char *function);
/* Does the second half of zcomm_agree for results that the processes have exchanged already:
 * `worst` is not 0 if a process has failed, in which case *made is freed and an error is raised.
 * Returns the code for the program. */
int zcomm_verdict(zcomm *c, int rc, int worst, MPI_Comm *made, const char *function);
/* The variable, an MPI_Fint, of a Fortran program in which the nonblocking function that this
 * thread calls next stores the new communicator, instead of its argument, when the request
 * completes. The function sets it to NULL if it does so. NULL: the program is in C, or its Fortran
 * handles are those of C. */
extern _Thread_local void *zcomm_fortran;
/* Stores a communicator in the variable of a Fortran program, or in *out if that is NULL. */
void zcomm_store(MPI_Comm made, MPI_Comm *out, void *fortran);

/* Makes the communicator of the ranks of c that pass the same color, in the order of key, then
 * rank, and stores it in *out; a process with a negative color gets MPI_COMM_NULL. Errors are
 * raised; the result is the code for the program. Collective. */
int zcomm_split(zcomm *c, int color, int key, const char *function, MPI_Comm *out);

/* Splits an intercommunicator c by color and key into intercommunicators. Each group of the result
 * has the members of one group of c. *out is MPI_COMM_NULL if one of the groups is empty. Errors
 * are raised. */
int zcomm_split_groups(zcomm *c, int color, int key, const char *function, MPI_Comm *out);

/* Makes a copy of a communicator inside this cluster that is known to the engine although it does
 * not span clusters, so that the engine can serve windows and files on it. Errors are raised. */
int zcomm_adopt(MPI_Comm comm, const char *function, MPI_Comm *out);

/* Sets ranks[i] to the rank in c of member i of g, for all members, unless ranks is NULL. Returns
 * MPI_SUCCESS, or MPI_ERR_GROUP if a member is not in c. */
int zcomm_members_of(const zcomm *c, const zgroup *g, int *ranks);

/* Makes a native communicator of those of the n virtual ranks that are in this cluster, in their
 * order, from a communicator that has them all. All of these processes call this function, this
 * process among them; each serves the others meanwhile. Returns an MPI error code. */
int zcomm_part(MPI_Comm from, const int32_t *world, int n, int tag, MPI_Comm *out);
/* Waits until all of the n virtual ranks that are in this cluster have called this function. Each
 * of them serves the others meanwhile. Returns an MPI error code. */
int zcomm_meet_members(const int32_t *world, int n, int tag);

/* Makes the native part of a communicator of a group whose members are in several clusters. All
 * members call this function, and the result is MPI_SUCCESS in all of them or in none, unless a
 * cluster is lost meanwhile. c has all members and serves their messages; `from` is a native
 * communicator of those in this cluster. tag and call distinguish calls at the same time. *context
 * is set to a new context id of the first member. Returns an MPI error code. */
int zcomm_parts(zcomm *c, MPI_Comm from, const zgroup *g, int tag, uint64_t call, uint64_t *context, MPI_Comm *out);
/* Returns the communicator of all processes of the job whose native part is z_private, which serves
 * messages that no message of the program matches, and which no program can revoke. It is made, and
 * known to the engine, from the first call on. NULL means that it cannot be made. */
zcomm *zcomm_everyone(void);

/* Makes the communicator of a group's members. All members call this function, this process among
 * them. *out spans clusters or is native. c is comm's spanning communicator, or NULL. Returns an
 * MPI error code. */
int zcomm_make_group(zcomm *c, MPI_Comm comm, const zgroup *g, int tag, MPI_Comm *out);

#ifdef Z_HAVE_Session_init
/* Raises an error of a class, with `text`, through the error handler of the session, and returns
 * the code that the MPI function must return. */
int zsession_raise(MPI_Session session, int class_, const char *function, const char *text);
/* Raises an error of a class, with `text`, through the handler that the program has passed for a
 * communicator that could not be made, and returns the code that the MPI function must return. */
int zcomm_unmade(MPI_Errhandler handler, int class_, const char *function, const char *text);
#endif

/* Makes c an intercommunicator (intercomm.c) whose first `low` ranks are one group and whose other
 * ranks are the other group. Both groups know the ranks in this order. */
void zinter_set(zcomm *c, int low);
/* Replaces *comm, a native communicator of the members of both groups of an intercommunicator, by a
 * native intercommunicator whose first group has the first `low` ranks. Both groups are inside one
 * cluster. Returns an MPI error code. */
int zinter_native(MPI_Comm *comm, int low);
/* Does what a leader does first in MPI_Intercomm_create, to tell the other leader that the call
 * fails. */
void zinter_refuse(MPI_Comm peer, int leader, int tag);
/* Makes *out the intercommunicator of the n virtual ranks world[i] of this job, of which the first
 * `low` are one group. All of them call this function with the same arguments. tag distinguishes
 * calls of several threads; context is the context id if the ranks are in several clusters. Returns
 * an MPI error code. */
int zinter_make(const int32_t *world, int n, int low, int tag, uint64_t context, MPI_Comm *out);
/* Broadcasts `bytes` bytes at `data` from the root to all ranks of an intracommunicator, which may
 * span clusters or not. Raises errors and returns the code for the program. */
int zinter_spread(MPI_Comm comm, void *data, int bytes, int root, const char *function);
/* sets the error handler of `to` to that of `from`, and returns an MPI error code */
int zinter_inherit(MPI_Comm from, MPI_Comm to);

/* Waits until all processes of the native communicator comm have called this function and none of
 * them has a nonblocking duplication whose native part is in progress (meet.c); returns an MPI
 * error code. It must precede each blocking call of a native function that makes a communicator. It
 * is a collective: all ranks call it, whether their engine is idle or not, or none does. */
int zcomm_meet(MPI_Comm comm);
/* In a job that goes on when a cluster is lost, lets the processes of c's local part agree whether
 * all of them make the native part of a new object. rc is the result in this process, an MPI error
 * code, of the preceding collective on c, which must have waited for all ranks:
 * a loss may end it with an error in some processes only, and the others must not call a native
 * function that waits for these. Returns rc if it is an error, which has been raised. Otherwise
 * returns MPI_SUCCESS if rc is MPI_SUCCESS in all of them, or raises an error. In other jobs the
 * result is rc. */
int zcomm_vote(zcomm *c, int rc, const char *function);
/* Does what zcomm_vote does, in a job that goes on when a cluster is lost, among those of the n
 * virtual ranks that are in this cluster. Their calls have the same id, which no other calls in
 * progress have. Raises no error. */
int zcomm_vote_among(uint64_t id, const int32_t *world, int n, int rc);
/* Returns 1 while this process is in zcomm_meet or zcomm_meet_members, so that none of its
 * nonblocking duplications may start its native part, otherwise 0. */
int zmeet_held(void);
/* Adds `by`, which is 1 or -1, to the number of this process's nonblocking duplications whose
 * native part is in progress. */
void zmeet_copying(int by);

/* Receives the remaining messages of zcomm_vote, for which no call waits, after all processes of
 * the cluster have sent theirs. It must precede native MPI_Finalize. */
void zmeet_stop(void);

/* Prepares groups and process sets and, if there are several clusters, adds MPI_COMM_WORLD as a
 * spanning communicator (context 0xFFFFFFFF00000000). Called after ze_start. Returns an MPI error
 * code. */
int zcomm_start(void);
/* Frees the zcomms of MPI_COMM_WORLD and of zcomm_everyone, and the process sets. Called after
 * ze_finish. The native communicators remain. */
void zcomm_stop(void);

/* The name of the process set of a cluster, up to its last part: the sets (pset.c) are
 * "mpi://WORLD", "mpi://SELF", and "zipper://cluster/NAME" for each cluster, numbered from 0 in
 * this order. */
#define ZPSET_CLUSTER "zipper://cluster"
/* Reads the names and sizes of the clusters, for their process sets, from a layout such as
 * "a=4,b=2". Returns an MPI error code. */
int zpset_start(const char *layout);
/* frees the list of clusters that zpset_start has made */
void zpset_stop(void);
int zpset_count(void); /* returns the number of process sets */
/* writes the name of process set i to out, which has room for `size` bytes, as snprintf does */
int zpset_name(int i, char *out, int size);
/* Returns the number of the process set with this name, or -1 if there is none. */
int zpset_find(const char *name);
/* returns the number of processes in process set i */
int zpset_size(int i);
/* returns the virtual rank of the process with rank `rank` in process set i */
int32_t zpset_member(int i, int rank);
/* returns 1 if this process is in process set i, otherwise 0 */
int zpset_has_me(int i);

/* Returns the address of the job's value of a predefined attribute, or NULL if the keyval is that
 * of another attribute or the native library's value applies. `found` tells whether the native
 * library has a value on the communicator. */
int *zattr_of_job(int keyval, int found);
/* Returns 1 if the program must not see a value of a predefined attribute, because the job's value
 * is unknown and the native value is wrong, otherwise 0. */
int zattr_hidden(int keyval);
/* Computes the job's value of the attribute MPI_APPNUM, if the launcher has set what it depends on.
 * It must be called before the program can ask for attributes. Returns an MPI error code. */
int zattr_start(void);
/* adds a keyval that the program has made to the list that zattr_delete_all goes through */
void zattr_note(int keyval);
/* Deletes all attributes of a communicator that the program has set, and so runs their delete
 * callbacks, those of the newest keyval first. If a callback fails, its error has been raised and
 * is returned, and the attribute and those of older keyvals remain. Returns an MPI error code. */
int zattr_delete_all(MPI_Comm comm);
#endif
