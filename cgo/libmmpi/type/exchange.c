/* The exchange format; see exchange.h. */
#include "type/exchange.h"
#include "type/wintype.h"
#include <string.h>

enum { LONG = 16 }; /* the size in bytes of a long double in both formats */

static _Thread_local const char *blame;

const char *zexchange_blame(const char *otherwise) {
  const char *text = blame ? blame : otherwise;
  blame = NULL;
  return text;
}

/* ---- bytes ---- */

static void convert(char *at, int64_t bytes, int way) {
  for (; bytes >= LONG; at += LONG, bytes -= LONG) (way == Z_ENCODE ? zlong_encode : zlong_decode)(at);
}

/* Converts the packed data of elements of a type, which may end within an element. Returns an MPI
 * error code. */
static int convert_packed(MPI_Datatype type, char *packed, int64_t bytes, int way) {
  int rc;
  const zflat *f = zflat_get(type, ZFLAT_SIGNATURE, &rc);
  if (!f || !f->n) return rc;
  while (bytes > 0) {
    for (int64_t i = 0; i < f->n && bytes > 0; i++) {
      int64_t n = f->spans[i].len < bytes ? f->spans[i].len : bytes;
      if (f->spans[i].off) convert(packed, n, way);
      packed += n, bytes -= n;
    }
  }
  return MPI_SUCCESS;
}

/* ---- packing ---- */

static int encode(const void *buf, int64_t count, MPI_Datatype type, void *out, MPI_Comm comm) {
  const ztype *t = ztype_get(type);
  int rc = ztype_pack(buf, count, type, out, comm);
  return rc || !t->longs ? rc : convert_packed(type, out, count * t->size, Z_ENCODE);
}

static int decode(void *packed, int64_t bytes, void *buf, int64_t count, MPI_Datatype type, MPI_Comm comm) {
  const ztype *t = ztype_get(type);
  int rc = t && t->longs && bytes <= count * t->size ? convert_packed(type, packed, bytes, Z_DECODE) : MPI_SUCCESS;
  return rc ? rc : ztype_unpack(packed, bytes, buf, count, type, comm);
}

static int as_it_is(void *packed, int64_t bytes, void *buf, int64_t count, MPI_Datatype type, MPI_Comm comm) {
  return ztype_unpack(packed, bytes, buf, count, type, comm);
}

struct zexchange zexchange = {ztype_pack, as_it_is};

void zexchange_start(void) {
  zexchange = zexchange_converts() ? (struct zexchange){encode, decode} : (struct zexchange){ztype_pack, as_it_is};
}

/* ---- types ---- */

static int is_long(MPI_Datatype type) {
  const MPI_Datatype all[] = {MPI_LONG_DOUBLE, MPI_C_LONG_DOUBLE_COMPLEX, MPI_CXX_LONG_DOUBLE_COMPLEX,
                              MPI_LONG_DOUBLE_INT};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i] != MPI_DATATYPE_NULL && all[i] == type) return 1;
  return 0;
}

/* Returns MPI_ERR_TYPE for a Fortran type of more than double precision, whose kind is 10 in one
 * cluster and 16 in another, otherwise MPI_SUCCESS. `parts` is 2 for a complex type, otherwise
 * 1. */
static int check_fortran(MPI_Datatype type, int parts) {
  int size, rc = real.Type_size(type, &size);
  if (rc || size <= 8 * parts) return rc;
  blame = "a Fortran type of more than double precision is REAL(10) on x86-64 and REAL(16) on aarch64, and cannot be "
          "sent between them: use MPI_REAL16, or MPI_LONG_DOUBLE in C";
  return MPI_ERR_TYPE;
}

/* Sets *has to 1 if a long double is in the signature of a type, and otherwise leaves it unchanged.
 * Returns an MPI error code. */
static int search(MPI_Datatype type, int *has) {
  zmade m;
  int rc = ztype_made(type, &m);
  if (rc) return rc;
  switch (m.combiner) {
  case MPI_COMBINER_NAMED: *has |= is_long(type); return MPI_SUCCESS;
  case MPI_COMBINER_F90_REAL: return check_fortran(type, 1);
  case MPI_COMBINER_F90_COMPLEX: return check_fortran(type, 2);
  case MPI_COMBINER_F90_INTEGER: return MPI_SUCCESS;
  }
  int *ints = malloc(((size_t)m.ints + 1) * sizeof *ints), got = 0;
  MPI_Aint *addresses = malloc(((size_t)m.addresses + 1) * sizeof *addresses);
  MPI_Count *counts = malloc(((size_t)m.counts + 1) * sizeof *counts);
  MPI_Datatype *types = malloc(((size_t)m.types + 1) * sizeof *types);
  rc = ints && addresses && counts && types ? ztype_contents(type, &m, ints, addresses, counts, types) : MPI_ERR_NO_MEM;
  if (!rc) got = (int)m.types;
  for (int i = 0; i < got; i++) {
    zmade part;
    if (!rc) rc = search(types[i], has);
    if (!ztype_made(types[i], &part) && !zmade_predefined(&part)) real.Type_free(&types[i]);
  }
  free(ints), free(addresses), free(counts), free(types);
  return rc;
}

int zexchange_learn(MPI_Datatype type, ztype *t) {
  int has = 0, rc = search(type, &has);
  t->longs = has;
  if (has && zexchange_converts()) t->contiguous = 0;
  return rc;
}

/* ---- callbacks ---- */

int z_cb_recode(uint64_t type, void *at, int64_t count, int32_t way) {
  Z_OUT_OF_ENGINE;
  MPI_Datatype handle = (MPI_Datatype)(uintptr_t)type;
  const ztype *t = ztype_get(handle);
  int rc;
  if (!zexchange_converts()) return Z_OK;
  const zflat *f = t ? zflat_get(handle, ZFLAT_LONGS, &rc) : NULL;
  if (!f) return Z_ERR_OP;
  for (int64_t i = 0; i < count; i++)
    for (int64_t k = 0; k < f->n; k++)
      convert((char *)at + i * t->extent - t->true_lb + f->spans[k].off, f->spans[k].len, way);
  return Z_OK;
}

void z_cb_recode_numbers(int32_t number, void *at, int64_t bytes, int32_t way) {
  struct pair {
    long double value;
    int index;
  };
  if (!zexchange_converts()) return;
  if (number == Z_FLONG || number == Z_CLONG) convert(at, bytes, way);
  else if (number == Z_LONG_DOUBLE_INT)
    for (int64_t i = 0; i + (int64_t)sizeof(struct pair) <= bytes; i += (int64_t)sizeof(struct pair))
      convert((char *)at + i, LONG, way);
}
