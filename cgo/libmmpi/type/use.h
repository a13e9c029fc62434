/* Operators and datatypes that nonblocking and persistent calls use. The program may free its
 * handle meanwhile; the native object and its handle stay valid until the last call that uses them
 * has completed. A duplicate cannot replace the object, because a user's operator gets the datatype
 * and must find the program's handle, name and attributes. */
#ifndef ZIPPER_USE_H
#define ZIPPER_USE_H
#include "type/type.h"
#include <mpi.h>

/* Retains an operator: until it is released, MPI_Op_free only notes that it has been called. Safe
 * for concurrent use. */
void zop_retain(MPI_Op op);
/* Drops a use of an operator that zop_retain has added, and frees the operator after the last use
 * if MPI_Op_free has been called. Safe for concurrent use. */
void zop_release(MPI_Op op);
/* Retains a datatype: until it is released, MPI_Type_free only notes that it has been called. The
 * type may be predefined, or MPI_DATATYPE_NULL. Safe for concurrent use. */
void ztype_retain(MPI_Datatype type);
/* Drops a use of a datatype that ztype_retain has added, and frees the datatype after the last use
 * if MPI_Type_free has been called. Safe for concurrent use. */
void ztype_release(MPI_Datatype type);
/* Is zmany_end for a call that may have begun an operation: the type stays until it is released. */
void ztype_end(zmany *m);
#endif
