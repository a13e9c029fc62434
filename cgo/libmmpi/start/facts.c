/* The format of data in this process's memory, which the clusters of a job compare
 * (facts.Word). */
#define _GNU_SOURCE
#include "core/real.h"
#include "start/start.h"
#include <dlfcn.h>
#include <float.h>
#include <wchar.h>

/* Returns the logarithm to base 2 of a size in bytes, rounded down. */
static uint32_t log_of(size_t size) { return size < 2 ? 0 : 1 + log_of(size / 2); }

static uint32_t long_double_format(void) {
  switch (LDBL_MANT_DIG) {
  case 64: return 1;  /* x87 extended */
  case 113: return 2; /* IEEE binary128 */
  case 106: return 3; /* two doubles */
  case 53: return 4;  /* a double */
  }
  return 5;
}

/* Returns a number for the value of .true. in Fortran: 1 for 1, 2 for -1, 3 for others, and 0 if
 * the program has not loaded the MPI library's Fortran functions, one of which shows the value. */
static uint32_t fortran_true(void) {
  typedef void initialized(MPI_Fint * flag, MPI_Fint * ierror);
  initialized *ask = (initialized *)dlsym(RTLD_DEFAULT, "mpi_initialized_");
  MPI_Fint flag = 0, ierror = 0;
  if (!ask) return 0;
  ask(&flag, &ierror);
  return ierror || !flag ? 0 : flag == 1 ? 1 : flag == -1 ? 2 : 3;
}

uint32_t zfacts(void) {
  uint32_t order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 1 : 2;
  return order | log_of(sizeof(int)) << 4 | log_of(sizeof(long)) << 8 | log_of(sizeof(void *)) << 12 |
         log_of(sizeof(wchar_t)) << 16 | log_of(sizeof(long double)) << 20 | long_double_format() << 24 |
         fortran_true() << 28;
}
