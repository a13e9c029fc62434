/* Requests of native MPI, which complete when the test says so, and statuses. */
#include "core/privcomm.h"
#include "fake_install.h"
#include <string.h>

enum { REQUESTS = 4096, REQUEST = 0x300000 };

typedef struct request {
  int live, placeholder, persistent, active, done;
  int source, tag, error, cancelled;
  int64_t bytes;
} request;

static request requests[REQUESTS];
static int made;

static request *request_of(MPI_Request handle) {
  uint64_t i = (z_key(handle) - REQUEST) / 16;
  FAKE_ASSERT(i < (uint64_t)made && requests[i].live, "a native function got a request that is none, or over");
  FAKE_ASSERT(!requests[i].placeholder, "a placeholder of the shim went to native MPI");
  return &requests[i];
}

static MPI_Request new_request(request r) {
  FAKE_ASSERT(made < REQUESTS, "the fake has room for %d requests", REQUESTS);
  r.live = 1, r.source = MPI_PROC_NULL, r.tag = MPI_ANY_TAG;
  requests[made] = r;
  return (MPI_Request)(uintptr_t)(REQUEST + 16 * made++);
}

MPI_Request fake_request(void) { return new_request((request){.active = 1}); }
MPI_Request fake_persistent(void) { return new_request((request){.persistent = 1}); }
MPI_Request fake_last_request(void) { return (MPI_Request)(uintptr_t)(REQUEST + 16 * (made - 1)); }

void fake_start(MPI_Request handle) {
  request *r = request_of(handle);
  FAKE_ASSERT(r->persistent && !r->active, "only an inactive persistent request can be started");
  r->active = 1, r->done = 0;
}

void fake_done(MPI_Request handle, int source, int tag, int64_t bytes) {
  request *r = request_of(handle);
  r->done = 1, r->source = source, r->tag = tag, r->bytes = bytes;
}

void fake_fails(MPI_Request handle, int class_) {
  request *r = request_of(handle);
  r->done = 1, r->error = class_;
}

void fake_cancelled(MPI_Request handle) {
  request *r = request_of(handle);
  r->done = 1, r->cancelled = 1;
}

static int count(int placeholders) {
  int n = 0;
  for (int i = 0; i < made; i++) n += requests[i].live && requests[i].placeholder == placeholders;
  return n;
}

int fake_requests(void) { return count(0); }
int fake_placeholders(void) { return count(1); }

/* ---- statuses ---- */

static void put_bytes(MPI_Status *status, int64_t bytes, int cancelled) {
#ifdef OPEN_MPI
  status->_ucount = (size_t)bytes, status->_cancelled = cancelled;
#else
  status->count_lo = (int)bytes, status->count_hi_and_cancelled = (int)(bytes >> 32 << 1) | cancelled;
#endif
}

int64_t fake_bytes(const MPI_Status *status) {
#ifdef OPEN_MPI
  return (int64_t)status->_ucount;
#else
  return (int64_t)(uint32_t)status->count_lo | (int64_t)(status->count_hi_and_cancelled >> 1) << 32;
#endif
}

static int cancelled(const MPI_Status *status) {
#ifdef OPEN_MPI
  return status->_cancelled;
#else
  return status->count_hi_and_cancelled & 1;
#endif
}

int fake_is_empty(const MPI_Status *s) {
  return s->MPI_SOURCE == MPI_ANY_SOURCE && s->MPI_TAG == MPI_ANY_TAG && fake_bytes(s) == 0 && !cancelled(s);
}

static int Status_set_elements_x(MPI_Status *status, MPI_Datatype type, MPI_Count n) {
  FAKE_ASSERT(type == MPI_BYTE && n >= 0, "statuses are set in bytes");
  put_bytes(status, n, cancelled(status));
  return MPI_SUCCESS;
}

static int Status_set_cancelled(MPI_Status *status, int flag) {
  put_bytes(status, fake_bytes(status), flag);
  return MPI_SUCCESS;
}

static int Get_elements_x(const MPI_Status *status, MPI_Datatype type, MPI_Count *n) {
  FAKE_ASSERT(type == MPI_BYTE, "statuses are asked for bytes");
  *n = fake_bytes(status);
  return MPI_SUCCESS;
}

static int Test_cancelled(const MPI_Status *status, int *flag) {
  *flag = cancelled(status);
  return MPI_SUCCESS;
}

static void empty(MPI_Status *status) {
  if (status == MPI_STATUS_IGNORE) return;
  status->MPI_SOURCE = MPI_ANY_SOURCE, status->MPI_TAG = MPI_ANY_TAG;
  put_bytes(status, 0, 0);
}

/* ---- completion of one request ---- */

static int is_active(MPI_Request handle) { return handle != MPI_REQUEST_NULL && request_of(handle)->active; }
static int is_over(MPI_Request handle) { return !is_active(handle) || request_of(handle)->done; }

/* Concludes a completed request: fills in its status, and sets the handle to null or inactive.
 * Returns its error; MPI_ERROR is left unchanged, as MPI requires. */
static int conclude(MPI_Request *handle, MPI_Status *status) {
  empty(status);
  if (!is_active(*handle)) return MPI_SUCCESS;
  request *r = request_of(*handle);
  if (status != MPI_STATUS_IGNORE) {
    status->MPI_SOURCE = r->source, status->MPI_TAG = r->tag;
    put_bytes(status, r->bytes, r->cancelled);
  }
  int error = r->error;
  if (r->persistent) r->active = r->done = 0;
  else r->live = 0, *handle = MPI_REQUEST_NULL;
  return error;
}

static MPI_Status *nth(MPI_Status statuses[], int i) {
  return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
}

/* Checks that a blocking call may be made: it serves no links, so it is allowed only while the
 * engine is idle. */
static void may_block(int over) {
  FAKE_ASSERT(z_busy == Z_IDLE && !z_threads && !z_pending, "a native call blocks while the engine is busy");
  FAKE_ASSERT(over, "a native call would block for ever");
}

static int Test(MPI_Request *handle, int *flag, MPI_Status *status) {
  fake.calls.test++;
  fake_pass(fake.test_us);
  return (*flag = is_over(*handle)) ? conclude(handle, status) : MPI_SUCCESS;
}

static int Wait(MPI_Request *handle, MPI_Status *status) {
  fake.calls.wait++;
  may_block(is_over(*handle));
  return conclude(handle, status);
}

/* ---- completion of several ---- */

/* Does as MPICH does: MPI_ERROR of the statuses is written only if a request has failed. */
static int conclude_all(int n, MPI_Request handles[], MPI_Status statuses[]) {
  int errors[n + 1], failed = 0;
  for (int i = 0; i < n; i++) failed |= errors[i] = conclude(&handles[i], nth(statuses, i));
  for (int i = 0; i < n && failed && statuses != MPI_STATUSES_IGNORE; i++) statuses[i].MPI_ERROR = errors[i];
  return failed ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}

static int all_over(int n, const MPI_Request handles[]) {
  for (int i = 0; i < n; i++)
    if (!is_over(handles[i])) return 0;
  return 1;
}

static int Testall(int n, MPI_Request handles[], int *flag, MPI_Status statuses[]) {
  fake.calls.testall++;
  fake_pass(fake.test_us);
  return (*flag = all_over(n, handles)) ? conclude_all(n, handles, statuses) : MPI_SUCCESS;
}

static int Waitall(int n, MPI_Request handles[], MPI_Status statuses[]) {
  fake.calls.waitall++;
  may_block(all_over(n, handles));
  return conclude_all(n, handles, statuses);
}

/* Returns the first request that is active and has completed, or MPI_UNDEFINED. *none is set if no
 * request is active. */
static int find(int n, const MPI_Request handles[], int *none) {
  *none = 1;
  for (int i = 0; i < n; i++) {
    if (!is_active(handles[i])) continue;
    *none = 0;
    if (request_of(handles[i])->done) return i;
  }
  return MPI_UNDEFINED;
}

static int Testany(int n, MPI_Request handles[], int *index, int *flag, MPI_Status *status) {
  int none;
  fake.calls.testany++;
  fake_pass(fake.test_us);
  *index = find(n, handles, &none);
  *flag = none || *index != MPI_UNDEFINED;
  if (none) empty(status);
  return none || !*flag ? MPI_SUCCESS : conclude(&handles[*index], status);
}

static int Waitany(int n, MPI_Request handles[], int *index, MPI_Status *status) {
  int none;
  fake.calls.waitany++;
  *index = find(n, handles, &none);
  may_block(none || *index != MPI_UNDEFINED);
  if (none) empty(status);
  return none ? MPI_SUCCESS : conclude(&handles[*index], status);
}

static int some(int n, MPI_Request handles[], int *count, int indices[], MPI_Status statuses[]) {
  int none, failed = 0, errors[n + 1];
  (void)find(n, handles, &none);
  *count = none ? MPI_UNDEFINED : 0;
  for (int i = 0; i < n && !none; i++) {
    if (!is_active(handles[i]) || !request_of(handles[i])->done) continue;
    failed |= errors[*count] = conclude(&handles[i], nth(statuses, *count));
    indices[(*count)++] = i;
  }
  for (int i = 0; failed && i < *count && statuses != MPI_STATUSES_IGNORE; i++) statuses[i].MPI_ERROR = errors[i];
  return failed ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}

static int Testsome(int n, MPI_Request handles[], int *count, int indices[], MPI_Status statuses[]) {
  fake.calls.testsome++;
  fake_pass(fake.test_us);
  return some(n, handles, count, indices, statuses);
}

static int Waitsome(int n, MPI_Request handles[], int *count, int indices[], MPI_Status statuses[]) {
  fake.calls.waitsome++;
  int rc = some(n, handles, count, indices, statuses);
  may_block(*count);
  return rc;
}

static int Request_get_status(MPI_Request handle, int *flag, MPI_Status *status) {
  request before = is_active(handle) ? *request_of(handle) : (request){0};
  fake_pass(fake.test_us);
  if (!(*flag = is_over(handle))) return MPI_SUCCESS;
  MPI_Request copy = handle;
  int rc = conclude(&copy, status);
  /* Request_get_status does not end the request */
  if (before.live) requests[(z_key(handle) - REQUEST) / 16] = before;
  return rc;
}

#ifdef Z_HAVE_Request_get_status_any
static int Request_get_status_any(int n, Z_READ_REQUEST handles[], int *index, int *flag, MPI_Status *status) {
  int none;
  *index = find(n, handles, &none);
  *flag = none || *index != MPI_UNDEFINED;
  if (none) empty(status);
  return none || !*flag ? MPI_SUCCESS : Request_get_status(handles[*index], flag, status);
}

static int Request_get_status_all(int n, Z_READ_REQUEST handles[], int *flag, MPI_Status statuses[]) {
  *flag = all_over(n, handles);
  for (int i = 0; i < n && *flag; i++) z_ignore(Request_get_status(handles[i], flag, nth(statuses, i)));
  return MPI_SUCCESS;
}

static int Request_get_status_some(int n, Z_READ_REQUEST handles[], int *count, int indices[], MPI_Status statuses[]) {
  int none, flag;
  (void)find(n, handles, &none);
  *count = none ? MPI_UNDEFINED : 0;
  for (int i = 0; i < n && !none; i++) {
    if (!is_active(handles[i]) || !request_of(handles[i])->done) continue;
    z_ignore(Request_get_status(handles[i], &flag, nth(statuses, *count)));
    indices[(*count)++] = i;
  }
  return MPI_SUCCESS;
}
#endif
#ifdef Z_HAVE_X_Request_is_complete
static int X_Request_is_complete(MPI_Request handle) { return is_over(handle); }
#endif

/* ---- other functions ---- */

static int Recv_init(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *out) {
  (void)buf, (void)tag;
  FAKE_ASSERT(source == MPI_PROC_NULL && count == 0 && type == MPI_BYTE && comm == z_self,
              "the fake makes placeholders only");
  if (fake.recv_init_fails) return MPI_ERR_NO_MEM;
  *out = new_request((request){.persistent = 1, .placeholder = 1});
  return MPI_SUCCESS;
}

static int Request_free(MPI_Request *handle) {
  uint64_t i = (z_key(*handle) - REQUEST) / 16;
  FAKE_ASSERT(i < (uint64_t)made && requests[i].live, "Request_free got a request that is none, or over");
  requests[i].live = 0;
  *handle = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}

static int Cancel(MPI_Request *handle) {
  (void)request_of(*handle);
  fake.calls.cancel++;
  return MPI_SUCCESS;
}

static int Isend(const void *buf, int n, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *out) {
  (void)buf, (void)n, (void)type, (void)comm;
  fake.calls.isend++;
  fake.peer = dest, fake.tag = tag;
  *out = new_request((request){.active = 1});
  return MPI_SUCCESS;
}

/* A send to MPI_PROC_NULL checks its arguments all the same. Other sends are received at once. */
static int Send(const void *buf, int n, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  (void)buf, (void)n, (void)comm;
  if (dest == MPI_PROC_NULL) {
    fake.calls.commit++;
    return fake_committed(type) ? MPI_SUCCESS : MPI_ERR_TYPE;
  }
  may_block(1);
  fake.calls.send++;
  fake.peer = dest, fake.tag = tag;
  return MPI_SUCCESS;
}

static int Imrecv(void *buf, int n, MPI_Datatype type, MPI_Message *message, MPI_Request *out) {
  (void)buf, (void)n, (void)type;
  fake.calls.imrecv++;
  *message = MPI_MESSAGE_NULL;
  *out = new_request((request){.active = 1});
  return MPI_SUCCESS;
}

static int Irecv(void *buf, int n, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *out) {
  (void)buf, (void)n, (void)type, (void)comm;
  fake.calls.irecv++;
  fake.peer = source, fake.tag = tag;
  *out = new_request((request){.active = 1});
  return MPI_SUCCESS;
}

/* Returns this process's value as the result, because no other process contributes one. */
static int Iallreduce(const void *mine, void *all, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                      MPI_Request *out) {
  FAKE_ASSERT(type == MPI_INT && op == MPI_MAX, "the fake knows the agreement of zcomm_meet alone");
  memcpy(all, mine, (size_t)n * sizeof(int));
  (void)comm;
  *out = new_request((request){.active = 1, .done = 1});
  return MPI_SUCCESS;
}

static int Ibarrier(MPI_Comm comm, MPI_Request *out) {
  (void)comm;
  *out = new_request((request){.active = 1, .done = 1});
  return MPI_SUCCESS;
}

static int Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status) {
  (void)source, (void)tag, (void)comm, (void)status;
  fake.calls.probe++;
  fake_pass(fake.probe_us);
  *flag = 0;
  return MPI_SUCCESS;
}

void fake_install_requests(void) {
  FAKE(Test), FAKE(Wait), FAKE(Testall), FAKE(Waitall), FAKE(Testany), FAKE(Waitany), FAKE(Testsome), FAKE(Waitsome);
  FAKE(Request_get_status), FAKE(Recv_init), FAKE(Request_free), FAKE(Cancel), FAKE(Send), FAKE(Isend), FAKE(Irecv),
      FAKE(Imrecv), FAKE(Iallreduce), FAKE(Ibarrier);
  FAKE(Iprobe);
#ifdef Z_HAVE_Request_get_status_any
  FAKE(Request_get_status_any), FAKE(Request_get_status_all), FAKE(Request_get_status_some);
#endif
#ifdef Z_HAVE_X_Request_is_complete
  FAKE(X_Request_is_complete);
#endif
  FAKE(Status_set_elements_x), FAKE(Status_set_cancelled), FAKE(Get_elements_x), FAKE(Test_cancelled);
}
