package play

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/leidenzipper/zipper/simulation/kernel"
)

// Fault is a fault that is injected while messages are sent.
type Fault struct {
	Kind string        // one of Kinds
	At   time.Duration // start, counted from the time at which the first message may begin
	For  time.Duration // duration of the fault
	Who  string        // host or zipper that is hit; drawn if empty
}

// Kinds returns a description of each kind of fault, by its name.
func Kinds() map[string]string {
	return map[string]string{
		"cut":     "a connection to a forwarder breaks",
		"stall":   "bytes that one end of a connection writes are delayed for a while",
		"pause":   "a process is stopped for a while",
		"restart": "a forwarder is killed, and restarted after a while",
		"kill":    "a rank is killed, which ends the job",
	}
}

// ParseFault parses KIND@TIME[/DURATION][=TARGET], such as "cut@1.5s" or "restart@2s/300ms=z1". The
// error quotes s and says which form is expected.
func ParseFault(s string) (f Fault, err error) {
	rest := s
	rest, f.Who, _ = strings.Cut(rest, "=")
	kind, when, ok := strings.Cut(rest, "@")
	if _, known := Kinds()[kind]; !known || !ok {
		return f, fmt.Errorf("fault %q: want KIND@TIME[/DURATION][=TARGET], with cut, stall, pause, restart or kill", s)
	}
	at, long, lasts := strings.Cut(when, "/")
	f.Kind, f.For = kind, lasting
	if f.At, err = time.ParseDuration(at); err == nil && lasts {
		f.For, err = time.ParseDuration(long)
	}
	if err != nil || f.At < 0 || f.For < 0 {
		return f, fmt.Errorf("fault %q: want times like 1.5s and 300ms", s)
	}
	return f, nil
}

// lasting is the default duration of a fault, 100 ms.
const lasting = 100 * time.Millisecond

// injectLater schedules the planned faults of the run, and the random faults if the options ask for
// them.
func (r *run) injectLater() {
	draw := rand.New(rand.NewPCG(r.Seed, 0xfa17))
	for _, f := range r.Faults {
		r.k.After(f.At, func() { r.inject(f, draw) })
	}
	if r.Rate <= 0 {
		return
	}
	var next func()
	next = func() {
		r.k.After(time.Duration(draw.ExpFloat64()/r.Rate*float64(time.Second)), func() {
			kinds := []string{"cut", "stall", "pause", "restart"}
			r.inject(Fault{Kind: kinds[draw.IntN(len(kinds))], At: r.k.Now() - r.begin,
				For: time.Duration(draw.Int64N(int64(2 * lasting)))}, draw)
			next()
		})
	}
	next()
}

// inject carries out fault f now, and draws its victim with draw if f does not name it. It does
// nothing if no victim is left.
func (r *run) inject(f Fault, draw *rand.Rand) {
	text := fmt.Sprintf("%s at %v", f.Kind, f.At.Round(time.Microsecond))
	done := func(who string) {
		if f.Kind != "cut" && f.Kind != "kill" {
			text += fmt.Sprintf(" for %v", f.For.Round(time.Microsecond))
		}
		r.done = append(r.done, text+": "+who)
		if r.world.Say != nil {
			r.world.Say("fault: %s: %s", text, who)
		}
	}
	switch f.Kind {
	case "cut", "stall":
		r.ends = slices.DeleteFunc(r.ends, func(e *kernel.End) bool { return !e.Open() })
		list := slices.Clone(r.ends)
		if f.Who != "" {
			list = slices.DeleteFunc(list, func(e *kernel.End) bool {
				zipper, _ := r.address(e.Remote())
				return zipper != f.Who && e.Owner().Host().Name != f.Who
			})
		}
		if len(list) == 0 {
			return
		}
		e := list[draw.IntN(len(list))]
		if f.Kind == "cut" {
			e.Cut(0, e.Delay())
		} else {
			e.Stall(f.For)
		}
		done(e.Owner().Host().Name + " to " + e.Remote())
	case "restart":
		for i, n := 0, draw.IntN(max(1, len(r.forwarders))); i < len(r.forwarders); i++ {
			z := r.forwarders[(i+n)%len(r.forwarders)]
			if f.Who == "" || f.Who == z.Addr {
				z.Kill()
				r.k.After(f.For, z.Start)
				done(z.Addr)
				return
			}
		}
	default:
		for i, n := 0, draw.IntN(len(r.procs)); i < len(r.procs); i++ {
			p := r.procs[(i+n)%len(r.procs)]
			if f.Who != "" && f.Who != p.host {
				continue
			}
			if f.Kind == "kill" {
				p.p.Kill()
			} else {
				p.p.Stop()
				r.k.After(f.For, p.p.Continue)
			}
			done(p.host)
			return
		}
	}
}
