/* Conversion between the two 16-byte formats of long double: x87 extended (x86-64) and IEEE
 * binary128 (aarch64). Both have a sign bit, a 15-bit exponent with the bias 16383, and the same
 * range. x87 has a significand of 64 bits, whose leading bit is stored; binary128 stores 112 bits
 * without the leading one. So the 63 bits after the leading bit become the upper ones of the 112,
 * for zeros, denormals, infinities and NaNs too. The functions work on bits, so signaling NaNs stay
 * signaling, and no exception flag is raised. */
#include "type/exchange.h"
#include <string.h>

#define INTEGER_BIT (UINT64_C(1) << 63)
enum { SPECIAL = 0x7fff }; /* the exponent of infinities and NaNs */
/* The number of bits of the lower half of a binary128 fraction that an x87 significand has no room
 * for. */
enum { DROPPED = 49 };

void zlong_encode(void *at) {
  uint64_t m, out[2];
  uint16_t se;
  memcpy(&m, at, sizeof m);
  memcpy(&se, (char *)at + sizeof m, sizeof se);
  uint64_t sign = se >> 15, e = se & SPECIAL, fraction = m << 1;
  if (e == 0 && m & INTEGER_BIT) e = 1; /* a pseudo-denormal has the value of a normal number */
  if (e != 0 && !(m & INTEGER_BIT)) {   /* such a number is invalid for the processor */
    e = SPECIAL;
    fraction |= INTEGER_BIT;
  }
  out[0] = fraction << 48;
  out[1] = sign << 63 | e << 48 | fraction >> 16;
  memcpy(at, out, sizeof out);
}

void zlong_decode(void *at) {
  uint64_t in[2], rest, half = UINT64_C(1) << (DROPPED - 1);
  memcpy(in, at, sizeof in);
  uint64_t sign = in[1] >> 63, e = in[1] >> 48 & SPECIAL;
  uint64_t m = (in[1] & 0xffffffffffff) << 15 | in[0] >> DROPPED;
  rest = in[0] & ((UINT64_C(1) << DROPPED) - 1);
  if (e == SPECIAL) {
    if (!m && rest) m = INTEGER_BIT >> 1; /* a NaN of which no payload is left stays a NaN */
    m |= INTEGER_BIT;
  } else {
    if (e) m |= INTEGER_BIT;
    if (rest > half || (rest == half && m & 1)) {
      m++;
      if (e && !m) m = INTEGER_BIT, e++; /* the carry may lead to infinity */
      if (!e && m & INTEGER_BIT) e = 1;  /* a denormal has become the least normal number */
    }
  }
  memset(at, 0, 16);
  uint16_t se = (uint16_t)(sign << 15 | e);
  memcpy(at, &m, sizeof m);
  memcpy((char *)at + sizeof m, &se, sizeof se);
}
