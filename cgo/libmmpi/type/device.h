/* Memory of devices, which neither the engine nor the kernel's sockets can read. */
#ifndef ZIPPER_DEVICE_H
#define ZIPPER_DEVICE_H
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Returns whether the n bytes at p are memory of a device, such as a GPU, that the host cannot
 * read. The device's own driver, if this process has loaded one, knows whether they are. If they
 * are, zdevice_blame returns the reason. */
int zdevice_has(const void *p, int64_t n);

/* Returns the reason for which this thread's last call of zdevice_has returned 1, as a text for the
 * user, and clears the reason. Returns `otherwise` if there is no reason. */
const char *zdevice_blame(const char *otherwise);

#pragma GCC visibility pop
#endif
