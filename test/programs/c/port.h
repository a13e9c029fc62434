/* The exchange of a port between two jobs: by a file, or by a published name (name:WORD). */
#ifndef PORT_H
#define PORT_H
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char port[MPI_MAX_PORT_NAME];

static inline const char *published(const char *place) { return strncmp(place, "name:", 5) ? NULL : place + 5; }

/* Publishes the port, at the root of the accepting job. */
static inline void tell_port(const char *place) {
  char text[4096];
  MPI_Open_port(MPI_INFO_NULL, port);
  if (published(place)) {
    MPI_Publish_name(published(place), MPI_INFO_NULL, port);
    return;
  }
  snprintf(text, sizeof text, "%s.new", place);
  FILE *f = fopen(text, "w");
  if (!f || fputs(port, f) < 0 || fclose(f) || rename(text, place)) MPI_Abort(MPI_COMM_WORLD, 9);
}

/* Waits for the port, at the root of the connecting job. */
static inline void find_port(const char *place) {
  if (published(place)) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; MPI_Lookup_name(published(place), MPI_INFO_NULL, port); i++)
      if (i == 60) MPI_Abort(MPI_COMM_WORLD, 8);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    return;
  }
  for (FILE *f = NULL; !f; usleep(20000))
    if ((f = fopen(place, "r"))) {
      if (!fgets(port, sizeof port, f)) MPI_Abort(MPI_COMM_WORLD, 7);
      fclose(f);
    }
}

static inline void forget_port(const char *place) {
  if (published(place)) MPI_Unpublish_name(published(place), MPI_INFO_NULL, port);
  MPI_Close_port(port);
}

/* Makes one connection of all ranks of comm, whose rank 0 knows the port. */
static inline int connect_jobs(int accepts, MPI_Comm comm, MPI_Comm *inter) {
  return accepts ? MPI_Comm_accept(port, MPI_INFO_NULL, 0, comm, inter)
                 : MPI_Comm_connect(port, MPI_INFO_NULL, 0, comm, inter);
}
#endif
