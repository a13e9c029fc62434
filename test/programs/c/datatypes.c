/* Predefined and derived datatypes between every pair of ranks: the bytes of the type map arrive,
 * and gaps stay unchanged. */
#include "check.h"
#include <stddef.h>

typedef struct {
  char c;
  int i;
  double d[3];
  short s;
} record;
typedef struct {
  double d;
  int i;
} double_int;
typedef struct {
  long l;
  int i;
} long_int;
typedef struct {
  short s;
  int i;
} short_int;
typedef struct {
  float f;
  int i;
} float_int;
typedef struct {
  long double l;
  int i;
} long_double_int;

enum { BYTES = 60000 };

/* Sends `n` of `type` from me to me+shift and checks the receive buffer: the bytes of the type map
 * have arrived, and no others have changed. `used` is a mask of the bytes that belong to the type
 * map. */
static uint64_t exchange(const char *name, MPI_Datatype type, int n, const unsigned char *used, int elements) {
  static unsigned char out[BYTES], in[BYTES];
  uint64_t sum = 0;
  for (int shift = 0; shift < np; shift++)
    for (int form = 0; form < 3; form++) {
      int to = (me + shift) % np, from = (me + np - shift) % np, bytes, size, got;
      MPI_Status st;
      MPI_Request r[2];
      fill(out, BYTES, me);
      memset(in, 0xc3, BYTES);
      if (form == 0) {
        MPI_Sendrecv(out, n, type, to, 1, in, n, type, from, 1, MPI_COMM_WORLD, &st);
      } else if (form == 1) {
        /* the buffer has room for more: a partial receive */
        MPI_Irecv(in, n + 1, type, from, 2, MPI_COMM_WORLD, &r[0]);
        MPI_Issend(out, n, type, to, 2, MPI_COMM_WORLD, &r[1]);
        MPI_Wait(&r[0], &st);
        MPI_Wait(&r[1], MPI_STATUS_IGNORE);
      } else { /* the message arrives before the receive is posted */
        MPI_Isend(out, n, type, to, 3, MPI_COMM_WORLD, &r[0]);
        MPI_Probe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &st);
        SAME(st.MPI_SOURCE, from, "probed source");
        MPI_Get_count(&st, type, &got);
        SAME(got, n, "probed count");
        MPI_Recv(in, n, type, from, 3, MPI_COMM_WORLD, &st);
        MPI_Wait(&r[0], MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
      }
      MPI_Get_count(&st, type, &got);
      SAME(got, n, name);
      if (elements >= 0) {
        MPI_Get_elements(&st, type, &got);
        SAME(got, elements * n, name);
      }
      MPI_Type_size(type, &size);
      MPI_Get_count(&st, MPI_BYTE, &bytes);
      fill(out, BYTES, from);
      int wrong = -1, inside = 0;
      for (int i = 0; i < BYTES; i++) {
        inside += used[i];
        if (in[i] != (used[i] ? out[i] : 0xc3)) {
          wrong = i;
          break;
        }
      }
      if (wrong >= 0)
        failed(__FILE__, __LINE__, "%s form %d shift %d: byte %d is %02x, want %02x", name, form, shift, wrong,
               in[wrong], used[wrong] ? out[wrong] : 0xc3);
      else SAME(inside, size * n, name);
      sum = digest(sum, in, BYTES);
    }
  return sum;
}

static unsigned char *mask(void) {
  static unsigned char m[BYTES];
  memset(m, 0, BYTES);
  return m;
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  unsigned char *used;
  MPI_Datatype t, u, v;
  /* predefined */
  const struct {
    const char *name;
    MPI_Datatype type;
    size_t size;
  } basic[] = {{"CHAR", MPI_CHAR, 1},
               {"SIGNED_CHAR", MPI_SIGNED_CHAR, 1},
               {"UNSIGNED_CHAR", MPI_UNSIGNED_CHAR, 1},
               {"BYTE", MPI_BYTE, 1},
               {"SHORT", MPI_SHORT, 2},
               {"UNSIGNED_SHORT", MPI_UNSIGNED_SHORT, 2},
               {"INT", MPI_INT, 4},
               {"UNSIGNED", MPI_UNSIGNED, 4},
               {"LONG", MPI_LONG, 8},
               {"UNSIGNED_LONG", MPI_UNSIGNED_LONG, 8},
               {"LONG_LONG", MPI_LONG_LONG, 8},
               {"UNSIGNED_LONG_LONG", MPI_UNSIGNED_LONG_LONG, 8},
               {"FLOAT", MPI_FLOAT, 4},
               {"DOUBLE", MPI_DOUBLE, 8},
               {"LONG_DOUBLE", MPI_LONG_DOUBLE, 16},
               {"WCHAR", MPI_WCHAR, 4},
               {"C_BOOL", MPI_C_BOOL, 1},
               {"INT8", MPI_INT8_T, 1},
               {"INT16", MPI_INT16_T, 2},
               {"INT32", MPI_INT32_T, 4},
               {"INT64", MPI_INT64_T, 8},
               {"UINT8", MPI_UINT8_T, 1},
               {"UINT16", MPI_UINT16_T, 2},
               {"UINT32", MPI_UINT32_T, 4},
               {"UINT64", MPI_UINT64_T, 8},
               {"AINT", MPI_AINT, 8},
               {"OFFSET", MPI_OFFSET, 8},
               {"COUNT", MPI_COUNT, 8},
               {"C_FLOAT_COMPLEX", MPI_C_FLOAT_COMPLEX, 8},
               {"C_DOUBLE_COMPLEX", MPI_C_DOUBLE_COMPLEX, 16}};
  for (unsigned b = 0; b < sizeof basic / sizeof *basic; b++) {
    used = mask();
    memset(used, 1, 37 * basic[b].size);
    line("%s %016llx", basic[b].name, (unsigned long long)exchange(basic[b].name, basic[b].type, 37, used, 1));
  }
  /* pairs, with their gaps */
#define PAIR(T, M, F)                                                      \
  do {                                                                     \
    used = mask();                                                         \
    for (int i = 0; i < 9; i++)                                            \
      memset(used + i * sizeof(T), 1, sizeof(((T *)0)->F)),                \
          memset(used + i * sizeof(T) + offsetof(T, i), 1, sizeof(int));   \
    line(#M " %016llx", (unsigned long long)exchange(#M, M, 9, used, -1)); \
  } while (0)
  PAIR(double_int, MPI_DOUBLE_INT, d);
  PAIR(long_int, MPI_LONG_INT, l);
  PAIR(short_int, MPI_SHORT_INT, s);
  PAIR(float_int, MPI_FLOAT_INT, f);
  PAIR(long_double_int, MPI_LONG_DOUBLE_INT, l);

  MPI_Type_contiguous(100, MPI_DOUBLE, &t);
  MPI_Type_commit(&t);
  used = mask();
  memset(used, 1, 800 * 7);
  line("contiguous %016llx", (unsigned long long)exchange("contiguous", t, 7, used, 100));
  MPI_Type_free(&t);

  MPI_Type_vector(5, 3, 7, MPI_INT, &t);
  MPI_Type_commit(&t);
  used = mask();
  for (int e = 0; e < 4; e++)
    for (int i = 0; i < 5; i++) memset(used + e * (4 * 7 + 3) * 4 + i * 28, 1, 12);
  line("vector %016llx", (unsigned long long)exchange("vector", t, 4, used, 15));
  MPI_Type_create_resized(t, 0, 35 * 4, &u);
  MPI_Type_commit(&u);
  MPI_Type_free(&t);
  used = mask();
  for (int e = 0; e < 90; e++)
    for (int i = 0; i < 5; i++) memset(used + e * 140 + i * 28, 1, 12);
  line("resized %016llx", (unsigned long long)exchange("resized", u, 90, used, 15));
  MPI_Type_free(&u);

  MPI_Type_create_hvector(6, 2, 13, MPI_SHORT, &t);
  MPI_Type_commit(&t);
  used = mask();
  for (int i = 0; i < 6; i++) memset(used + i * 13, 1, 4);
  line("hvector %016llx", (unsigned long long)exchange("hvector", t, 1, used, 12));
  MPI_Type_free(&t);

  int lengths[4] = {2, 0, 5, 1}, displs[4] = {20, 3, 1, 9};
  MPI_Type_indexed(4, lengths, displs, MPI_INT, &t);
  MPI_Type_commit(&t);
  used = mask();
  for (int i = 0; i < 4; i++) memset(used + displs[i] * 4, 1, 4 * lengths[i]);
  line("indexed %016llx", (unsigned long long)exchange("indexed", t, 1, used, 8));
  MPI_Type_free(&t);

  MPI_Type_create_indexed_block(4, 1, displs, MPI_DOUBLE, &t);
  MPI_Type_commit(&t);
  used = mask();
  for (int i = 0; i < 4; i++) memset(used + displs[i] * 8, 1, 8);
  line("indexed_block %016llx", (unsigned long long)exchange("indexed_block", t, 1, used, 4));
  MPI_Type_free(&t);

  MPI_Aint offsets[4] = {offsetof(record, c), offsetof(record, i), offsetof(record, d), offsetof(record, s)};
  int blocks[4] = {1, 1, 3, 1};
  MPI_Datatype members[4] = {MPI_CHAR, MPI_INT, MPI_DOUBLE, MPI_SHORT};
  MPI_Type_create_struct(4, blocks, offsets, members, &t);
  MPI_Type_create_resized(t, 0, sizeof(record), &u);
  MPI_Type_commit(&u);
  MPI_Type_free(&t);
  used = mask();
  for (int e = 0; e < 500; e++) {
    unsigned char *p = used + e * sizeof(record);
    p[0] = 1, memset(p + offsetof(record, i), 1, 4), memset(p + offsetof(record, d), 1, 24),
    memset(p + offsetof(record, s), 1, 2);
  }
  line("struct %016llx", (unsigned long long)exchange("struct", u, 500, used, 6));
  MPI_Type_dup(u, &v);
  line("dup %016llx", (unsigned long long)exchange("dup", v, 500, used, 6));
  MPI_Type_free(&u), MPI_Type_free(&v);

  int sizes[3] = {6, 7, 8}, sub[3] = {2, 3, 4}, starts[3] = {1, 2, 3};
  MPI_Type_create_subarray(3, sizes, sub, starts, MPI_ORDER_C, MPI_INT, &t);
  MPI_Type_commit(&t);
  used = mask();
  for (int i = 1; i < 3; i++)
    for (int j = 2; j < 5; j++) memset(used + ((i * 7 + j) * 8 + 3) * 4, 1, 16);
  line("subarray %016llx", (unsigned long long)exchange("subarray", t, 1, used, 24));
  MPI_Type_free(&t);

  MPI_Type_vector(10, 1, 2, MPI_INT, &u); /* nested, element with a negative lower bound */
  MPI_Type_create_resized(u, -8, 100, &t);
  MPI_Type_commit(&t);
  used = mask();
  for (int e = 0; e < 20; e++)
    for (int i = 0; i < 10; i++) memset(used + e * 100 + i * 8, 1, 4);
  line("negative bound %016llx", (unsigned long long)exchange("negative bound", t, 20, used, 10));
  MPI_Type_free(&t), MPI_Type_free(&u);

  MPI_Type_contiguous(0, MPI_INT, &t); /* size zero */
  MPI_Type_commit(&t);
  for (int p = 0; p < np; p++) {
    int x = 5, to = (me + p) % np, from = (me + np - p) % np;
    MPI_Status st;
    MPI_Sendrecv(&x, 3, t, to, 1, &x, 3, t, from, 1, MPI_COMM_WORLD, &st);
    SAME(x, 5, "buffer of a type of size zero");
    SAME(st.MPI_SOURCE, from, "source");
  }
  MPI_Type_free(&t);

  /* Different types of the same signature on the two sides; partial elements; absolute
   * addresses. */
  for (int p = 0; p < np; p++) {
    int to = (me + p) % np, from = (me + np - p) % np, a[60], b[60], n;
    MPI_Status st;
    for (int i = 0; i < 60; i++) a[i] = 100 * me + i, b[i] = -1;
    MPI_Type_vector(10, 1, 3, MPI_INT, &t);
    MPI_Type_commit(&t);
    MPI_Sendrecv(a, 2, t, to, 1, b, 20, MPI_INT, from, 1, MPI_COMM_WORLD, &st);
    for (int i = 0; i < 20; i++)
      SAME(b[i], 100 * from + (i < 10 ? 3 * i : 28 + 3 * (i - 10)), "vector received as ints");
    for (int i = 0; i < 60; i++) b[i] = -1;
    MPI_Sendrecv(a, 7, MPI_INT, to, 1, b, 1, t, from, 1, MPI_COMM_WORLD, &st);
    for (int i = 0; i < 30; i++)
      SAME(b[i], i % 3 == 0 && i < 21 ? 100 * from + i / 3 : -1, "seven ints received as a vector");
    MPI_Get_count(&st, t, &n);
    SAME(n, MPI_UNDEFINED, "count of part of an element");
    MPI_Get_elements(&st, t, &n);
    SAME(n, 7, "elements of part of an element");
    MPI_Count big;
    MPI_Get_elements_x(&st, t, &big);
    SAME(big, 7, "elements_x");
    MPI_Type_free(&t);

    double d = me + 0.5, e = -1;
    int x = me, y = -1;
    MPI_Aint where[2];
    int one[2] = {1, 1};
    MPI_Datatype kinds[2] = {MPI_DOUBLE, MPI_INT};
    MPI_Get_address(&d, &where[0]), MPI_Get_address(&x, &where[1]);
    MPI_Type_create_struct(2, one, where, kinds, &t);
    MPI_Get_address(&e, &where[0]), MPI_Get_address(&y, &where[1]);
    MPI_Type_create_struct(2, one, where, kinds, &u);
    MPI_Type_commit(&t), MPI_Type_commit(&u);
    MPI_Sendrecv(MPI_BOTTOM, 1, t, to, 1, MPI_BOTTOM, 1, u, from, 1, MPI_COMM_WORLD, &st);
    CHECK(e == from + 0.5 && y == from, "absolute addresses: %g %d", e, y);
    MPI_Type_free(&t), MPI_Type_free(&u);

    /* A type may be freed while a message of it is in flight. */
    MPI_Request r[2];
    MPI_Type_vector(20, 1, 3, MPI_INT, &t);
    MPI_Type_commit(&t);
    for (int i = 0; i < 60; i++) b[i] = -1;
    MPI_Irecv(b, 1, t, from, 1, MPI_COMM_WORLD, &r[0]);
    MPI_Isend(a, 1, t, to, 1, MPI_COMM_WORLD, &r[1]);
    MPI_Type_free(&t);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 60; i++) SAME(b[i], i % 3 ? -1 : 100 * from + i, "message of a freed type");

    /* Packed on one side, unpacked on the other, and received as the type itself. */
    char packed[400];
    int at = 0, size;
    MPI_Pack_size(60, MPI_INT, MPI_COMM_WORLD, &size);
    CHECK(size >= 240 && size <= 400, "Pack_size %d", size);
    MPI_Pack(a, 60, MPI_INT, packed, sizeof packed, &at, MPI_COMM_WORLD);
    MPI_Sendrecv(packed, at, MPI_PACKED, to, 1, b, 60, MPI_INT, from, 1, MPI_COMM_WORLD, &st);
    for (int i = 0; i < 60; i++) SAME(b[i], 100 * from + i, "packed, received as ints");
    char arrived[400];
    MPI_Sendrecv(a, 60, MPI_INT, to, 1, arrived, sizeof arrived, MPI_PACKED, from, 1, MPI_COMM_WORLD, &st);
    MPI_Get_count(&st, MPI_PACKED, &n);
    at = 0;
    MPI_Unpack(arrived, n, &at, b, 60, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < 60; i++) SAME(b[i], 100 * from + i, "received packed");
    /* in place, with a type */
    MPI_Type_vector(20, 1, 3, MPI_INT, &t);
    MPI_Type_commit(&t);
    for (int i = 0; i < 60; i++) a[i] = 100 * me + i;
    MPI_Sendrecv_replace(a, 1, t, to, 4, from, 4, MPI_COMM_WORLD, &st);
    for (int i = 0; i < 60; i++) SAME(a[i], 100 * (i % 3 ? me : from) + i, "replaced");
    MPI_Type_free(&t);
  }
  return finish();
}
