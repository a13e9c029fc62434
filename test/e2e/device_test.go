package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/optional"
)

// drivers are the file names of the drivers of devices, and their names in errors. The fake ones
// are built from test/programs/c/fakedriver.c.
var drivers = []struct{ file, name string }{
	{"libcuda.so.1", "CUDA"}, {"libamdhip64.so.6", "ROCm"}, {"libze_loader.so.1", "Level Zero"}}

// fakeDriver builds a fake driver and returns its path.
func fakeDriver(b *Bed, file string, flags ...string) string {
	b.T.Helper()
	path := filepath.Join(b.T.TempDir(), file)
	b.OK(b.Run(nil, nil, append([]string{"gcc", "-shared", "-fPIC", "-O1", "-Wl,-soname," + file, "-o", path,
		"test/programs/c/fakedriver.c"}, flags...)...))
	return path
}

// TestDeviceMemory uses memory of a device between clusters, by fake drivers: in place, in dynamic
// windows, and with copies that fail. Programs open the driver after MPI_Init.
func TestDeviceMemory(t *testing.T) {
	for _, d := range drivers {
		overSplits(t, d.name, byLength([]split{mixedPair}, []split{twoOne, mixed, mpichPair}), func(b *Bed, s split) {
			if d.name != "Level Zero" {
				optional.Processor(b.T, "process_vm_readv, by which memory of the host is known once a device has failed")
			}
			j, path, driver := Job{Clusters: s.clusters}, compileFor(b, s.clusters, "c/device.c"), fakeDriver(b, d.file)
			b.OK(b.Zipped(j, path, driver))
			if d.name == "Level Zero" { // hwloc loads a library of this name, without a device, for MPI libraries
				before := "DRIVER_BEFORE=" + fakeDriver(b, d.file, "-DNO_DEVICES")
				b.OK(b.Zipped(Job{Clusters: s.clusters, Env: []string{before}}, path, driver))
			}
			// the first piece of a long message, and one after the message has been announced
			for _, piece := range []string{"1", "4"} {
				r := b.Zipped(j, path, driver, piece)
				if want := "the " + d.name + " driver cannot copy the buffer"; r.Status == 0 ||
					!strings.Contains(r.Stderr, want) {
					b.T.Errorf("piece %s: want it to fail with %q: %v", piece, want, r)
				}
			}
		})
	}
}

// onDevice are the programs of TestPrograms that move data and can run with their buffers in the
// memory of a device.
var onDevice = []string{"p2p_modes", "p2p_wildcard", "p2p_probe", "p2p_complete", "p2p_cancel", "p2p_errors",
	"p2p_self_null",
	"datatypes", "requests", "persistent", "isendrecv", "coll_basic", "coll_ops", "coll_vector", "coll_nonblocking",
	"coll_overlap", "coll_shapes", "operator_type", "mpi4", "intercoll", "topology", "window", "rma_fence", "rma_lock",
	"rma_epochs", "rma_types"}

// runOnDevice runs a program with the buffers `at` in the memory of a device (on_device.h), and
// compares its output with the native run's, whose buffers are the host's.
func runOnDevice(b *Bed, p program, s split, driver, at string, env ...string) {
	b.T.Helper()
	flags := append(slices.Clone(p.flags), "-w", "-pthread", "-include",
		filepath.Join(b.Root, "test/programs/c/on_device.h"))
	j := Job{Clusters: s.clusters,
		Env: append(env, "ZIPPER_TEST_DEVICE="+driver, "ZIPPER_TEST_DEVICE_AT="+at)}
	b.matchesNative(j, append([]string{compileFor(b, s.clusters, p.file, flags...)}, p.args...)...)
}

// allowed returns those of the splits that the libraries of all clusters allow for a program, or
// that of two clusters with MPICH, which allows all programs.
func allowed(p program, splits []split) (list []split) {
	for _, s := range splits {
		if p.only == nil || slices.ContainsFunc(p.only, func(o split) bool { return o.name == s.name }) {
			list = append(list, s)
		}
	}
	if list == nil {
		list = []split{mpichPair}
	}
	return list
}

// TestProgramsOnDevice runs the programs that move data with their buffers in memory of a device at
// either end and at both. The short run has every second program, each with one of the three
// drivers and one of two splits.
func TestProgramsOnDevice(t *testing.T) {
	New(t)
	step := 2
	if long() {
		step = 1
	}
	for i := range len(onDevice) / step {
		name := onDevice[i*step]
		p := programs[slices.IndexFunc(programs, func(p program) bool { return p.title() == name })]
		for k, d := range drivers {
			if k != i%len(drivers) && !long() {
				continue
			}
			// clusters of several ranks have native stages, which must not get the device's memory
			splits := byLength([]split{[]split{mixedPair, mixed}[i%2]}, []split{mixedPair, mixed, mpichPair, oneOneOne})
			overSplits(t, name+" "+d.name, allowed(p, splits), func(b *Bed, s split) {
				driver := fakeDriver(b, d.file)
				runOnDevice(b, p, s, driver, "both")
				for _, at := range []string{"even", "odd", "send", "receive"} {
					if long() {
						runOnDevice(b, p, s, driver, at)
					}
				}
			})
		}
	}
}

// TestEndsOnDevice runs a few programs with memory of a device at one end of each message only, and
// with the mirrored memory by which programs use a real driver. In the short run each has two ends.
func TestEndsOnDevice(t *testing.T) {
	New(t)
	for i, name := range []string{"p2p_modes", "datatypes", "coll_basic", "rma_types"} {
		p := programs[slices.IndexFunc(programs, func(p program) bool { return p.title() == name })]
		overSplits(t, name, []split{mixedPair}, func(b *Bed, s split) {
			for k, at := range []string{"even", "send", "odd", "receive"} {
				if k%2 == i%2 || long() {
					runOnDevice(b, p, s, fakeDriver(b, drivers[i%len(drivers)].file), at)
				}
			}
			runOnDevice(b, p, s, fakeDriver(b, drivers[0].file), "both", "ZIPPER_TEST_DEVICE_MIRROR=1")
		})
	}
}

// TestRealDevice does what TestProgramsOnDevice does with a real device of NVIDIA and its driver
// (scripts/test device), and logs times and rates.
func TestRealDevice(t *testing.T) {
	New(t)
	if os.Getenv("ZIPPER_DEVICE") == "" {
		t.Skip("needs a device of NVIDIA: scripts/test device")
	}
	for _, name := range onDevice {
		p := programs[slices.IndexFunc(programs, func(p program) bool { return p.title() == name })]
		overSplits(t, name, allowed(p, byLength([]split{mixedPair}, []split{oneOne, mixedPair, mpichPair})),
			func(b *Bed, s split) {
				for _, at := range []string{"both", "even", "odd"} {
					runOnDevice(b, p, s, "libcuda.so.1", at)
				}
			})
	}
	overSplits(t, "rates", []split{oneOne}, func(b *Bed, s split) {
		path := b.Compile(OpenMPI, "bench/local/device.c")
		b.T.Log(b.OK(b.Zipped(Job{Clusters: s.clusters}, path)).Stdout)
	})
}
