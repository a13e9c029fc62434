package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestDeviceMemory checks that sends and receives fail if the driver of a device, a fake one,
// reports that the host cannot access the buffer. Programs open the driver after MPI_Init.
func TestDeviceMemory(t *testing.T) {
	for file, name := range map[string]string{"libcuda.so.1": "CUDA", "libamdhip64.so.6": "ROCm",
		"libze_loader.so.1": "Level Zero"} {
		overSplits(t, name, byLength([]split{mixedPair}, []split{twoOne, mixedPair, mpichPair}), func(b *Bed, s split) {
			driver := filepath.Join(b.T.TempDir(), file)
			b.OK(b.Run(nil, nil, "gcc", "-shared", "-fPIC", "-Wl,-soname,"+file, "-o", driver,
				"test/programs/c/fakedriver.c"))
			// a library of the same name, as hwloc loads one for MPI libraries
			none := filepath.Join(b.T.TempDir(), file)
			b.OK(b.Run(nil, nil, "gcc", "-shared", "-fPIC", "-DNO_DEVICES", "-Wl,-soname,"+file, "-o", none,
				"test/programs/c/fakedriver.c"))
			j, path := Job{Clusters: s.clusters}, compileFor(b, s.clusters, "c/device.c")
			b.OK(b.Zipped(j, path, driver))
			if name == "Level Zero" {
				b.OK(b.Zipped(Job{Clusters: s.clusters, Env: []string{"DRIVER_BEFORE=" + none}}, path, driver))
			}
			r := b.Zipped(j, path, driver, "fatal")
			if want := "the buffer is memory of a " + name + " device"; r.Status == 0 ||
				!strings.Contains(r.Stderr, want) {
				b.T.Errorf("want it to fail with %q: %v", want, r)
			}
		})
	}
}
