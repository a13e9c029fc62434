/* Files. Owner: comms. */
#ifndef ZIPPER_FILE_H
#define ZIPPER_FILE_H
#include <mpi.h>

struct zfile;

/* The spanning file behind a handle; NULL: inside one cluster, native. */
struct zfile *zfile_find(MPI_File file);

/* Before a collective native call on a file: all who share it in this cluster are there, and each served the others meanwhile. */
int zfile_meet(MPI_File file);

/* Raises through the file's error handler that a function needs what clusters do not share. */
int zfile_refuse(MPI_File file, const char *function);
#endif
