/* Types in a job whose clusters have different formats of long double (exchange.c). */
#include "core/privcomm.h"
#include "p2p/p2p.h"
#include "test.h"
#include "type/exchange.h"
#include "type/wintype.h"
#include <string.h>

#if LDBL_MANT_DIG == 64
/* The bytes of 1.0L + i in the exchange format. */
static void quad(int i, char out[16]) {
  long double x = 1 + i;
  memset(out, 0, 16);
  memcpy(out, &x, 10);
  zlong_encode(out);
}

static void mixed(void) {
  FAKE_WORLD(0, 2, 1);
  z_layout.mixed = 1;
  zexchange_start();
}

typedef struct record {
  int before;
  long double value;
  char after;
} record;

static MPI_Datatype record_type(void) {
  return fake_type(MPI_COMBINER_STRUCT, FAKE_INTS(3, 1, 1, 1),
                   FAKE_AINTS(offsetof(record, before), offsetof(record, value), offsetof(record, after)),
                   FAKE_TYPES(MPI_INT, MPI_LONG_DOUBLE, MPI_CHAR));
}

static MPI_Datatype records(int n) {
  MPI_Datatype one =
      fake_type(MPI_COMBINER_RESIZED, FAKE_NONE, FAKE_AINTS(0, sizeof(record)), FAKE_TYPES(record_type()));
  return fake_type(MPI_COMBINER_CONTIGUOUS, FAKE_INTS(n), FAKE_NONE, FAKE_TYPES(one));
}

TEST(only_types_with_long_double_are_converted) {
  mixed();
  const MPI_Datatype with[] = {MPI_LONG_DOUBLE, MPI_C_LONG_DOUBLE_COMPLEX, MPI_LONG_DOUBLE_INT, records(2)},
                     without[] = {MPI_DOUBLE, MPI_BYTE, MPI_PACKED, MPI_DOUBLE_INT, MPI_C_DOUBLE_COMPLEX};
  for (int i = 0; i < COUNT(with); i++) CHECK(ztype_get(with[i])->longs && !ztype_get(with[i])->contiguous);
  for (int i = 0; i < COUNT(without); i++) CHECK(!ztype_get(without[i])->longs);
  CHECK(ztype_get(MPI_BYTE)->contiguous);
}

TEST(jobs_of_one_format_convert_nothing) {
  FAKE_WORLD(0, 2, 1);
  zexchange_start();
  CHECK(zexchange.pack == ztype_pack);
  CHECK(ztype_get(MPI_LONG_DOUBLE)->contiguous && !ztype_get(MPI_LONG_DOUBLE)->longs);
}

TEST(packing_converts_each_long_double_of_a_type) {
  mixed();
  record in[4], out[4];
  char packed[4 * 21], want[16];
  memset(in, 0, sizeof in), memset(out, 0, sizeof out);
  for (int i = 0; i < 4; i++) in[i].before = 10 + i, in[i].value = 1 + i, in[i].after = (char)('a' + i);
  MPI_Datatype two = records(2);
  SAME(zexchange.pack(in, 2, two, packed, z_private), MPI_SUCCESS);
  for (int i = 0; i < 4; i++) {
    quad(i, want);
    CHECK(!memcmp(packed + i * 21 + 4, want, 16));
    CHECK(!memcmp(packed + i * 21, &in[i].before, 4) && packed[i * 21 + 20] == in[i].after);
  }
  SAME(zexchange.unpack(packed, sizeof packed, out, 2, two, z_private), MPI_SUCCESS);
  for (int i = 0; i < 4; i++)
    CHECK(out[i].before == in[i].before && out[i].value == in[i].value && out[i].after == in[i].after);
}

TEST(a_message_may_end_within_a_type) {
  mixed();
  long double in[3] = {1, 2, 3}, out[3] = {0};
  char packed[48];
  MPI_Datatype three = fake_type(MPI_COMBINER_CONTIGUOUS, FAKE_INTS(3), FAKE_NONE, FAKE_TYPES(MPI_LONG_DOUBLE));
  SAME(zexchange.pack(in, 1, three, packed, z_private), MPI_SUCCESS);
  SAME(zexchange.unpack(packed, 32, out, 1, three, z_private), MPI_SUCCESS);
  CHECK(out[0] == 1 && out[1] == 2 && out[2] == 0);
}

static void listed(MPI_Datatype type, int form, int n, const z_span *want) {
  int rc;
  const zflat *f = zflat_get(type, form, &rc);
  CHECK(f != NULL);
  SAME(f->n, n);
  for (int i = 0; i < n; i++) {
    SAME(f->spans[i].off, want[i].off);
    SAME(f->spans[i].len, want[i].len);
  }
}

TEST(forms_separate_long_doubles_from_the_rest) {
  mixed();
  MPI_Datatype one = record_type(),
               vector = fake_type(MPI_COMBINER_VECTOR, FAKE_INTS(2, 1, 2), FAKE_NONE, FAKE_TYPES(MPI_LONG_DOUBLE_INT));
  listed(one, ZFLAT_LONGS, 1, (z_span[]){{16, 16}});
  listed(one, ZFLAT_REST, 2, (z_span[]){{0, 4}, {32, 1}});
  listed(one, ZFLAT_SIGNATURE, 3, (z_span[]){{0, 4}, {1, 16}, {0, 1}});
  listed(vector, ZFLAT_LONGS, 2, (z_span[]){{0, 16}, {64, 16}});
  listed(vector, ZFLAT_REST, 2, (z_span[]){{16, 4}, {80, 4}});
  listed(vector, ZFLAT_SIGNATURE, 4, (z_span[]){{1, 16}, {0, 4}, {1, 16}, {0, 4}});
  listed(MPI_DOUBLE_INT, ZFLAT_SIGNATURE, 1, (z_span[]){{0, 12}});
  listed(fake_type(MPI_COMBINER_CONTIGUOUS, FAKE_INTS(100), FAKE_NONE, FAKE_TYPES(MPI_LONG_DOUBLE)), ZFLAT_SIGNATURE, 1,
         (z_span[]){{1, 1600}});
}

TEST(elements_of_a_reduction_are_converted_in_place) {
  mixed();
  struct pair {
    long double value;
    int index;
  } all[3];
  char want[16];
  for (int i = 0; i < 3; i++) all[i].value = 1 + i, all[i].index = i;
  SAME(z_cb_recode(z_key(MPI_LONG_DOUBLE_INT), all, 3, Z_ENCODE), Z_OK);
  for (int i = 0; i < 3; i++) {
    quad(i, want);
    CHECK(!memcmp(&all[i], want, 16) && all[i].index == i);
  }
  z_cb_recode_numbers(Z_LONG_DOUBLE_INT, all, sizeof all, Z_DECODE);
  for (int i = 0; i < 3; i++) CHECK(all[i].value == 1 + i && all[i].index == i);
  z_cb_recode_numbers(Z_F64, all, sizeof all, Z_ENCODE);
  CHECK(all[2].value == 3);
}

TEST(fortran_types_of_more_than_double_precision_are_refused) {
  mixed();
  MPI_Datatype extended = fake_f90(MPI_COMBINER_F90_REAL, 16), twice = fake_f90(MPI_COMBINER_F90_REAL, 8);
  CHECK(ztype_get(extended) == NULL);
  CHECK(strstr(zexchange_blame(""), "REAL(10)") != NULL);
  SAME(*zexchange_blame(""), 0);
  CHECK(ztype_get(twice) != NULL);
}
#endif
