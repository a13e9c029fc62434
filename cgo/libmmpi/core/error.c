/* Errors: classes of the native library, raised through the communicator's error handler. */
#include "core/error.h"
#include "core/limits.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int z_error_class(int z_error) {
  switch (z_error) {
  case Z_OK: return MPI_SUCCESS;
  case Z_ERR_TRUNCATE: return MPI_ERR_TRUNCATE;
  case Z_ERR_UNSUPPORTED: return MPI_ERR_UNSUPPORTED_OPERATION;
  case Z_ERR_ARG: return MPI_ERR_ARG;
  case Z_ERR_OP: return MPI_ERR_OP;
  case Z_ERR_RMA_SYNC: return MPI_ERR_RMA_SYNC;
  case Z_ERR_RMA_RANGE: return MPI_ERR_RMA_RANGE;
  case Z_ERR_PROC_FAILED: return Z_CLASS_PROC_FAILED;
  case Z_ERR_PROC_FAILED_PENDING: return Z_CLASS_PROC_FAILED_PENDING;
  case Z_ERR_REVOKED: return Z_CLASS_REVOKED;
  case Z_ERR_INTERNAL: return MPI_ERR_INTERN;
  default: return MPI_ERR_OTHER;
  }
}

/* The texts of the classes of failed processes, which the native library may not know. */
static const struct {
  int class_;
  const char *text;
} failures[] = {
    {Z_CLASS_PROC_FAILED, "MPI_ERR_PROC_FAILED: a process that the operation needs has failed"},
    {Z_CLASS_PROC_FAILED_PENDING,
     "MPI_ERR_PROC_FAILED_PENDING: the receive is still pending, and its sender may have failed"},
    {Z_CLASS_REVOKED, "MPI_ERR_REVOKED: the communicator has been revoked"},
};
enum { FAILURES = sizeof failures / sizeof *failures };

const char *z_failure_text(int class_) {
  for (int i = 0; i < FAILURES; i++)
    if (failures[i].class_ == class_) return failures[i].text;
  return NULL;
}

int z_Error_class(int code, int *class_) {
  if (!z_failure_text(code)) return real.Error_class(code, class_);
  *class_ = code;
  return MPI_SUCCESS;
}

int z_native_class(int rc) {
  int class_;
  if (z_failure_text(rc)) return rc;
  return real.Error_class(rc, &class_) ? MPI_ERR_OTHER : class_;
}

void z_native_failed(int rc, const char *function) {
  char text[MPI_MAX_ERROR_STRING];
  int n;
  if (real.Error_string(rc, text, &n)) snprintf(text, sizeof text, "error code %d", rc);
  fprintf(stderr, "MMPI: virtual rank %d: %s failed in the native MPI library, and the job cannot go on: %s\n",
          z_layout.rank, function, text);
  z_drain_stderr();
  if (!z_is_off()) Z_ENGINE(ze_abort(1));
  abort();
}

/* The error codes that have a text of the shim's own, so that MPI_Error_string names the function.
 * MPI cannot free an error code, so each distinct text gets one code, and once Z_ERROR_TEXTS exist
 * the error class is used alone. The texts are kept here because MPICH loses those of codes that
 * were added to its own classes. */
static struct {
  pthread_mutex_t lock;
  int n;
  struct {
    int class_, code;
    char *text;
  } of[Z_ERROR_TEXTS];
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int code_with_text(int class_, const char *text) {
  int code = class_, i = 0;
  z_lock(&known.lock);
  while (i < known.n && (known.of[i].class_ != class_ || strcmp(known.of[i].text, text))) i++;
  char *copy = i == known.n && i < Z_ERROR_TEXTS ? strdup(text) : NULL;
  if (copy && !real.Add_error_code(class_, &code) && !real.Add_error_string(code, text)) {
    known.of[known.n].class_ = class_, known.of[known.n].code = code, known.of[known.n].text = copy;
    known.n++;
  } else {
    free(copy);
    code = i < known.n ? known.of[i].code : class_;
  }
  z_unlock(&known.lock);
  return code;
}

int z_Error_string(int code, char *string, int *length) {
  z_lock(&known.lock);
  int i = 0, n = known.n;
  while (i < n && known.of[i].code != code) i++;
  z_unlock(&known.lock);
  if (z_failure_text(code)) {
    *length = snprintf(string, MPI_MAX_ERROR_STRING, "%s", z_failure_text(code));
    return MPI_SUCCESS;
  }
  if (i == n || code == known.of[i].class_) return real.Error_string(code, string, length);
  *length = snprintf(string, MPI_MAX_ERROR_STRING, "%s", known.of[i].text);
  return MPI_SUCCESS;
}

/* Does what z_error_begin does, and returns the code with which the error is raised. The code is
 * the error class itself, because programs compare return codes with error classes, unless
 * needs_text asks for a code whose text names the function. */
static int begin(int class_, int needs_text, const char *function, const char *text, MPI_Errhandler handler) {
  char line[MPI_MAX_ERROR_STRING];
  snprintf(line, sizeof line, "%s: %s", function, text);
  int code = needs_text ? code_with_text(class_, line) : class_;
  if (handler == MPI_ERRORS_ARE_FATAL) {
    fprintf(stderr, "MMPI: virtual rank %d: %s\n", z_layout.rank, line);
    z_drain_stderr();
    if (!z_is_off())
      Z_ENGINE(ze_abort(class_ > 0 && class_ < 256 ? class_ : 1)); /* ends all clusters, not only this one */
  }
  if (handler != MPI_ERRHANDLER_NULL) real.Errhandler_free(&handler);
  return code;
}

int z_error_begin(int class_, const char *function, const char *text, MPI_Errhandler handler) {
  return begin(class_, class_ == MPI_ERR_UNSUPPORTED_OPERATION, function, text, handler);
}

static int raise_as(MPI_Comm comm, int class_, int needs_text, const char *function, const char *text) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  if (real.Comm_get_errhandler(comm, &handler)) handler = MPI_ERRHANDLER_NULL;
  int code = begin(class_, needs_text, function, text, handler);
  real.Comm_call_errhandler(comm, code);
  return code;
}

static int raise_text(MPI_Comm comm, int class_, const char *function, const char *text) {
  return raise_as(comm, class_, class_ == MPI_ERR_UNSUPPORTED_OPERATION, function, text);
}

int z_raise_on(MPI_Comm comm, int class_, const char *function, const char *format, ...) {
  char text[MPI_MAX_ERROR_STRING];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return raise_text(comm, class_, function, text);
}

/* Returns the communicator on which an error of an operation on c is raised. */
static MPI_Comm raised_on(const zcomm *c) {
  if (c && c->front) c = c->front;
  return c && !c->freed ? c->native : z_no_object();
}

int z_raise(zcomm *c, int class_, const char *function, const char *format, ...) {
  char text[MPI_MAX_ERROR_STRING];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return raise_text(raised_on(c), class_, function, text);
}

int z_raise_because(zcomm *c, int class_, const char *function, const char *reason, const char *otherwise) {
  if (!reason) return z_raise(c, class_, function, "%s", otherwise);
  return raise_as(raised_on(c), class_, 1, function, reason);
}

int z_unsupported(MPI_Comm comm, const char *function) {
  return z_raise_on(comm, MPI_ERR_UNSUPPORTED_OPERATION, function,
                    "not supported by MMPI on a communicator that spans clusters");
}

/* ---- messages that are not as long as expected ---- */

/* Constants of mpi.h whose values differ between Open MPI and MPICH. If a program takes the length
 * of a message from one of them, sender and receiver disagree about the length. */
#ifndef Z_STANDARD_ABI
static const struct {
  const char *name;
  int open_mpi, mpich;
} constants[] = {
    {"MPI_MAX_LIBRARY_VERSION_STRING", 256, 8192},
    {"MPI_MAX_PORT_NAME", 1024, 256},
    {"MPI_MAX_INFO_VAL", 256, 1024},
    {"MPI_MAX_ERROR_STRING", 256, 512},
    {"MPI_MAX_INFO_KEY", 36, 255},
    {"MPI_MAX_PROCESSOR_NAME", 256, 128},
    {"MPI_MAX_OBJECT_NAME", 64, 128},
};
enum { CONSTANTS = sizeof constants / sizeof *constants };

/* Returns n / a if n is a multiple of a and m is the same multiple of b, otherwise 0. */
static int64_t times(int64_t n, int64_t a, int64_t m, int64_t b) {
  return n % a == 0 && m % b == 0 && n / a == m / b ? n / a : 0;
}
#endif

int zconstants_differ(int64_t sent, int64_t room, char *text, size_t size) {
  int found = 0;
#ifndef Z_STANDARD_ABI
  size_t n = 0;
  for (int i = 0; i < CONSTANTS && z_layout.libraries > 1; i++) {
    int64_t each = times(sent, constants[i].open_mpi, room, constants[i].mpich);
    if (!each) each = times(sent, constants[i].mpich, room, constants[i].open_mpi);
    if (each < 1 || each > z_layout.size || n >= size) continue; /* at most one such string for each rank */
    n += (size_t)snprintf(text + n, size - n, "%s%s (%d, %d)",
                          found++ ? ", " : "constants that differ in Open MPI and MPICH (docs/howto/programs.md)? ",
                          constants[i].name, constants[i].open_mpi, constants[i].mpich);
  }
#else
  (void)sent, (void)room, (void)text, (void)size;
#endif
  return found > 0;
}

int z_raise_engine(zcomm *c, int z_error, const char *function) {
  /* For a communicator over a lost connection the engine looks up the reason here, at the first
   * error. */
  if (c && c->link && !c->freed && Z_ENGINE(ze_comm_why(c->id)))
    return raise_as(raised_on(c), z_error_class(z_error), 1, function, Z_ENGINE(ze_error()));
  const char *why = z_failure_text(z_error_class(z_error));
  if (!why) why = Z_ENGINE(ze_error());
  return z_raise(c, z_error_class(z_error), function, "%s", why && *why ? why : "the engine failed");
}

int z_raise_cell(zcomm *c, const z_cell *cell, const char *function) {
  char why[MPI_MAX_ERROR_STRING] = "";
  if (cell->error != Z_ERR_TRUNCATE) return z_raise_engine(c, cell->error, function);
  int differ = zconstants_differ(cell->sent, cell->bytes, why, sizeof why);
  if (!cell->sent && !cell->bytes) /* not known */
    return z_raise(c, MPI_ERR_TRUNCATE, function, "the message is longer than the receive buffer");
  if (cell->sent < cell->bytes)
    return z_raise(c, MPI_ERR_TRUNCATE, function, "%lld bytes came where %lld were expected%s%s", (long long)cell->sent,
                   (long long)cell->bytes, differ ? ": " : "", why);
  return z_raise(c, MPI_ERR_TRUNCATE, function,
                 "the message of %lld bytes is longer than the receive buffer of %lld%s%s", (long long)cell->sent,
                 (long long)cell->bytes, differ ? ": " : "", why);
}
