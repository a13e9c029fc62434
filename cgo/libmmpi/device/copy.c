/* Copies between the memory of a device and that of the host, which the device's driver makes. They
 * are made in one thread, because the context of a device is a thread's. */
#include "core/job.h"
#include "device/device.h"
#include <stdio.h>
#include <string.h>

/* the largest pitch that all drivers accept */
enum { MOST_PITCH = INT32_MAX };

static _Thread_local char blame[300];

void zdevice_begin(zcopies *c, const zdriver *driver, const void *device) {
  *c = (zcopies){.driver = driver};
  c->error = driver->enter(&c->place, device);
  if (c->error) c->driver = NULL;
  if (c->error)
    snprintf(blame, sizeof blame, "the %s driver cannot access the buffer: %s", driver->name, driver->text(c->error));
}

static void queue(zcopies *c) {
  if (c->rows.width && !c->error) c->error = c->driver->copy(&c->place, &c->rows);
  c->rows.width = 0;
}

/* Adds the copy of n bytes to the rows that are not queued yet, and returns 1, if it continues
 * them: as the rest of the only row, or as a further row. Otherwise returns 0. */
static int continues(zrows *r, const char *to, const char *from, int64_t n) {
  if (!r->width) return 0;
  if (r->rows == 1 && to == r->to + r->width && from == r->from + r->width) return r->width += n, 1;
  if (n != r->width) return 0;
  if (r->rows == 1) r->to_pitch = to - r->to, r->from_pitch = from - r->from;
  if (r->to_pitch < n || r->from_pitch < n || r->to_pitch > MOST_PITCH || r->from_pitch > MOST_PITCH) return 0;
  if (to != r->to + r->rows * r->to_pitch || from != r->from + r->rows * r->from_pitch) return 0;
  r->rows++;
  return 1;
}

void zdevice_add(zcopies *c, void *to, const void *from, int64_t n) {
  if (n <= 0 || c->error || continues(&c->rows, to, from, n)) return;
  queue(c);
  c->rows = (zrows){to, from, n, 1, n, n};
}

static int end(zcopies *c, int waits) {
  if (!c->driver) return MPI_ERR_OTHER;
  queue(c);
  int error = waits ? c->driver->wait(&c->place) : 0;
  if (c->error) error = c->error;
  c->driver->leave(&c->place);
  if (!error) return MPI_SUCCESS;
  snprintf(blame, sizeof blame, "the %s driver cannot copy the buffer: %s", c->driver->name, c->driver->text(error));
  return MPI_ERR_OTHER;
}

int zdevice_end(zcopies *c) { return end(c, 1); }
int zdevice_queue(zcopies *c) { return end(c, 0); }

int zdevice_copy(const zdriver *driver, const void *device, void *to, const void *from, int64_t n) {
  zcopies c;
  zdevice_begin(&c, driver, device);
  zdevice_add(&c, to, from, n);
  return zdevice_end(&c);
}

int zdevice_cb_copy(void *to, const void *from, int64_t n, char *why, int64_t room) {
  Z_OUT_OF_ENGINE;
  const zdriver *there = zdevice_of(to, n), *here = zdevice_of(from, n);
  if (!there && !here) return memcpy(to, from, (size_t)n), Z_OK; /* an empty copy */
  if (!zdevice_copy(here ? here : there, here ? from : to, to, from, n)) return Z_OK;
  snprintf(why, (size_t)room, "%s", zdevice_blame(""));
  return Z_ERR_DEVICE;
}

const char *zdevice_blame(const char *otherwise) {
  static _Thread_local char text[sizeof blame];
  if (!*blame) return otherwise;
  memcpy(text, blame, sizeof text);
  *blame = 0;
  return text;
}
