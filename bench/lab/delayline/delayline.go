// Package delayline is a long link for the lab: it delays and drops packets between two sites. In
// each direction a packet meets, in this order: a cut, a limit on its size, random loss, a queue of
// bounded length (drop tail) before a line of a rate, and the delay. Packets leave in order.
//
// Everything here is pure: frames and times come from the caller. The program that carries frames
// between two TAP devices is bench/lab/zipper-delayline; scripts/lab up --delay starts it.
//
// A TCP sender may pass on many packets as one frame (segmentation offload), which costs a fraction
// of the time for single packets. The packets are still counted, lost and delayed one by one: a
// frame whose packets do not all pass, or do not all leave within Span, is sent on in pieces.
package delayline

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Options describe a line, the same in both directions.
type Options struct {
	// Delay is the time from one end to the other.
	Delay time.Duration
	// Rate is in bit/s; 0: no limit.
	Rate int64
	// Queue is the number of bytes that may wait for the line; 0: as many as the line carries in a
	// round trip, at least 1 MB.
	Queue int
	// Loss is the probability that a packet is lost.
	Loss float64
	// BlackHole is the largest size of IP packets that pass, in bytes; 0: no limit.
	BlackHole int
	// MTU is the largest IP packet in bytes.
	MTU int
	// Seed decides which packets are lost.
	Seed uint64
}

// Defaults returns the options of a link of 1 Gbit/s, 10 ms long, without losses.
func Defaults() Options {
	return Options{Delay: 10 * time.Millisecond, Rate: 1e9, MTU: 1500, Seed: 1}
}

// Bounds of the options.
const (
	maxDelay  = 10 * time.Second
	minRate   = 1000
	maxRate   = 100_000_000_000
	minMTU    = 576
	maxMTU    = 65500
	maxMemory = 4 << 30 // bytes, in each direction
)

// Check returns an error if the options are invalid.
func (o Options) Check() error {
	switch {
	case o.Delay < 0 || o.Delay > maxDelay:
		return fmt.Errorf("delay %v: want 0 to %v", o.Delay, maxDelay)
	case o.Rate != 0 && (o.Rate < minRate || o.Rate > maxRate):
		return fmt.Errorf("rate %d bit/s: want 1kbit to 100gbit, or off", o.Rate)
	case o.Loss < 0 || o.Loss > 1 || math.IsNaN(o.Loss):
		return fmt.Errorf("loss %g: want 0 to 1, or 0%% to 100%%", o.Loss)
	case o.MTU < minMTU || o.MTU > maxMTU:
		return fmt.Errorf("mtu %d: want %d to %d bytes", o.MTU, minMTU, maxMTU)
	case o.Queue < 0:
		return fmt.Errorf("queue %d: want a number of bytes", o.Queue)
	case o.Queue > 0 && o.Rate == 0:
		return errors.New("a queue requires a rate: give a rate, too")
	case o.Queue > 0 && o.Queue < o.MTU+overhead:
		return fmt.Errorf("queue %d: not one packet of %d bytes fits", o.Queue, o.MTU+overhead)
	case o.BlackHole < 0:
		return fmt.Errorf("blackhole %d: want a number of bytes", o.BlackHole)
	case o.BlackHole >= o.MTU:
		return fmt.Errorf("blackhole %d: no packet is larger with an mtu of %d", o.BlackHole, o.MTU)
	case o.memory() > maxMemory:
		return fmt.Errorf("%v at %d bit/s with a queue of %d bytes: that takes %d MB, %d at most",
			o.Delay, o.Rate, o.queue(), int(o.memory()/1e6), maxMemory/1_000_000)
	}
	return nil
}

// queue returns the length of the queue in bytes.
func (o Options) queue() int {
	if o.Queue > 0 {
		return o.Queue
	}
	return max(1_000_000, int(float64(o.Rate)/8*2*o.Delay.Seconds()))
}

// memory returns the number of bytes that may be in flight, with twice as much room for short
// packets. Unused pages cost nothing, so there is enough for other options later.
func (o Options) memory() float64 {
	return max(256<<20, 2*(float64(o.Rate)/8*o.Delay.Seconds()+float64(o.queue())))
}

// String describes the line in words.
func (o Options) String() string {
	s := fmt.Sprintf("%v one way, ", o.Delay)
	if o.Rate > 0 {
		s += fmt.Sprintf("%g Mbit/s, queue %g MB", float64(o.Rate)/1e6, float64(o.queue())/1e6)
	} else {
		s += "no rate"
	}
	s += fmt.Sprintf(", loss %g %%, mtu %d", o.Loss*100, o.MTU)
	if o.BlackHole > 0 {
		s += fmt.Sprintf(", larger than %d bytes vanish", o.BlackHole)
	}
	return s
}

// Set changes one option by its name on the command line.
func (o *Options) Set(name, value string) (err error) {
	switch name {
	case "delay":
		o.Delay, err = time.ParseDuration(value)
	case "rate":
		o.Rate, err = ParseRate(value)
	case "queue":
		o.Queue, err = ParseBytes(value)
	case "loss":
		o.Loss, err = ParseShare(value)
	case "blackhole":
		o.BlackHole, err = ParseBytes(value)
	case "mtu":
		o.MTU, err = ParseBytes(value)
	case "seed":
		o.Seed, err = strconv.ParseUint(value, 10, 64)
	default:
		return fmt.Errorf("there is no option %s", name)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %s", name, value, form(name))
	}
	return nil
}

// Args returns the options in the form of the command line.
func (o Options) Args() []string {
	rate := "off"
	if o.Rate > 0 {
		rate = fmt.Sprintf("%dbit", o.Rate)
	}
	args := []string{"--delay", o.Delay.String(), "--rate", rate, "--loss", fmt.Sprint(o.Loss), "--mtu",
		strconv.Itoa(o.MTU),
		"--blackhole", strconv.Itoa(o.BlackHole), "--seed", strconv.FormatUint(o.Seed, 10)}
	if o.Queue > 0 {
		args = append(args, "--queue", strconv.Itoa(o.Queue))
	}
	return args
}

// Names returns the options that Set knows.
func Names() []string {
	return []string{"delay", "rate", "queue", "loss", "blackhole", "mtu", "seed"}
}

// form describes the form of an option's value.
func form(name string) string {
	switch name {
	case "delay":
		return "want a time such as 20ms"
	case "rate":
		return "want a rate such as 100mbit or 1gbit, or off"
	case "loss":
		return "want a share such as 0.01% or 0.0001"
	case "seed":
		return "want a whole number"
	}
	return "want bytes such as 1400, 500kB or 2MB"
}

// ParseRate reads a rate in tc's form: 1gbit, 100mbit, 64kbit; "off" is 0.
func ParseRate(s string) (int64, error) {
	if s == "off" || s == "0" {
		return 0, nil
	}
	v, err := quantity(s, "bit", "kbit", "mbit", "gbit")
	return int64(v), err
}

// ParseBytes reads 1500, 500kB, 2MB or 1GB (powers of 1000).
func ParseBytes(s string) (int, error) {
	v, err := quantity(s, "b", "kb", "mb", "gb")
	if v != math.Trunc(v) {
		return 0, errors.New("not whole bytes")
	}
	return int(v), err
}

// ParseShare reads 0.01% or 0.0001.
func ParseShare(s string) (float64, error) {
	number, percent := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	return v, err
}

// quantity reads a number with one of the units, each 1000 times the one before it. A number
// without a unit is in the first.
func quantity(s string, units ...string) (float64, error) {
	lower, factor := strings.ToLower(s), 1.0
	for i := len(units) - 1; i >= 0; i-- {
		if number, ok := strings.CutSuffix(lower, units[i]); ok {
			lower, factor = number, math.Pow(1000, float64(i))
			break
		}
	}
	v, err := strconv.ParseFloat(lower, 64)
	if err == nil && (math.IsNaN(v) || v < 0 || v*factor > 1e15) {
		err = errors.New("out of range")
	}
	return v * factor, err
}
