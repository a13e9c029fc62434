/* A part of random.c: datatypes, and buffers with known content. */

/* Datatypes: each has `ints` 4-byte words per element at these positions within `extent` words.
 * They have the same signature for the same number of words, so any of them may match any other. */
typedef struct {
  MPI_Datatype type;
  int ints, extent, at[24];
} layout;
enum { LAYOUTS = 9 };
static layout layouts[LAYOUTS];

static void make_layouts(void) {
  MPI_Datatype t;
  int k = 0;
  layouts[k++] = (layout){MPI_INT, 1, 1, {0}};
  layouts[k++] = (layout){MPI_INT, 1, 1, {0}};
  MPI_Type_contiguous(3, MPI_INT, &layouts[k].type);
  layouts[k].ints = 3, layouts[k].extent = 3;
  for (int i = 0; i < 3; i++) layouts[k].at[i] = i;
  k++;
  MPI_Type_vector(4, 2, 3, MPI_INT, &layouts[k].type); /* extent 11 */
  layouts[k].ints = 8, layouts[k].extent = 11;
  for (int i = 0; i < 8; i++) layouts[k].at[i] = i / 2 * 3 + i % 2;
  k++;
  int lengths[3] = {2, 1, 3}, displs[3] = {5, 0, 8}; /* not in the order of address */
  MPI_Type_indexed(3, lengths, displs, MPI_INT, &layouts[k].type);
  layouts[k] = (layout){layouts[k].type, 6, 11, {5, 6, 0, 8, 9, 10}};
  k++;
  MPI_Aint places[2] = {4, 16};
  int blocks[2] = {2, 1};
  MPI_Datatype kinds[2] = {MPI_INT, MPI_INT};
  MPI_Type_create_struct(2, blocks, places, kinds, &t);
  MPI_Type_create_resized(t, 0, 24, &layouts[k].type);
  MPI_Type_free(&t);
  layouts[k] = (layout){layouts[k].type, 3, 6, {1, 2, 4}};
  k++;
  int sizes[2] = {4, 5}, sub[2] = {2, 3}, first[2] = {1, 1};
  MPI_Type_create_subarray(2, sizes, sub, first, MPI_ORDER_C, MPI_INT, &layouts[k].type);
  layouts[k] = (layout){layouts[k].type, 6, 20, {6, 7, 8, 11, 12, 13}};
  k++;
  layouts[k] = layouts[3], layouts[k].extent = 16;
  MPI_Type_create_resized(layouts[3].type, 0, 4 * 16, &layouts[k].type);
  k++;
  MPI_Type_create_indexed_block(3, 2, (int[]){4, 0, 2}, MPI_INT, &layouts[k].type);
  layouts[k] = (layout){layouts[k].type, 6, 6, {4, 5, 0, 1, 2, 3}};
  k++;
  for (int i = 2; i < k; i++) MPI_Type_commit(&layouts[i].type);
}

static int trace;
/* Prints the operation at each rank if RANDOM_TRACE is set. */
static void say(const comm_state *c, const char *what, int kind, int root, int n) {
  char text[400];
  int at = 0;
  if (!trace) return;
  for (int i = 0; i < c->n; i++) at += snprintf(text + at, sizeof text - at, " %d", c->world[i]);
  fprintf(stderr, "rank %d: operation %d: %s %d root %d size %d in%s\n", me, operation, what, kind, root, n, text);
}

static inline int word(uint64_t id, int i) { return (int)mix(id * 0x9e3779b1u + (unsigned)i); }

enum { GAP = 0x6b6b6b6b };
/* Returns a buffer for `ints` words in a layout, filled with message id's words (or only gaps, if
 * receiving). */
static int *buffer(const layout *l, int ints, uint64_t id, int sending) {
  int elements = (ints + l->ints - 1) / l->ints, n = elements * l->extent + 24;
  int *p = malloc((size_t)n * sizeof *p);
  for (int i = 0; i < n; i++) p[i] = GAP;
  if (sending)
    for (int i = 0; i < ints; i++) p[i / l->ints * l->extent + l->at[i % l->ints]] = word(id, i);
  return p;
}
static void verify(int *p, const layout *l, int room, int ints, uint64_t id) {
  int elements = (room + l->ints - 1) / l->ints, n = elements * l->extent + 24;
  for (int i = 0; i < ints; i++) {
    int *at = &p[i / l->ints * l->extent + l->at[i % l->ints]];
    if (*at != word(id, i))
      BAD("message %llx: word %d of %d is %x, want %x", (unsigned long long)id, i, ints, *at, word(id, i));
    result = mix(result ^ (unsigned)*at);
    *at = GAP;
  }
  for (int i = 0; i < n; i++)
    if (p[i] != GAP)
      BAD("message %llx of %d words: wrote %x outside, at word %d of %d", (unsigned long long)id, ints, p[i], i, n);
}
