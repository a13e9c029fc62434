/* Memory of devices, which neither the engine nor the kernel's sockets can read. */
#ifndef ZIPPER_DEVICE_H
#define ZIPPER_DEVICE_H
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Whether n bytes at p are in the memory of a device that the host cannot read, as the device's own
 * driver says, if this process has loaded one. Then zdevice_blame says so. */
int zdevice_has(const void *p, int64_t n);

/* What this thread's last zdevice_has found, for the user, once; else what is given. */
const char *zdevice_blame(const char *otherwise);

#pragma GCC visibility pop
#endif
