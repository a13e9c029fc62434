package contend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/leidenzipper/zipper/contention/calibrate"
	"github.com/leidenzipper/zipper/contention/predict"
)

// Scarce is a run in which one resource had been made scarce.
type Scarce struct {
	Seed  uint64 `json:"seed"`
	Kind  string `json:"kind"` // nic, port or forwarder
	Made  string `json:"made"` // cluster a's adapters: "nic a"; zipper's: "port z1.a", "forwarder z1"
	Named string `json:"named"`
	Right bool   `json:"right"`
	Error string `json:"error,omitempty"` // the calibration failed
}

// Scarcity makes one resource scarce in each run (its kind in turn, which one by the run's seed),
// calibrates anew and lets the model name the bottleneck of a random pattern through that resource:
// the name is right if it is of the scarce resource alone. rate is that of all other links.
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
	var mine func(resource string) bool
	var nodes []string
	switch kind {
	case 0:
		s.Kind, s.Made, nodes = "nic", "nic "+c.Name, c.Hosts
		mine = func(r string) bool {
			host, _, _ := strings.Cut(r, ".")
			for _, h := range c.Hosts {
				if h == host {
					return true
				}
			}
			return false
		}
	case 1:
		s.Kind, s.Made, nodes = "port", "port "+zipper+"."+c.Name, []string{zipper + "." + strings.ToUpper(c.Name)}
		mine = func(r string) bool { return strings.HasPrefix(r, zipper+"."+c.Name+".") }
	default:
		s.Kind, s.Made = "forwarder", "forwarder "+zipper
		mine = func(r string) bool { return strings.HasPrefix(r, zipper+".cpu") || strings.HasPrefix(r, zipper+".fwd") }
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
	p, err := calibrate.Write(io.Discard, samples)
	if err != nil {
		s.Error = err.Error()
		return nil
	}
	x := Random(&l.Site, Cross, 2, s.Seed, bytes)
	r, err := predict.Run(p, x.model(), predict.Options{Sharing: "max-min", Gains: true})
	if err != nil {
		return err
	}
	s.Named, s.Right = r.Bottleneck, r.Bottleneck != ""
	for _, name := range strings.Split(r.Bottleneck, " with ") {
		s.Right = s.Right && mine(name)
	}
	return nil
}

// fraction of a rate such as 50mbit.
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

// quota limits a process's processor time by a control group of its own; free lifts the limit.
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
