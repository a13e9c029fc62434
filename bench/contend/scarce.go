package contend

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/leidenzipper/zipper/contention/calibrate"
	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/contention/predict"
	"github.com/leidenzipper/zipper/simulation/play"
)

// Scarce is a run in which one resource was made scarce.
type Scarce struct {
	Seed uint64 `json:"seed"`
	// Kind is nic, port or forwarder.
	Kind string `json:"kind"`
	// Made is the scarce resource: "nic a" for the adapters of cluster a, "port z1.a" or "forwarder
	// z1" for those of a zipper.
	Made  string `json:"made"`
	Named string `json:"named"`
	Right bool   `json:"right"`
	// Simulated is the bottleneck that simulation names.
	Simulated      string `json:"simulated"`
	SimulatedRight bool   `json:"simulated_right"`
	// Bytes is the size of a message.
	Bytes int `json:"bytes"`
	// Calibrated is the platform file.
	Calibrated string `json:"calibrated,omitempty"`
	// Error is set if the calibration failed.
	Error string `json:"error,omitempty"`
}

// Scarcity makes one resource scarce in each run and calibrates again. The kinds of resources
// alternate, and the run's seed chooses the resource of the kind. The model then names the
// bottleneck of a random pattern through that resource, and is right if it names the scarce
// resource alone. rate is that of all other links.
func (l *Lab) Scarcity(ctx context.Context, runs, bytes int, rate string,
	each func(Scarce)) (list []Scarce, err error) {
	slow, err := fraction(rate, 5)
	if err != nil {
		return nil, err
	}
	for i := range runs {
		if err := context.Cause(ctx); err != nil {
			return list, err
		}
		s := Scarce{Seed: uint64(9000 + i)}
		rng := rand.New(rand.NewPCG(s.Seed, 0))
		if err := l.scarce(ctx, &s, i%3, rng, bytes, rate, slow); err != nil {
			return list, fmt.Errorf("seed %d: %w", s.Seed, err)
		}
		list = append(list, s)
		if each != nil {
			each(s)
		}
	}
	return list, nil
}

func (l *Lab) scarce(ctx context.Context, s *Scarce, kind int, rng *rand.Rand, bytes int, rate,
	slow string) (err error) {
	c, z := l.Clusters[rng.IntN(2)], rng.IntN(len(l.Zippers))
	zipper := l.Zippers[z].Name
	s.Bytes = bytes
	var nodes []string
	switch kind {
	case 0:
		s.Kind, s.Made, nodes = "nic", "nic "+c.Name, c.Hosts
	case 1:
		s.Kind, s.Made, nodes = "port", "port "+zipper+"."+c.Name, []string{zipper + "." + strings.ToUpper(c.Name)}
	default:
		s.Kind, s.Made = "forwarder", "forwarder "+zipper
		free, err := quota(l.lab.Forwarders()[z])
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, free()) }()
	}
	if nodes != nil {
		if err := l.lab.Shape(ctx, slow, nodes...); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, l.lab.Shape(context.WithoutCancel(ctx), rate, nodes...)) }()
	}
	samples, err := Calibrate(ctx, &l.Site, Options{Bytes: bytes, Most: 2, Within: 0.02, Quick: true})
	if err != nil {
		return err
	}
	var file strings.Builder
	if _, err := calibrate.Write(&file, samples); err != nil {
		s.Error = err.Error()
		return nil
	}
	s.Calibrated = file.String()
	return s.Name()
}

// Name sets the bottlenecks that the model and simulation name for a random pattern on the platform
// as it was calibrated.
func (s *Scarce) Name() error {
	if s.Calibrated == "" {
		return nil
	}
	p, err := platform.Read(strings.NewReader(s.Calibrated))
	if err != nil {
		return err
	}
	site := siteOf(p)
	x := Random(site, Cross, 2, s.Seed, s.Bytes)
	r, err := predict.Run(p, x.model(), predict.Options{Sharing: "max-min", Gains: true})
	if err != nil {
		return err
	}
	s.Named, s.Right = r.Bottleneck, s.is(site, r.Bottleneck)
	y, err := play.Run(p, x.model(), play.Options{})
	if err != nil {
		return err
	}
	s.Simulated, s.SimulatedRight = y.Report.Bottleneck, s.is(site, y.Report.Bottleneck)
	return nil
}

// siteOf returns a platform's hosts and zippers, without a session.
func siteOf(p *platform.Platform) *Site {
	s := &Site{Name: p.Name}
	for _, c := range p.Clusters {
		s.Clusters = append(s.Clusters, Cluster{c.Name, c.Hosts.Names, c.Cores})
	}
	for _, z := range p.Zippers {
		s.Zippers = append(s.Zippers, Zipper{z.Name, z.Cores})
	}
	return s
}

// is tells whether resources, joined by "with", are those that had been made scarce.
func (s *Scarce) is(site *Site, named string) bool {
	_, made, _ := strings.Cut(s.Made, " ")
	for name := range strings.SplitSeq(named, " with ") {
		switch node, way, _ := strings.Cut(name, "."); {
		case s.Kind == "port" && strings.HasPrefix(name, made+"."):
		case s.Kind == "forwarder" && (strings.HasPrefix(name, made+".cpu") || strings.HasPrefix(name, made+".fwd")):
		case s.Kind == "nic" && (way == "in" || way == "out") && slices.ContainsFunc(site.Clusters,
			func(c Cluster) bool { return c.Name == made && slices.Contains(c.Hosts, node) }):
		default:
			return false
		}
	}
	return true
}

// fraction returns a rate such as 50mbit divided by a number.
func fraction(rate string, by float64) (string, error) {
	at := strings.IndexFunc(rate, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if at < 1 {
		return "", fmt.Errorf("rate %q: want a number with a unit, as in 50mbit", rate)
	}
	v, err := strconv.ParseFloat(rate[:at], 64)
	if err != nil {
		return "", fmt.Errorf("rate %q: %w", rate, err)
	}
	return strconv.FormatFloat(v/by, 'f', -1, 64) + rate[at:], nil
}

// quota limits a process's processor time by a control group of its own; free removes the limit.
func quota(pid int) (free func() error, err error) {
	v1, v2 := "/sys/fs/cgroup/cpu", "/sys/fs/cgroup"
	root, limits := v2, map[string]string{"cpu.max": fmt.Sprintf("%d %d", quotaTime, quotaPeriod)}
	if _, err := os.Stat(v1); err == nil {
		root, limits = v1, map[string]string{"cpu.cfs_period_us": strconv.Itoa(quotaPeriod),
			"cpu.cfs_quota_us": strconv.Itoa(quotaTime)}
	}
	dir := filepath.Join(root, fmt.Sprintf("zipper-%d", pid))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, fmt.Errorf("a control group for the forwarder: %w", err)
	}
	free = func() error {
		err := os.WriteFile(filepath.Join(root, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
		return errors.Join(err, os.Remove(dir))
	}
	for name, value := range limits {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(value), 0); err != nil {
			return nil, errors.Join(fmt.Errorf("a control group for the forwarder: %w", err), os.Remove(dir))
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	return free, nil
}
