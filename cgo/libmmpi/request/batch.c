/* Arrays of requests. An array that mixes the shim's requests and native ones never goes whole to
 * native MPI. */
#include "request/completion.h"
#include <stdio.h>
#include <string.h>

static void batch_load(zbatch *b) {
  b->natives = b->active = b->looked_at = 0;
  for (int i = 0; i < b->n; i++) {
    zreq *r = b->ours[i] = zreq_find(b->requests[i]);
    b->looked_at += !r || (zdone_active(r) && zdone_work(r)->poll);
    if (r) {
      b->active += zdone_active(r);
      continue;
    }
    b->native[b->natives] = b->requests[i];
    b->at[b->natives++] = i;
  }
}

int zbatch_open(zbatch *b, int n, MPI_Request requests[]) {
  size_t each = 2 * sizeof *b->status + sizeof *b->ours + sizeof *b->native + sizeof *b->from + 2 * sizeof *b->at;
  memset(b, 0, sizeof *b);
  if (!(b->memory = malloc(each * (n ? n : 1)))) return MPI_ERR_NO_MEM;
  b->n = n;
  b->requests = requests;
  b->ours = b->memory;
  b->from = (zcomm **)(b->ours + n);
  b->status = (MPI_Status *)(b->from + n);
  b->status_of = b->status + n;
  b->native = (MPI_Request *)(b->status_of + n);
  b->at = (int *)(b->native + n);
  b->which = b->at + n;
  memset(b->status, 0, 2 * n * sizeof *b->status);
  memset(b->from, 0, n * sizeof *b->from);
  batch_load(b);
  return MPI_SUCCESS;
}

void zbatch_take(zbatch *b) {
  for (int k = 0; k < b->natives && z_threads; k++) b->from[k] = z_receives_take(b->native[k]);
}

void zbatch_put_back(zbatch *b) {
  for (int k = 0; k < b->natives && z_threads; k++)
    if (b->from[k]) zmap_put(&z_receives, z_key(b->native[k]), b->from[k]);
}

void zbatch_close(zbatch *b) { free(b->memory); }

int zbatch_untouched(int n, const MPI_Request requests[]) {
  if (!zmap_count(&z_requests) && !zmap_count(&z_receives)) return 1;
  for (int i = 0; i < n; i++)
    if (zreq_find(requests[i]) || (zmap_count(&z_receives) && zmap_get(&z_receives, z_key(requests[i])))) return 0;
  return 1;
}

int zbatch_no_memory(const char *function) {
  return z_raise(NULL, MPI_ERR_NO_MEM, function, "no memory for the array of requests");
}

int zbatch_failed(const zunraised *unraised, const char *function) {
  if (!unraised->comm) return MPI_ERR_IN_STATUS; /* native MPI has raised the error */
  char text[MPI_MAX_ERROR_STRING];
  int n;
  if (z_Error_string(unraised->class_, text, &n)) snprintf(text, sizeof text, "an operation failed: see the statuses");
  z_raise(unraised->comm, unraised->class_, function, "%s", text);
  zcomm_release(unraised->comm);
  return MPI_ERR_IN_STATUS;
}

void zbatch_native_done(zbatch *b, int k, MPI_Status *to) {
  int i = b->at[k];
  MPI_Request was = b->requests[i];
  b->requests[i] = b->native[k];
  zdone_translate(z_threads ? b->from[k] : z_receives_take(was), &b->status[k]);
  b->from[k] = NULL;
  if (to != MPI_STATUS_IGNORE) *to = b->status[k];
}
