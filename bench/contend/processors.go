package contend

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

// Processors shows the use of a machine's processor time during a measurement, each value as a part
// of the whole, 0 to 1.
type Processors struct {
	// CPU is the used part.
	CPU float64 `json:"cpu"`
	// OurCPU is the part used by agents and forwarders.
	OurCPU float64 `json:"our_cpu"`
	// Stolen is the part that processors wanted while the hypervisor gave none; it is 0 on real
	// hardware.
	Stolen float64 `json:"stolen"`
}

func (p Processors) String() string {
	return fmt.Sprintf("cpu %3.0f %% (ours %3.0f %%, stolen %2.0f %%)", 100*p.CPU, 100*p.OurCPU, 100*p.Stolen)
}

// TooBusy returns the patterns and traces during which the processors were more than Busy.
func TooBusy(patterns []Outcome, traces []Replayed) (names []string) {
	look := func(name string, p Processors) {
		if p.CPU+p.Stolen > Busy {
			names = append(names, fmt.Sprintf("%s (%.0f %% used, %.0f %% stolen)", name, 100*p.CPU, 100*p.Stolen))
		}
	}
	for _, o := range patterns {
		look(o.Pattern, o.Processors)
	}
	for _, x := range traces {
		look(x.Trace, x.Processors)
	}
	return names
}

// MeanProcessors returns the mean over patterns.
func MeanProcessors(patterns []Outcome) (p Processors) {
	n := float64(max(1, len(patterns)))
	for _, o := range patterns {
		p.CPU += o.CPU / n
		p.OurCPU += o.OurCPU / n
		p.Stolen += o.Stolen / n
	}
	return p
}

// usage has processor times since the machine's start, in seconds.
type usage struct {
	at time.Time
	// used, stolen and rest are times of the whole machine.
	used, stolen, rest float64
	// ours is the time of forwarders, and of agents as far as they have reported it.
	ours float64
}

// since returns the use of the time from a to u.
func (u usage) since(a usage) (p Processors) {
	used, stolen := u.used-a.used, u.stolen-a.stolen
	total := used + stolen + u.rest - a.rest
	if total <= 0 {
		return p
	}
	took := u.at.Sub(a.at).Seconds()
	cpus := math.Max(1, math.Round(total/took))
	return Processors{CPU: used / total, Stolen: stolen / total, OurCPU: (u.ours - a.ours) / took / cpus}
}

const userHz = 100.0 // ticks a second in /proc

// machine returns the use of the machine's processor time so far.
func machine() (u usage, err error) {
	u.at = time.Now()
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return u, err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return u, u.machine(line)
}

func (l *Lab) usage() (u usage, err error) {
	if u, err = machine(); err != nil {
		return u, err
	}
	u.ours = l.Session.CPU()
	for _, pid := range l.lab.Forwarders() {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return u, err
		}
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		for _, i := range []int{11, 12} { // utime, stime
			v, err := strconv.ParseFloat(f[i], 64)
			if err != nil {
				return u, err
			}
			u.ours += v / userHz
		}
	}
	return u, nil
}

// machine reads the first line of /proc/stat: user nice system idle iowait irq softirq steal guest
// guest_nice (proc_stat(5)).
func (u *usage) machine(line string) error {
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return fmt.Errorf("/proc/stat begins with %q, want cpu and 8 numbers or more", line)
	}
	for i, s := range f[1:9] { // guest time is in user time already
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return fmt.Errorf("/proc/stat: %w", err)
		}
		switch i {
		case 3, 4:
			u.rest += v / userHz
		case 7:
			u.stolen += v / userHz
		default:
			u.used += v / userHz
		}
	}
	return nil
}

// load returns the machine's load averages.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(string(b))[:3], " ")
}
