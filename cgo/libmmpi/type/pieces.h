/* Data in memory of a device, of which the spans of bytes are copied one by one (type.c). */
#ifndef ZIPPER_PIECES_H
#define ZIPPER_PIECES_H
#include "abi.h"
#include "type/type.h"

/* Returns the driver of the device in whose memory `bytes` bytes of data of a type at buf are, and
 * sets *there to an address in that memory. Returns NULL if the host can read the data. */
const zdriver *zpiece_device(const ztype *t, MPI_Datatype type, const void *buf, int64_t bytes, const void **there);

/* Copies the data of a view, in memory of a device in which the address `there` lies, to `out`,
 * which has room for them. Returns an MPI error class. */
int zpiece_gather(const zdriver *device, const void *there, const z_view *view, void *out);
/* Returns the number of bytes of data in a view. */
int64_t zpiece_bytes(const z_view *view);
#endif
