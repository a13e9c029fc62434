/* Making communicators. */
#ifndef ZIPPER_COMM_H
#define ZIPPER_COMM_H
#include "coll/coll.h"
#include "comm/group.h"

/* Makes a native communicator the local part of a spanning one. It has this cluster's ranks of
 * that, in order of rank. Rank i of the spanning one is process world[i], reached over a link (0:
 * the job). MPI error code. */
int zcomm_add(int32_t link, MPI_Comm native, uint64_t context, const int32_t *world, int size, zcomm **out);

/* What a native call that makes a communicator has come to: rc, or an error where there is none. An
 * error handler of the program's may turn an error into MPI_SUCCESS. *made is MPI_COMM_NULL before
 * the call. */
static inline int zcomm_made(int rc, MPI_Comm made) { return rc || made != MPI_COMM_NULL ? rc : MPI_ERR_OTHER; }

/* The same of all ranks of the job, in the order of MPI_COMM_WORLD. */
int zcomm_add_all(MPI_Comm native, uint64_t context, zcomm **out);

/* Gives a duplicate of c what c has besides its ranks: topology, groups. MPI_ERR_NO_MEM: no
 * topology. */
int zcomm_like(zcomm *made, const zcomm *c);
int zcomm_add_like(MPI_Comm native, uint64_t context, const zcomm *c); /* zcomm_add of such a duplicate */

/* When one of these returns, all collectives that this process started on c before are over in it,
 * so that native collectives on the local part come in the same order everywhere. zcomm_bcast gives
 * all ranks the bytes of `root`. */
int zcomm_bcast(zcomm *c, void *data, int bytes, int root, const char *function);
int zcomm_allgather(zcomm *c, const void *mine, int bytes, void *all, const char *function);
/* bytes[i] of rank i */
int zcomm_allgatherv(zcomm *c, const void *mine, const int64_t *bytes, void *all, const char *function);

/* The greatest of the numbers that the ranks give, on a communicator that spans or does not. */
int zcomm_most(MPI_Comm comm, int mine, int *most, const char *function);

/* Makes all clusters give one answer after each library has made its part, or has failed (rc, which
 * it has raised). Libraries run out of communicators at different numbers. If one has failed, *made
 * is freed and the error is raised. Collective. */
int zcomm_agree(zcomm *c, int rc, MPI_Comm *made, const char *function);
/* … where it is known already what the others found (worst; not 0: one has failed) */
int zcomm_verdict(zcomm *c, int rc, int worst, MPI_Comm *made, const char *function);

/* The part of c with this color (< 0: none), in order of key, then rank. *out: MPI_COMM_NULL
 * without color. The error is raised. */
int zcomm_split(zcomm *c, int color, int key, const char *function, MPI_Comm *out);

/* The same for an intercommunicator c, with an intercommunicator as the result: the members of each
 * group in their order. MPI_COMM_NULL if a group is empty. */
int zcomm_split_groups(zcomm *c, int color, int key, const char *function, MPI_Comm *out);

/* A copy of a communicator inside this cluster that the engine knows although it does not span, so
 * that the engine can serve what is on it. The error is raised. */
int zcomm_adopt(MPI_Comm comm, const char *function, MPI_Comm *out);

/* Rank in c of every member of g; MPI_ERR_GROUP if one is not there. */
int zcomm_members_of(const zcomm *c, const zgroup *g, int *ranks);

/* A native communicator of those of the n virtual ranks that are in this cluster, in that order,
 * made from one that has them all. All of them call this, this process among them; each serves the
 * others meanwhile. MPI error code. */
int zcomm_part(MPI_Comm from, const int32_t *world, int n, int tag, MPI_Comm *out);
/* The first half of it: returns when all of them in this cluster are there */
int zcomm_meet_members(const int32_t *world, int n, int tag);

/* The communicator of a group's members. All of them call this, this process among them. *out
 * spans, or is native. c is comm's spanning communicator, or NULL. MPI error code. */
int zcomm_make_group(zcomm *c, MPI_Comm comm, const zgroup *g, int tag, MPI_Comm *out);

#ifdef Z_HAVE_Session_init
/* Raises an error of a class through the session's handler; the code to return. */
int zsession_raise(MPI_Session session, int class_, const char *function, const char *text);
/* Raises an error of a class through the handler that the program has given for a communicator that
 * could not be made; the code to return. */
int zcomm_unmade(MPI_Errhandler handler, int class_, const char *function, const char *text);
#endif

/* For MPI_Session_init: makes what sessions make communicators from (session.c). MPI error code */
int zcomm_sessions_start(void);

/* Intercommunicators (intercomm.c). Makes one of c, whose first `low` ranks are one group and the
 * others the other group. Both groups know it in this order. */
void zinter_set(zcomm *c, int low);
/* The same where nothing spans: *comm, a native communicator of the members of both groups, becomes
 * a native intercommunicator. */
int zinter_native(MPI_Comm *comm, int low);
/* The root's bytes to all of an intracommunicator, spanning or not. */
int zinter_spread(MPI_Comm comm, void *data, int bytes, int root, const char *function);
int zinter_inherit(MPI_Comm from, MPI_Comm to); /* the error handler */

/* Called before a native function that blocks, has no nonblocking form and makes a communicator
 * (meet.c). On return all of comm are there, and no duplication is halfway in any of them. It is a
 * collective: all ranks call it, whether idle or not, or none does. */
int zcomm_meet(MPI_Comm comm);
int zmeet_held(void);       /* no duplication may start its native part now */
void zmeet_copying(int by); /* so many more of them have, in this process */

/* After ze_start: makes MPI_COMM_WORLD spanning (context 0xFFFFFFFF00000000) if there are several
 * clusters. MPI error code */
int zcomm_start(void);
void zcomm_stop(void); /* before native finalize */

/* Sets of processes by name (pset.c): "mpi://WORLD", "mpi://SELF", and "zipper://cluster/NAME" of
 * each cluster, numbered in that order. */
#define ZPSET_CLUSTER "zipper://cluster"
int zpset_start(const char *layout); /* "a=4,b=2". MPI error code */
void zpset_stop(void);
int zpset_count(void);
int zpset_name(int i, char *out, int size); /* as snprintf */
int zpset_find(const char *name);           /* -1: none of these */
int zpset_size(int i);
int32_t zpset_member(int i, int rank); /* virtual rank */
int zpset_has_me(int i);

/* The value of a predefined attribute that speaks of the whole job; NULL: keyval is none of these,
 * or the native library's value counts. found: the native library has one on that communicator. */
int *zattr_of_job(int keyval, int found);
int zattr_hidden(int keyval); /* 1: nobody knows the job's value, and the native one is wrong */
int zattr_start(void);        /* before the program asks; MPI error code */
void zattr_note(int keyval);  /* the program has made this one */
/* Runs the delete callbacks of all attributes that the program set, those of the newest keyval
 * first. If one fails its error has been raised, and that attribute and those after it are still
 * there. */
int zattr_delete_all(MPI_Comm comm);
#endif
