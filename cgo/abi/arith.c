/* The arithmetic of accumulates: the predefined operators of MPI on the predefined types, without
 * calls of MPI, because it runs in the engine's progress thread. Numbers may have any alignment. */
#include "native.h"
#include <complex.h>
#include <string.h>

/* Computes EXPRESSION for each pair of elements of type T, a of inout and b of `in`, and stores it
 * in inout. The elements are copied, because their alignment is unknown. */
#define EACH(T, EXPRESSION)                                   \
  do {                                                        \
    if (bytes % (int64_t)sizeof(T)) return -1;                \
    for (int64_t i = 0; i < bytes; i += (int64_t)sizeof(T)) { \
      T a, b;                                                 \
      memcpy(&a, inout + i, sizeof a);                        \
      memcpy(&b, in + i, sizeof b);                           \
      T r = (T)(EXPRESSION);                                  \
      memcpy(inout + i, &r, sizeof r);                        \
    }                                                         \
    return 0;                                                 \
  } while (0)

/* clang-format 14 formats the statements after a case as a label. */
/* clang-format off */
#define ORDER(T)                             \
  case Z_MAX: EACH(T, a > b ? a : b);        \
  case Z_MIN: EACH(T, a < b ? a : b)
#define FIELD(T)                             \
  case Z_SUM: EACH(T, a + b);                \
  case Z_PROD: EACH(T, a * b)
#define LOGIC(T)                             \
  case Z_LAND: EACH(T, a && b);              \
  case Z_LOR: EACH(T, a || b);               \
  case Z_LXOR: EACH(T, !a != !b)
#define BITS(T)                              \
  case Z_BAND: EACH(T, a & b);               \
  case Z_BOR: EACH(T, a | b);                \
  case Z_BXOR: EACH(T, a ^ b)
/* clang-format on */

#define DEFINE(NAME, ...)                                               \
  static int NAME(int fn, char *inout, const char *in, int64_t bytes) { \
    switch (fn) {                                                       \
      __VA_ARGS__;                                                      \
    default: return -1;                                                 \
    }                                                                   \
  }

#define INTEGER(T) DEFINE(of_##T, ORDER(T); FIELD(T); LOGIC(T); BITS(T))
typedef long double flong;
typedef float complex c32;
typedef double complex c64;
typedef long double complex clong;
INTEGER(int8_t)
INTEGER(int16_t)
INTEGER(int32_t)
INTEGER(uint8_t)
INTEGER(uint16_t)
INTEGER(uint32_t)
INTEGER(uint64_t)
INTEGER(int64_t)
DEFINE(of_float, ORDER(float); FIELD(float); LOGIC(float))
DEFINE(of_double, ORDER(double); FIELD(double); LOGIC(double))
DEFINE(of_flong, ORDER(flong); FIELD(flong); LOGIC(flong))
DEFINE(of_c32, FIELD(c32))
DEFINE(of_c64, FIELD(c64))
DEFINE(of_clong, FIELD(clong))
DEFINE(of_l8, LOGIC(uint8_t); BITS(uint8_t))
DEFINE(of_l16, LOGIC(uint16_t); BITS(uint16_t))
DEFINE(of_l32, LOGIC(uint32_t); BITS(uint32_t))
DEFINE(of_l64, LOGIC(uint64_t); BITS(uint64_t))

/* Defines the operators MAXLOC and MINLOC on pairs NAME of a value and an index. Of equal values
 * the one with the lower index is taken. */
#define PAIR(NAME, V, I)                                                               \
  typedef struct {                                                                     \
    V value;                                                                           \
    I index;                                                                           \
  } NAME;                                                                              \
  static NAME NAME##_max(NAME a, NAME b) {                                             \
    return a.value > b.value ? a : b.value > a.value ? b : a.index <= b.index ? a : b; \
  }                                                                                    \
  static NAME NAME##_min(NAME a, NAME b) {                                             \
    return a.value < b.value ? a : b.value < a.value ? b : a.index <= b.index ? a : b; \
  }                                                                                    \
  static int of_##NAME(int fn, char *inout, const char *in, int64_t bytes) {           \
    switch (fn) {                                                                      \
    case Z_MAXLOC: EACH_PAIR(NAME, NAME##_max(a, b));                                  \
    case Z_MINLOC: EACH_PAIR(NAME, NAME##_min(a, b));                                  \
    default: return -1;                                                                \
    }                                                                                  \
  }
#define EACH_PAIR(T, EXPRESSION)                              \
  do {                                                        \
    if (bytes % (int64_t)sizeof(T)) return -1;                \
    for (int64_t i = 0; i < bytes; i += (int64_t)sizeof(T)) { \
      T a, b, r;                                              \
      memcpy(&a, inout + i, sizeof a);                        \
      memcpy(&b, in + i, sizeof b);                           \
      r = EXPRESSION;                                         \
      memcpy(inout + i, &r, sizeof r);                        \
    }                                                         \
    return 0;                                                 \
  } while (0)
PAIR(float_int, float, int)
PAIR(double_int, double, int)
PAIR(long_int, long, int)
PAIR(two_int, int, int)
PAIR(short_int, short, int)
PAIR(flong_int, flong, int)
PAIR(two_float, float, float)
PAIR(two_double, double, double)

int zn_compute(int32_t fn, int32_t number, uintptr_t at, uintptr_t from, int64_t bytes) {
  static int (*const of[])(int, char *, const char *, int64_t) = {[Z_I8] = of_int8_t,
                                                                  [Z_I16] = of_int16_t,
                                                                  [Z_I32] = of_int32_t,
                                                                  [Z_I64] = of_int64_t,
                                                                  [Z_U8] = of_uint8_t,
                                                                  [Z_U16] = of_uint16_t,
                                                                  [Z_U32] = of_uint32_t,
                                                                  [Z_U64] = of_uint64_t,
                                                                  [Z_F32] = of_float,
                                                                  [Z_F64] = of_double,
                                                                  [Z_FLONG] = of_flong,
                                                                  [Z_C32] = of_c32,
                                                                  [Z_C64] = of_c64,
                                                                  [Z_CLONG] = of_clong,
                                                                  [Z_L8] = of_l8,
                                                                  [Z_L16] = of_l16,
                                                                  [Z_L32] = of_l32,
                                                                  [Z_L64] = of_l64,
                                                                  [Z_FLOAT_INT] = of_float_int,
                                                                  [Z_DOUBLE_INT] = of_double_int,
                                                                  [Z_LONG_INT] = of_long_int,
                                                                  [Z_2INT] = of_two_int,
                                                                  [Z_SHORT_INT] = of_short_int,
                                                                  [Z_LONG_DOUBLE_INT] = of_flong_int,
                                                                  [Z_2FLOAT] = of_two_float,
                                                                  [Z_2DOUBLE] = of_two_double};
  if (number < 0 || number >= (int)(sizeof of / sizeof *of) || !of[number]) return -1;
  return of[number](fn, (char *)at, (const char *)from, bytes);
}
