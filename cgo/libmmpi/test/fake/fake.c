/* Communicators, groups and errors of native MPI. */
#include "comm/comm.h"
#include "comm/group.h"
#include "core/privcomm.h"
#include "fake_install.h"
#include <stdio.h>
#include <string.h>

fake_state fake;

enum { COMMS = 256, GROUPS = 1024, MEMBERS = 64, COMM = 0x100000, GROUP = 0x200000 };

typedef struct members {
  int live, n, rank[MEMBERS]; /* the native ranks in the world */
} members;

static members comms[COMMS], groups[GROUPS]; /* comms[0] is the world, comms[1] MPI_COMM_SELF */
static int made_comms = 2, made_groups, native_size, native_rank;

#define HANDLE(TYPE, KIND, I) ((TYPE)(uintptr_t)((KIND) + 16 * (I)))

static members *comm_of(MPI_Comm comm) {
  if (comm == MPI_COMM_WORLD) return &comms[0];
  if (comm == MPI_COMM_SELF) return &comms[1];
  uint64_t i = (z_key(comm) - COMM) / 16;
  FAKE_ASSERT(i >= 2 && i < (uint64_t)made_comms && comms[i].live,
              "a native function got a communicator that is none, or freed");
  return &comms[i];
}

static members *group_of(MPI_Group group) {
  static members empty;
  if (group == MPI_GROUP_EMPTY) return &empty;
  uint64_t i = (z_key(group) - GROUP) / 16;
  FAKE_ASSERT(i < (uint64_t)made_groups && groups[i].live, "a native function got a group that is none, or freed");
  return &groups[i];
}

static MPI_Comm new_comm(const members *of) {
  FAKE_ASSERT(made_comms < COMMS, "the fake has room for %d communicators", COMMS);
  comms[made_comms] = *of;
  comms[made_comms].live = 1;
  fake.comms++;
  return HANDLE(MPI_Comm, COMM, made_comms++);
}

static MPI_Group new_group(const members *of) {
  FAKE_ASSERT(made_groups < GROUPS, "the fake has room for %d groups", GROUPS);
  groups[made_groups] = *of;
  groups[made_groups].live = 1;
  fake.groups++;
  return HANDLE(MPI_Group, GROUP, made_groups++);
}

MPI_Comm fake_comm(void) {
  MPI_Comm made = new_comm(&comms[0]);
  fake.comms--; /* the communicator is the program's */
  return made;
}

/* ---- groups ---- */

static int Comm_group(MPI_Comm comm, MPI_Group *out) {
  *out = new_group(comm_of(comm));
  return MPI_SUCCESS;
}

static int Group_size(MPI_Group group, int *size) {
  *size = group_of(group)->n;
  return MPI_SUCCESS;
}

static int Group_incl(MPI_Group group, int n, const int ranks[], MPI_Group *out) {
  const members *from = group_of(group);
  members made = {.n = n};
  for (int i = 0; i < n; i++) {
    FAKE_ASSERT(ranks[i] >= 0 && ranks[i] < from->n, "Group_incl got rank %d of %d", ranks[i], from->n);
    made.rank[i] = from->rank[ranks[i]];
  }
  *out = n ? new_group(&made) : MPI_GROUP_EMPTY;
  return MPI_SUCCESS;
}

static int Group_translate_ranks(MPI_Group a, int n, const int ranks[], MPI_Group b, int out[]) {
  const members *from = group_of(a), *to = group_of(b);
  for (int i = 0; i < n; i++) {
    FAKE_ASSERT(ranks[i] >= 0 && ranks[i] < from->n, "Group_translate_ranks got rank %d of %d", ranks[i], from->n);
    out[i] = MPI_UNDEFINED;
    for (int k = 0; k < to->n; k++)
      if (to->rank[k] == from->rank[ranks[i]]) out[i] = k;
  }
  return MPI_SUCCESS;
}

static int Group_free(MPI_Group *group) {
  FAKE_ASSERT(*group != MPI_GROUP_EMPTY, "Group_free got MPI_GROUP_EMPTY");
  group_of(*group)->live = 0;
  fake.groups--;
  *group = MPI_GROUP_NULL;
  return MPI_SUCCESS;
}

/* ---- communicators ---- */

static int Comm_size(MPI_Comm comm, int *size) {
  *size = comm_of(comm)->n;
  return MPI_SUCCESS;
}

static int Comm_rank(MPI_Comm comm, int *rank) {
  const members *m = comm_of(comm);
  for (*rank = 0; *rank < m->n && m->rank[*rank] != native_rank;) ++*rank;
  return MPI_SUCCESS;
}

static int Comm_test_inter(MPI_Comm comm, int *flag) {
  (void)comm_of(comm);
  *flag = 0;
  return MPI_SUCCESS;
}

static int Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *out) {
  (void)comm_of(comm), (void)tag;
  *out = new_comm(group_of(group));
  return MPI_SUCCESS;
}

/* Returns a communicator with the members of the old one, because only the other processes know
 * which of them are in the result. */
static int Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *out) {
  (void)key;
  const members *from = comm_of(comm);
  *out = color == MPI_UNDEFINED ? MPI_COMM_NULL : new_comm(from);
  return MPI_SUCCESS;
}

static int Comm_free(MPI_Comm *comm) {
  FAKE_ASSERT(*comm != MPI_COMM_WORLD && *comm != MPI_COMM_SELF, "Comm_free got a communicator that stays");
  comm_of(*comm)->live = 0;
  fake.comms--;
  *comm = MPI_COMM_NULL;
  return MPI_SUCCESS;
}

static int Cart_create(MPI_Comm comm, int nd, const int dims[], const int periods[], int reorder, MPI_Comm *out) {
  fake.calls.cart_create++;
  (void)nd, (void)dims, (void)periods, (void)reorder;
  *out = new_comm(comm_of(comm));
  return MPI_SUCCESS;
}

static int Graph_create(MPI_Comm comm, int n, const int index[], const int edges[], int reorder, MPI_Comm *out) {
  fake.calls.graph_create++;
  (void)n, (void)index, (void)edges, (void)reorder;
  *out = new_comm(comm_of(comm));
  return MPI_SUCCESS;
}

/* ---- errors ---- */

static int Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler) {
  (void)comm_of(comm), (void)handler;
  return MPI_SUCCESS;
}

static int Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *handler) {
  (void)comm_of(comm);
  fake.handlers++;
  *handler = fake.handler;
  return MPI_SUCCESS;
}

static int Errhandler_free(MPI_Errhandler *handler) {
  fake.handlers--;
  *handler = MPI_ERRHANDLER_NULL;
  return MPI_SUCCESS;
}

static int Comm_call_errhandler(MPI_Comm comm, int code) {
  (void)comm_of(comm);
  fake.raised++, fake.raised_code = code, fake.raised_on = comm;
  return MPI_SUCCESS;
}

static int Error_class(int code, int *class_) { /* codes are classes here */
  *class_ = code;
  return MPI_SUCCESS;
}

static int Error_string(int code, char *text, int *length) {
  *length = sprintf(text, "native error %d", code);
  return MPI_SUCCESS;
}

static int codes = 1000;

static int Add_error_code(int class_, int *code) {
  (void)class_;
  *code = ++codes;
  return MPI_SUCCESS;
}

static int Add_error_string(int code, const char *text) {
  FAKE_ASSERT(code <= codes && strlen(text) < MPI_MAX_ERROR_STRING,
              "Add_error_string got no code of ours, or too long a text");
  return MPI_SUCCESS;
}

static int Buffer_attach(void *buffer, int size) {
  (void)buffer, (void)size;
  return MPI_SUCCESS;
}

static int Buffer_detach(void *buffer, int *size) {
  (void)buffer, (void)size;
  return MPI_SUCCESS;
}

#ifdef Z_HAVE_Buffer_attach_c
static int Buffer_attach_c(void *buffer, MPI_Count size) { return Buffer_attach(buffer, (int)size); }
#endif
#ifdef Z_HAVE_Buffer_iflush
static int Comm_attach_buffer(MPI_Comm comm, void *buffer, int size) { return (void)comm, Buffer_attach(buffer, size); }
static int Comm_detach_buffer(MPI_Comm comm, void *buffer, int *size) {
  return (void)comm, Buffer_detach(buffer, size);
}
static int Session_attach_buffer(MPI_Session session, void *buffer, int size) {
  return (void)session, Buffer_attach(buffer, size);
}
/* Native MPI has buffered no message. */
static int Buffer_iflush(MPI_Request *request) { return *request = MPI_REQUEST_NULL, MPI_SUCCESS; }
static int Comm_iflush_buffer(MPI_Comm comm, MPI_Request *request) { return (void)comm, Buffer_iflush(request); }
#endif

/* ---- start ---- */

__attribute__((weak)) void __sanitizer_print_stack_trace(void);

static int not_faked(void) {
  if (__sanitizer_print_stack_trace) __sanitizer_print_stack_trace();
  test_fail(__FILE__, __LINE__, "a native function that the fake does not have was called");
}

void fake_begin(void) {
  void **slot = (void **)&real;
  for (int i = 0; i < Z_REAL_COUNT; i++) slot[i] = (void *)not_faked;
  FAKE(Comm_group), FAKE(Group_size), FAKE(Group_incl), FAKE(Group_translate_ranks), FAKE(Group_free);
  FAKE(Comm_size), FAKE(Comm_rank), FAKE(Comm_test_inter), FAKE(Comm_create_group), FAKE(Comm_split), FAKE(Comm_free);
  FAKE(Cart_create), FAKE(Graph_create);
  FAKE(Comm_set_errhandler), FAKE(Comm_get_errhandler), FAKE(Errhandler_free), FAKE(Comm_call_errhandler);
  FAKE(Error_class), FAKE(Error_string), FAKE(Add_error_code), FAKE(Add_error_string);
  FAKE(Buffer_attach), FAKE(Buffer_detach);
#ifdef Z_HAVE_Buffer_attach_c
  FAKE(Buffer_attach_c);
#endif
#ifdef Z_HAVE_Buffer_iflush
  FAKE(Comm_attach_buffer), FAKE(Comm_detach_buffer), FAKE(Session_attach_buffer);
  FAKE(Buffer_iflush), FAKE(Comm_iflush_buffer);
#endif
  fake_install_requests();
  fake_install_types();
  fake_install_engine();
  fake = (fake_state){.progress_us = 1, .probe_us = 0.3, .test_us = 0.1, .yield_us = 0.5};
  fake.handler = MPI_ERRORS_RETURN;
}

void fake_world(int clusters, const int *sizes, int rank) {
  char layout[256] = "", *at = layout;
  z_layout = (z_world){.rank = rank, .clusters = clusters, .tag_ub = 32767};
  for (int c = 0; c < clusters; c++) {
    at += snprintf(at, (size_t)(layout + sizeof layout - at), "%sc%d=%d", c ? "," : "", c, sizes[c]);
    if (rank >= z_layout.size && rank < z_layout.size + sizes[c]) {
      z_layout.cluster = c, z_layout.offset = z_layout.size;
      native_size = sizes[c];
    }
    for (int i = 0; i < sizes[c]; i++) fake.cluster_of[z_layout.size++] = c;
  }
  native_rank = rank - z_layout.offset;
  comms[0] = (members){.live = 1, .n = native_size};
  for (int i = 0; i < native_size; i++) comms[0].rank[i] = i;
  comms[1] = (members){.live = 1, .n = 1, .rank = {native_rank}};
  setenv("ZIPPER_LAYOUT", layout, 1);
  z_native_size = native_size;
  z_poll_start(native_size, zstages_moved);
  if (zprivate_start() || ztype_start() || zcomm_start()) test_fail(__FILE__, __LINE__, "the units do not start");
  z_own_page.state = Z_ON;
  fake.comms -= 2, fake.groups--; /* z_private, z_self and the group of the world remain */
}

void fake_end(void) { FAKE_ASSERT(fake.handlers == 0, "%d error handlers got and not freed", fake.handlers); }
