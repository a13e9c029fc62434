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

// Clocks states how times relate to each other, for reports.
const Clocks = "not synchronized and no need to be: every interval is taken on one process by its own monotonic clock; collectives begin after a barrier that is not counted"

// Environment is what a reader must know to judge figures.
type Environment struct {
	Time     time.Time         `json:"time"`
	Host     string            `json:"host"`
	CPU      string            `json:"cpu"`
	CPUs     int               `json:"cpus"`
	MemoryMB uint64            `json:"memory_mb"`
	Kernel   string            `json:"kernel"`
	Go       string            `json:"go"`
	Version  string            `json:"version"` // of this program
	MPI      map[string]string `json:"mpi"`
	Shaping  string            `json:"shaping"` // rate limit of the lab's links, "none" outside the lab
	Load     string            `json:"load"`    // load averages at the start: not 0 means that others used the machine
	Awake    bool              `json:"awake"`   // idle processors do not sleep (the lab sees to it where it can)
}

// Describe looks at this machine.
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

// awake asks Linux how long waking a processor may take, in microseconds (PM QoS).
func awake() bool {
	f, err := os.Open("/dev/cpu_dma_latency")
	if err != nil {
		return false
	}
	defer f.Close()
	var limit int32
	return binary.Read(f, binary.NativeEndian, &limit) == nil && limit == 0
}
