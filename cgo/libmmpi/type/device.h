/* Memory of devices, which neither the engine nor the kernel's sockets can read. */
#ifndef ZIPPER_DEVICE_H
#define ZIPPER_DEVICE_H
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Returns whether the buffer of n bytes at p begins in memory of a device, such as a GPU, that the
 * host cannot read; 0 if n is 0. The device's own driver is asked, if this process has loaded one.
 * After a result of 1 zdevice_blame returns the reason. */
int zdevice_has(const void *p, int64_t n);

/* Returns the reason for which this thread's last call of zdevice_has returned 1, as a text for the
 * user, and clears the reason. Returns `otherwise` if there is no reason. */
const char *zdevice_blame(const char *otherwise);

#pragma GCC visibility pop
#endif
