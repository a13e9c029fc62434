package measure

import (
	"fmt"
	"time"

	"github.com/leidenzipper/zipper/bench/lab/delayline"
)

// Payload returns the rate in Mbit/s that TCP can carry at most over a link, in Ethernet frames
// with IP and TCP headers and timestamps.
func Payload(o delayline.Options) float64 {
	const headers, wire = 20 + 20 + 12, 14 + 24
	return float64(o.Rate) / 1e6 * float64(o.MTU-headers) / float64(o.MTU+wire)
}

// Milliseconds returns a time in milliseconds.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// impossible returns why a value must be a measuring error: it is a rate above what the line
// carries. It returns an empty string for other values.
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

// short tells whether a link has the aims for 20 ms; longer links have those for 50 ms.
func short(o delayline.Options) bool { return o.Delay <= 20*time.Millisecond }

// rate returns a row whose aim is a share of Payload.
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

// beyond returns a row whose aim is the delay plus a time in ms.
func beyond(name string, ms float64) Row {
	return Row{Name: name, Unit: Milli, AtMost: true, Aim: func(o delayline.Options) float64 { return Milliseconds(o.Delay) + ms }}
}

func constant(v float64) func(delayline.Options) float64 {
	return func(delayline.Options) float64 { return v }
}

// Rows of the plan longhaul, in the order of the table.
var (
	Stream1M  = rate("1 MiB stream, one pair", 0.95, 0.92)
	Stream64K = rate("64 KiB stream, one pair", 0.90, 0.88)
	Pairs2    = rate("1 MiB streams, 2 pairs together", 0.95, 0.95)
	Pairs8    = rate("1 MiB streams, 8 pairs together", 0.95, 0.95)
	Pairs32   = rate("1 MiB streams, 32 pairs together", 0.95, 0.95)
	Both      = inBoth(rate("both directions at once", 1.9*0.95, 1.9*0.92))
	Loss001   = rate("1 MiB stream, 0.01 % loss", 0.9, 0.9)
	Loss01    = rate("1 MiB stream, 0.1 % loss", 0.7, 0.5)

	Arrives = Row{Name: "1 MiB blocking, warm: arrives", Unit: Milli, AtMost: true,
		Aim: func(o delayline.Options) float64 {
			return 1.1 * (Milliseconds(o.Delay) + (1<<20)*8/1e3/Payload(o))
		}}
	First = Row{Name: "1 MiB blocking, the first: arrives", Unit: Milli, AtMost: true,
		Aim: func(o delayline.Options) float64 {
			if short(o) {
				return 100
			}
			return 220
		}}
	Returns = Row{Name: "1 MiB blocking, warm: MPI_Send returns", Unit: Milli, AtMost: true, Aim: constant(3)}
	Small   = beyond("8 B arrives", 0.5)

	Memory = Row{Name: "memory of the forwarders, 32 pairs", Unit: MB, AtMost: true,
		Aim: func(o delayline.Options) float64 {
			return 3*float64(o.Rate)/8e6*2*o.Delay.Seconds() + 64
		}}
	Outage  = Row{Name: "the long link cut for a while: the stream goes on after", Unit: Milli}
	Restart = Row{Name: "a forwarder of the trunk killed and started again", Unit: Milli}
)

// Fairness returns the row of Jain's index for a row of several pairs.
func Fairness(r Row) Row {
	return Row{Name: r.Name + ": Jain's fairness", Unit: Ratio, Aim: constant(0.9)}
}

// Collectives returns the names of the operations that are measured on 4+4 ranks.
func Collectives() []string {
	return []string{"barrier", "bcast", "allreduce", "allgather", "alltoall"}
}

// Collective returns the row of a collective on 4+4 ranks; bytes is the size in words.
func Collective(name string, bytes string) Row {
	if name == "barrier" {
		return beyond(name+", 4+4 ranks", 2)
	}
	return beyond(name+" of "+bytes+", 4+4 ranks", 2)
}
