// Package longhaul has the rows of scripts/bench longhaul: what is measured between two sites with
// a long link between them, what is aimed at, and how figures are written. It does not measure
// (bench/longhaul/zipper-longhaul does, with mpi/longhaul.c in MPI jobs).
//
// Every figure carries how late the long link was meanwhile (package delayline). A measurement
// during which it was too late, or dropped what it should not have, is void: it is written, marked,
// and counts for no median.
package longhaul

import (
	"fmt"
	"time"

	"github.com/leidenzipper/zipper/bench/lab/delayline"
)

// Units.
const (
	Mbit  = "Mbit/s"
	Milli = "ms"
	MB    = "MB"
	Ratio = ""
)

// Row is something to measure over a link.
type Row struct {
	Name string
	Unit string
	Most bool // the aim is an upper bound
	Both bool // a rate of both directions together
	// Aim over a link; 0: none. Rates are aimed at as a share of Payload.
	Aim func(o delayline.Options) float64
}

// Payload is what TCP can carry at most, in Mbit/s: Ethernet frames with IP and TCP headers and
// timestamps.
func Payload(o delayline.Options) float64 {
	const headers, wire = 20 + 20 + 12, 14 + 24
	return float64(o.Rate) / 1e6 * float64(o.MTU-headers) / float64(o.MTU+wire)
}

// Milliseconds of a delay.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// impossible says that a rate is more than the line carries: then it was measured wrongly. Empty:
// it is not.
func (r Row) impossible(v float64, o delayline.Options) string {
	most := Payload(o)
	if r.Both {
		most *= 2
	}
	const rounding = 1.01
	if r.Unit != Mbit || v <= rounding*most {
		return ""
	}
	return fmt.Sprintf("more than the %.0f Mbit/s that the line carries", most)
}

// short tells whether a link has the aims for 20 ms; a longer one has those for 50 ms.
func short(o delayline.Options) bool { return o.Delay <= 20*time.Millisecond }

// rate is a row whose aim is a share of what the line carries.
func rate(name string, at20, at50 float64) Row {
	return Row{Name: name, Unit: Mbit, Aim: func(o delayline.Options) float64 {
		if short(o) {
			return at20 * Payload(o)
		}
		return at50 * Payload(o)
	}}
}

func inBoth(r Row) Row {
	r.Both = true
	return r
}

// beyond is a row whose aim is the delay and a time in ms.
func beyond(name string, ms float64) Row {
	return Row{Name: name, Unit: Milli, Most: true, Aim: func(o delayline.Options) float64 { return Milliseconds(o.Delay) + ms }}
}

func constant(v float64) func(delayline.Options) float64 {
	return func(delayline.Options) float64 { return v }
}

// Rows in the order of the table.
var (
	Stream1M  = rate("1 MiB stream, one pair", 0.95, 0.92)
	Stream64K = rate("64 KiB stream, one pair", 0.90, 0.88)
	Pairs2    = rate("1 MiB streams, 2 pairs together", 0.95, 0.95)
	Pairs8    = rate("1 MiB streams, 8 pairs together", 0.95, 0.95)
	Pairs32   = rate("1 MiB streams, 32 pairs together", 0.95, 0.95)
	Both      = inBoth(rate("both directions at once", 1.9*0.95, 1.9*0.92))
	Loss001   = rate("1 MiB stream, 0.01 % loss", 0.9, 0.9)
	Loss01    = rate("1 MiB stream, 0.1 % loss", 0.7, 0.5)

	Arrives = Row{Name: "1 MiB blocking, warm: arrives", Unit: Milli, Most: true,
		Aim: func(o delayline.Options) float64 {
			return 1.1 * (Milliseconds(o.Delay) + (1<<20)*8/1e3/Payload(o))
		}}
	First = Row{Name: "1 MiB blocking, the first: arrives", Unit: Milli, Most: true,
		Aim: func(o delayline.Options) float64 {
			if short(o) {
				return 100
			}
			return 220
		}}
	Returns = Row{Name: "1 MiB blocking, warm: MPI_Send returns", Unit: Milli, Most: true, Aim: constant(3)}
	Small   = beyond("8 B arrives", 0.5)

	Memory = Row{Name: "memory of the forwarders, 32 pairs", Unit: MB, Most: true,
		Aim: func(o delayline.Options) float64 {
			return 3*float64(o.Rate)/8e6*2*o.Delay.Seconds() + 64
		}}
	Outage  = Row{Name: "the long link cut for a while: the stream goes on after", Unit: Milli}
	Restart = Row{Name: "a forwarder of the trunk killed and started again", Unit: Milli}
)

// Fairness is the row of Jain's index beside a row of several pairs.
func Fairness(r Row) Row {
	return Row{Name: r.Name + ": Jain's fairness", Unit: Ratio, Aim: constant(0.9)}
}

// Collectives are the names that mpi/longhaul.c knows.
func Collectives() []string {
	return []string{"barrier", "bcast", "allreduce", "allgather", "alltoall"}
}

// Collective is the row of one of them on 4+4 ranks.
func Collective(name string, bytes string) Row {
	if name == "barrier" {
		return beyond(name+", 4+4 ranks", 2)
	}
	return beyond(name+" of "+bytes+", 4+4 ranks", 2)
}

// Jain's fairness index (Jain, Chiu, Hawe 1984): 1 if all are equal, 1/n if one has all.
func Jain(x []float64) float64 {
	var sum, squares float64
	for _, v := range x {
		sum += v
		squares += v * v
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(x)) * squares)
}
