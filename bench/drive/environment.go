package drive

import (
	"encoding/binary"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Clocks is a sentence for reports about the relation of times.
const Clocks = "not synchronized and no need to be: every interval is taken on one process by its own monotonic clock; collectives begin after a barrier that is not counted"

// Environment describes the machine, as far as readers need it to judge figures.
type Environment struct {
	Time     time.Time `json:"time"`
	Host     string    `json:"host"`
	CPU      string    `json:"cpu"`
	CPUs     int       `json:"cpus"`
	MemoryMB uint64    `json:"memory_mb"`
	Kernel   string    `json:"kernel"`
	Go       string    `json:"go"`
	// Version is the version of this program.
	Version string            `json:"version"`
	MPI     map[string]string `json:"mpi"`
	// Shaping is the rate limit of the lab's links, "none" outside the lab.
	Shaping string `json:"shaping"`
	// Load has the load averages at the start: above 0, others used the machine.
	Load string `json:"load"`
	// Awake tells that idle processors do not sleep, which the lab prevents where it can.
	Awake bool `json:"awake"`
}

// Describe returns the description of this machine.
func Describe(shaping string) Environment {
	e := Environment{Time: time.Now().UTC(), CPUs: runtime.NumCPU(), Go: runtime.Version(), MPI: map[string]string{},
		Shaping: shaping}
	e.Host, _ = os.Hostname()
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		e.Kernel = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
	}
	var si unix.Sysinfo_t
	if unix.Sysinfo(&si) == nil {
		e.MemoryMB = si.Totalram * uint64(si.Unit) >> 20
	}
	e.CPU = field("/proc/cpuinfo", "model name")
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		e.Load = strings.Join(strings.Fields(string(b))[:3], " ")
	}
	e.Awake = awake()
	if i, ok := debug.ReadBuildInfo(); ok {
		e.Version = i.Main.Version
	}
	for name, cmd := range map[string]string{"openmpi": "mpirun.openmpi", "mpich": "mpichversion"} {
		if out, err := exec.Command(cmd, "--version").Output(); err == nil {
			first, _, _ := strings.Cut(string(out), "\n")
			e.MPI[name] = strings.Join(strings.Fields(first), " ")
		}
	}
	return e
}

func field(file, name string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for l := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// awake tells whether Linux lets idle processors stay awake, from the time that waking one may take
// in microseconds (PM QoS).
func awake() bool {
	f, err := os.Open("/dev/cpu_dma_latency")
	if err != nil {
		return false
	}
	defer f.Close()
	var limit int32
	return binary.Read(f, binary.NativeEndian, &limit) == nil && limit == 0
}
