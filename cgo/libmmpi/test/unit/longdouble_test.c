/* Conversion between x87's long double and IEEE binary128 (longdouble.c), compared with the
 * compiler's conversion between long double and __float128. */
#include "test.h"
#include "type/exchange.h"
#include <string.h>

enum { RANDOM = 1000000 };

typedef struct bits {
  uint64_t low, high;
} bits;

/* Returns an x87 number; e is its sign and exponent. */
static bits x87(uint16_t e, uint64_t m) { return (bits){m, e}; }

static bits encoded(bits b) {
  zlong_encode(&b);
  return b;
}
static bits decoded(bits b) {
  zlong_decode(&b);
  return b;
}

static void same(bits got, bits want) {
  SAME(got.high, want.high);
  SAME(got.low, want.low);
}

#define TOP (UINT64_C(1) << 63)
#define INFINITE 0x7fff

TEST(special_values_keep_their_meaning) {
  same(encoded(x87(0, 0)), (bits){0, 0});
  same(encoded(x87(0x8000, 0)), (bits){0, TOP});
  same(encoded(x87(INFINITE, TOP)), (bits){0, UINT64_C(0x7fff) << 48});
  same(encoded(x87(0x8000 | INFINITE, TOP)), (bits){0, UINT64_C(0xffff) << 48});
  same(encoded(x87(0x3fff, TOP)), (bits){0, UINT64_C(0x3fff) << 48});
  /* the least denormal, the least normal number, and the latter in its second form */
  same(encoded(x87(0, 1)), (bits){UINT64_C(1) << 49, 0});
  same(encoded(x87(1, TOP)), (bits){0, UINT64_C(1) << 48});
  same(encoded(x87(0, TOP)), (bits){0, UINT64_C(1) << 48});
  /* a number without its leading bit is invalid for the processor */
  same(encoded(x87(0x3fff, 1)), (bits){UINT64_C(1) << 49, UINT64_C(0x7fff8) << 44});
  same(encoded(x87(INFINITE, 0)), (bits){0, UINT64_C(0x7fff8) << 44});
}

TEST(nan_payloads_survive) {
  /* quiet and signaling, with the lowest and the highest bit of the payload */
  const uint64_t payloads[] = {TOP | 1, TOP | TOP >> 1, TOP | TOP >> 1 | 1, TOP | TOP >> 2, UINT64_MAX};
  for (int i = 0; i < COUNT(payloads); i++)
    for (int sign = 0; sign < 2; sign++) {
      bits nan = x87((uint16_t)(sign << 15 | INFINITE), payloads[i]);
      same(decoded(encoded(nan)), nan);
    }
  /* a payload that has no bit in x87's part becomes the quiet NaN, and not infinity */
  same(decoded((bits){1, UINT64_C(0x7fff) << 48}), x87(INFINITE, TOP | TOP >> 1));
}

TEST(rounding_carries_into_the_exponent) {
  const uint64_t ones = UINT64_MAX, most = UINT64_C(0xffffffffffff);
  same(decoded((bits){ones, UINT64_C(0x7ffe) << 48 | most}), x87(INFINITE, TOP)); /* beyond the range */
  same(decoded((bits){ones, most}), x87(1, TOP));                                 /* a denormal becomes normal */
  same(decoded((bits){ones, UINT64_C(0x3ffe) << 48 | most}), x87(0x3fff, TOP));
  /* halfway between two numbers: the even one */
  same(decoded((bits){UINT64_C(1) << 48, UINT64_C(0x3fff) << 48}), x87(0x3fff, TOP));
  same(decoded((bits){UINT64_C(3) << 48, UINT64_C(0x3fff) << 48}), x87(0x3fff, TOP | 2));
  same(decoded((bits){(UINT64_C(1) << 48) + 1, UINT64_C(0x3fff) << 48}), x87(0x3fff, TOP | 1));
  same(decoded((bits){UINT64_C(1) << 48, 0}), x87(0, 0));
  same(decoded((bits){(UINT64_C(1) << 48) + 1, 0}), x87(0, 1));
}

#if defined __x86_64__ && LDBL_MANT_DIG == 64
static uint64_t seed;
static uint64_t draw(void) { /* splitmix64 */
  uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

/* Returns an exponent; those at the ends of the range are as frequent as all others. */
static uint16_t exponent(void) {
  uint64_t r = draw();
  int ends[] = {0, 1, 2, 0x7ffd, 0x7ffe, INFINITE, 0x3fff, 0x4000};
  uint16_t e = r & 1 ? (uint16_t)ends[r >> 1 & 7] : (uint16_t)(r >> 8 & 0x7fff);
  return (uint16_t)(e | (r >> 32 & 1) << 15);
}

/* Returns random bits, or a few ones or zeros at random places, so that ties are frequent. */
static uint64_t fraction(void) {
  uint64_t r = draw();
  switch (r & 3) {
  case 0: return UINT64_C(1) << (r >> 8 & 63);
  case 1: return UINT64_MAX << (r >> 8 & 63);
  case 2: return UINT64_MAX >> (r >> 8 & 63);
  }
  return draw();
}

/* Sets the bit of a binary128 or x87 NaN that makes it quiet, as the compiler's conversions do. */
static bits quiet(bits b, int is_x87) {
  if (is_x87 && (b.high & INFINITE) == INFINITE && b.low << 1) b.low |= TOP >> 1;
  if (!is_x87 && (b.high >> 48 & INFINITE) == INFINITE && (b.high << 16 || b.low)) b.high |= UINT64_C(1) << 47;
  return b;
}

TEST(a_million_values_become_binary128_exactly) {
  seed = 1;
  for (int i = 0; i < RANDOM; i++) {
    uint16_t e = exponent();
    bits from = x87(e, e & INFINITE ? fraction() | TOP : fraction() & ~TOP), want;
    long double x;
    memcpy(&x, &from, sizeof x);
    __float128 q = (__float128)x;
    memcpy(&want, &q, sizeof want);
    bits got = encoded(from);
    same(quiet(got, 0), want);
    same(decoded(got), from); /* signaling NaNs too */
  }
}

TEST(a_million_binary128_values_are_rounded_to_nearest_even) {
  seed = 2;
  for (int i = 0; i < RANDOM; i++) {
    bits from = {fraction(), (uint64_t)exponent() << 48 | (fraction() & 0xffffffffffff)}, want = {0, 0};
    if (draw() & 1) from.low &= UINT64_MAX << (draw() & 63);
    __float128 q;
    memcpy(&q, &from, sizeof q);
    long double x = (long double)q;
    memcpy(&want, &x, 10);
    same(quiet(decoded(from), 1), want);
  }
}
#endif
