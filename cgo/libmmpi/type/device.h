/* Memory of devices, which neither the engine nor the kernel's sockets can read. */
#ifndef ZIPPER_DEVICE_H
#define ZIPPER_DEVICE_H
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Whether n bytes at p are in the memory of a device and the host cannot read them. The device's
 * own driver is asked, if this process has loaded one. zdevice_blame then has the reason. */
int zdevice_has(const void *p, int64_t n);

/* What this thread's last zdevice_has has found, in words for the user, once; else `otherwise`. */
const char *zdevice_blame(const char *otherwise);

#pragma GCC visibility pop
#endif
