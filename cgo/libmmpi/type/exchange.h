/* The exchange format of data between clusters. It is the memory's format, except in a job whose
 * clusters have different formats of long double (z_layout.mixed): there every long double between
 * clusters is IEEE binary128, as in MPI's external32. Clusters with x87's format convert the long
 * doubles that they send and receive, and clusters with binary128 convert none. So no process needs
 * to know the source of a message, MPI_PACKED matches every type, and MPI_BYTE is not converted. */
#ifndef ZIPPER_EXCHANGE_H
#define ZIPPER_EXCHANGE_H
#include "core/job.h"
#include "type/type.h"
#include <float.h>

#pragma GCC visibility push(hidden)

/* Convert the long double in the 16 bytes at `at`, which may have any alignment, between x87's
 * format and binary128. zlong_encode is exact. zlong_decode rounds to nearest, ties to even; values
 * beyond the range become infinite. The six bytes of padding become 0. */
void zlong_encode(void *at);
void zlong_decode(void *at);

/* The direction of a conversion: to the exchange format, or from it to the format of memory. */
enum { Z_ENCODE = 0, Z_DECODE = 1 };

/* Returns whether this process has to convert long doubles that it exchanges with other
 * clusters. */
static inline int zexchange_converts(void) { return LDBL_MANT_DIG == 64 && z_layout.mixed; }

/* The functions that pack data into the exchange format and unpack data from it. They have the
 * arguments and results of ztype_pack and ztype_unpack, which they are unless this process converts
 * (zexchange_start). `unpack` may change the packed data. */
extern struct zexchange {
  int (*pack)(const void *buf, int64_t count, MPI_Datatype type, void *out, MPI_Comm comm);
  int (*unpack)(void *packed, int64_t bytes, void *buf, int64_t count, MPI_Datatype type, MPI_Comm comm);
} zexchange;
/* Selects the functions of zexchange; called once the job is known. */
void zexchange_start(void);

/* Sets t->longs for a type whose other properties are known, in a mixed job, and t->contiguous to 0
 * if the type has to be converted. Returns an MPI error code: MPI_ERR_TYPE for a Fortran type that
 * cannot be exchanged (zexchange_blame). */
int zexchange_learn(MPI_Datatype type, ztype *t);
/* Returns the reason for which this thread's last call of zexchange_learn failed, as a text for the
 * user, and clears the reason. Returns `otherwise` if there is no reason. */
const char *zexchange_blame(const char *otherwise);

/* Converts `count` elements that are laid out as their type, of which the first byte of data is at
 * `at`; `way` is Z_ENCODE or Z_DECODE. The engine calls it as z_native.recode. Returns Z_OK or an
 * enum z_error. */
int z_cb_recode(uint64_t type, void *at, int64_t count, int32_t way);
/* Converts the numbers of one type (enum z_number) in `bytes` bytes of a window's message. The
 * engine calls it as z_native.recode_numbers, in any thread. */
void z_cb_recode_numbers(int32_t number, void *at, int64_t bytes, int32_t way);

#pragma GCC visibility pop
#endif
