/* Files opened on communicators that span clusters. Owner: comms. */
#ifndef ZIPPER_FILE_H
#define ZIPPER_FILE_H
#include <mpi.h>

struct zfile;

/* The spanning file behind a handle; NULL: inside one cluster, native. */
struct zfile *zfile_find(MPI_File file);

/* Raises through the file's error handler that a function needs what clusters do not share. */
int zfile_refuse(MPI_File file, const char *function);
#endif
