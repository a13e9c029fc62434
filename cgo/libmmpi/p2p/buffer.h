/* The buffers of buffered sends: one of the process, and since MPI 4.1 one of each communicator and
 * of each session. */
#ifndef ZIPPER_BUFFER_H
#define ZIPPER_BUFFER_H
#include "p2p/p2p.h"

#pragma GCC visibility push(hidden)

/* A buffered message that has not been sent yet. */
typedef struct zbuffered zbuffered;

/* Takes room for a message of `bytes` bytes in the buffer of a communicator: the communicator's own
 * buffer if it has one, else that of its session, else that of the process. Stores the message in
 * *out. Returns MPI_SUCCESS, or the code of an error that has been raised. */
int zbuffer_take(MPI_Comm comm, int64_t bytes, const char *function, zbuffered **out);
/* Gives back the room of a message that has been sent or could not be started, and frees it. */
void zbuffer_give_back(zbuffered *message);

/* the map from the z_key of a communicator that is derived from a session to the session's z_key */
extern zmap zbuffer_sessions;
/* Records that a communicator is derived from a session, whose z_key is not 0. */
static inline void zbuffer_derive(MPI_Comm comm, uint64_t session) {
  zmap_put(&zbuffer_sessions, z_key(comm), (void *)(uintptr_t)session);
}
/* Records that the communicator `made` is derived from the session of `from`, if that is derived
 * from one and `made` is not MPI_COMM_NULL. */
static inline void zbuffer_inherit(MPI_Comm from, MPI_Comm made) {
  void *session = zmap_count(&zbuffer_sessions) ? zmap_get(&zbuffer_sessions, z_key(from)) : NULL;
  if (session && made != MPI_COMM_NULL) zbuffer_derive(made, (uintptr_t)session);
}

/* Forgets a communicator or session that is being freed, and detaches its buffer, if it has one,
 * without waiting for its messages, which are sent from the shim's memory. `owner` is the handle's
 * z_key. */
void zbuffer_forget(uint64_t owner);

#pragma GCC visibility pop
#endif
