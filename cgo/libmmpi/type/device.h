/* Memory of devices, which neither the engine nor the kernel's sockets can read. */
#ifndef ZIPPER_DEVICE_H
#define ZIPPER_DEVICE_H
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Whether n bytes at p are memory of a device that the host cannot read. The function asks the
 * device's own driver, if this process has loaded one. zdevice_blame then returns the reason. */
int zdevice_has(const void *p, int64_t n);

/* Returns the reason that this thread's last zdevice_has has found, as a text for the user, and
 * clears it. Returns `otherwise` if there is none. */
const char *zdevice_blame(const char *otherwise);

#pragma GCC visibility pop
#endif
