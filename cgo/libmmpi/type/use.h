/* Operators and datatypes that nonblocking and persistent calls use. The program may free its
 * handle meanwhile; the native object and its handle stay valid until the last call that uses them
 * has completed. A duplicate cannot replace the object, because a user's operator gets the datatype
 * and must find the program's handle, name and attributes. */
#ifndef ZIPPER_USE_H
#define ZIPPER_USE_H
#include <mpi.h>

/* Retain and release an object. As long as it is retained MPI_Op_free and MPI_Type_free only note
 * the call; the last release frees the object. Safe for concurrent use. */
void zop_retain(MPI_Op op);
void zop_release(MPI_Op op);
void ztype_retain(MPI_Datatype type); /* any type, also a predefined one and MPI_DATATYPE_NULL */
void ztype_release(MPI_Datatype type);
#endif
