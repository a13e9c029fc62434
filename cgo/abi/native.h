/* Calls through z_native, for Go, which cannot call function pointers. Results are returned by
 * value, so that no Go variable escapes to the heap. */
#ifndef ZIPPER_ABI_NATIVE_H
#define ZIPPER_ABI_NATIVE_H
#include "abi.h"

/* The result of zn_improbe or zn_iprobe: 1, 0 or a negative error as z_native's function returns
 * it, and the message if it is 1. */
typedef struct zn_probe {
  int32_t found;
  z_probe probe;
} zn_probe;
/* The result of zn_coll: Z_OK or the negative of an error, and the number of the collective for
 * zn_coll_test. */
typedef struct zn_token {
  int32_t error;
  uint64_t token;
} zn_token;

/* Set and return ze_error's text of the calling thread. Go runs an exported function on the thread
 * that called it, so the text is stored for the right thread. zn_set_error takes ownership of the
 * text, which malloc has allocated. */
void zn_set_error(char *text);
const char *zn_error(void);

/* Removes a variable from the environment, and its value from the memory of the environment. No
 * other thread may read or change the environment meanwhile. */
void zn_forget(const char *name);

/* Returns the number of z_native's functions in which this thread is, 0 if it is in none. */
int zn_within(void);
zn_probe zn_improbe(const z_native *n, uintptr_t comm, int32_t source, int32_t tag);
zn_probe zn_iprobe(const z_native *n, uintptr_t comm, int32_t source, int32_t tag);
int zn_imrecv(const z_native *n, uintptr_t cell, uint64_t message);
int zn_irecv(const z_native *n, uintptr_t cell);
int zn_test(const z_native *n, uintptr_t cell);
int zn_cancel(const z_native *n, uintptr_t cell);
zn_token zn_coll(const z_native *n, uintptr_t comm, int32_t op, int32_t root, uintptr_t send, uintptr_t recv,
                 int64_t send_bytes, const int64_t *send_counts, const int64_t *send_displs, const int64_t *recv_counts,
                 const int64_t *recv_displs, int64_t count, int64_t extent, uint64_t type, uint64_t mpi_op,
                 int32_t commutative);
int zn_coll_test(const z_native *n, uint64_t token);
int zn_recode(const z_native *n, uint64_t type, uintptr_t at, int64_t count, int32_t way);
void zn_recode_numbers(const z_native *n, int32_t number, uintptr_t at, int64_t bytes, int32_t way);
int zn_reduce_local(const z_native *n, uintptr_t in, uintptr_t inout, int64_t count, uint64_t type, uint64_t op);
/* Computes inout = inout fn in on `bytes` bytes of numbers, where fn is an enum z_fn and number an
 * enum z_number (arith.c). Returns 0, or -1 if the function is not defined for such numbers. */
int zn_compute(int32_t fn, int32_t number, uintptr_t inout, uintptr_t in, int64_t bytes);
/* The result of zn_copy: Z_OK or Z_ERR_DEVICE, and the reason. */
typedef struct zn_copied {
  int32_t error;
  char why[300];
} zn_copied;
zn_copied zn_copy(const z_native *n, uintptr_t to, uintptr_t from, int64_t bytes);
void zn_fail(const z_native *n, int32_t code, const char *reason);
/* lets the shim access the memory of a fault; `fault` is the address of a z_fault */
void zn_access(const z_native *n, uintptr_t fault);
#endif
