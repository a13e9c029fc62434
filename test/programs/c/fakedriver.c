/* A fake device driver: it gives the answers of the real one about addresses in a piece of memory
 * that the host cannot access. Built as libcuda.so.1, libamdhip64.so.6 and libze_loader.so.1
 * (test/e2e). */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 1 << 20, BEGINNING_US = 50000 /* real drivers take longer to find their devices */ };
static char *device;

/* Returns memory of the device. No real driver has this function. */
void *fake_device_memory(void) {
  if (!device) usleep(BEGINNING_US), device = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return device;
}

static int known(const void *p) {
  return device && (uintptr_t)p >= (uintptr_t)device && (uintptr_t)p < (uintptr_t)device + BYTES;
}

static int attribute(void *out, int what, const void *p) {
  enum { UNKNOWN = 1, MEMORY_TYPE = 2, IS_MANAGED = 8, DEVICE = 2 };
  if (!known(p)) return UNKNOWN;
  if (what == MEMORY_TYPE) *(unsigned *)out = DEVICE;
  else if (what == IS_MANAGED) *(unsigned *)out = 0;
  else return UNKNOWN;
  return 0;
}

int cuPointerGetAttribute(void *out, int what, uintptr_t p) { return attribute(out, what, (void *)p); }
int hipPointerGetAttribute(void *out, int what, void *p) { return attribute(out, what, p); }
int hipRuntimeGetVersion(int *version) { return *version = 60200000, 0; }

#ifdef NO_DEVICES /* the answers of a system without devices */
int zeDriverGet(uint32_t *n, void **driver) { return *n = 0, (void)driver, 0x78000001; }
#else
int zeDriverGet(uint32_t *n, void **driver) { return *n = 1, *driver = &device, 0; }
#endif
int zeContextCreate(void *driver, const void *of, void **context) { return (void)of, *context = driver, 0; }
int zeMemGetAllocProperties(void *context, const void *p, void *out, void **of) {
  struct {
    uint32_t kind;
    void *next;
    uint32_t type;
  } *is = out;
  (void)of;
  if (context != &device || is->kind != 0x17) return 1;
  is->type = known(p) ? 2 : 0;
  return 0;
}
