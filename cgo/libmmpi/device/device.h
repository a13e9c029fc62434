/* Memory of devices such as GPUs, which neither the engine nor the kernel's sockets can read. The
 * device's own driver recognizes the memory and copies it, if the process has loaded one; the
 * library never loads a driver. */
#ifndef ZIPPER_DEVICE_H
#define ZIPPER_DEVICE_H
#include "abi.h"
#include "device/driver.h"
#include <stddef.h>

#pragma GCC visibility push(hidden)

/* Returns the driver of the device in whose memory a buffer of n bytes at p begins, if the host
 * cannot read that memory. Returns NULL for all other memory, and if p is NULL or n is 0. */
const zdriver *zdevice_of(const void *p, int64_t n);

/* Copies between memory of one device and memory of the host, from zdevice_begin to zdevice_end in
 * one thread. */
typedef struct zcopies {
  const zdriver *driver;
  /* the device's context and queue, which the driver has entered */
  zplace place;
  /* the copy that zdevice_add has not queued yet, because the next piece may continue it; its width
   * is 0 if there is none */
  zrows rows;
  /* the driver's first error, or 0 */
  int error;
} zcopies;

/* Begins copies from or to the memory of a device, in which the address `device` lies. */
void zdevice_begin(zcopies *c, const zdriver *driver, const void *device);
/* Adds a copy of n bytes. The driver makes it at any time until zdevice_end. */
void zdevice_add(zcopies *c, void *to, const void *from, int64_t n);
/* Waits until the copies have been made. Returns MPI_SUCCESS, or MPI_ERR_OTHER after a failure,
 * whose reason zdevice_blame returns. */
int zdevice_end(zcopies *c);

/* Queues the copies, which the driver makes at any time until zdevice_end is called for later
 * copies from or to the same device, and ends them as zdevice_end does, but without waiting. */
int zdevice_queue(zcopies *c);

/* Copies n bytes from or to the memory of a device, in which the address `device` lies, as
 * zdevice_begin, zdevice_add and zdevice_end do. */
int zdevice_copy(const zdriver *driver, const void *device, void *to, const void *from, int64_t n);

/* Allocates `bytes` bytes of the host's memory for data of the device in whose memory the address
 * `device` lies, pinned if possible. Returns NULL if memory is exhausted. */
void *zstage_new(const zdriver *driver, const void *device, int64_t bytes);
/* Frees memory that zstage_new has allocated. Pinned memory is kept for later use. */
void zstage_free(void *data);

/* A long send from a device, whose data a thread copies piece by piece (device/feed.c). */
typedef struct zfeed zfeed;
/* Prepares such a send of `bytes` bytes at `from` in memory of a device, which are to be copied to
 * memory of the host at `to`. Returns NULL if memory is exhausted. */
zfeed *zfeed_new(const zdriver *driver, const void *from, void *to, int64_t bytes);
/* Lets the thread copy the last cell->missing bytes, after the engine has begun the send on a
 * communicator. The cell and the memory must stay in place until zfeed_end. */
void zfeed_start(zfeed *f, int32_t comm, z_cell *cell);
/* Waits until the thread does not copy data of f, and frees f. */
void zfeed_end(zfeed *f);

/* Copies n bytes between memory of a device and that of the host or of a device, for z_native;
 * abi.h describes it. */
int zdevice_cb_copy(void *to, const void *from, int64_t n, char *why, int64_t room);

/* Returns the reason for which this thread's last copy has failed, as a text for the user, and
 * clears the reason. Returns `otherwise` if there is no reason. */
const char *zdevice_blame(const char *otherwise);

#pragma GCC visibility pop
#endif
