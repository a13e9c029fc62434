// Package arch has the rules about imports between packages, which its tests check and
// docs/reference/import-rules.md shows (go generate).
package arch

import (
	"fmt"
	"strings"
)

// Rule restricts the imports of some packages of this module. Patterns are those of the go command:
// "a/b" is that package, "a/b/..." also those below it. Tests may import anything.
type Rule struct {
	Of    []string
	Only  []string // packages of this module that it may import directly; Nothing if there are none
	Never []string // packages that it must not import, directly or through others of this module
	Users []string // packages that may import it at all
	Why   string   // reason, in one sentence
}

// Nothing as the value of Rule.Only allows no imports from this module.
const Nothing = "nothing"

// Clock as one of Rule.Never excludes functions that read a clock or wait. Durations are allowed.
const Clock = "a clock"

// Environment as one of Rule.Never excludes functions that read environment variables.
const Environment = "the environment"

var transports = []string{"internal/transport/tcp", "internal/transport/shm", "internal/transport/verbs", "internal/transport/command", "internal/transport/memnet"}

// Rules is the table of all rules. internal/docgen writes it into docs/reference/import-rules.md.
var Rules = []Rule{
	{Of: []string{"vrank", "internal/agent", "internal/list", "internal/idtable", "internal/disjoint", "internal/lines", "internal/timerslack", "internal/crc32c", "internal/trickle", "internal/seeds", "internal/sparse", "internal/wholefile", "internal/highfd", "internal/marked"}, Only: []string{Nothing},
		Why: "Leaves."},
	{Of: []string{"internal/wire"}, Only: []string{"internal/facts", "vrank", "internal/crc32c"}, Never: []string{"net/...", "os", "time"}, Why: "Bytes and their meaning, nothing else."},
	{Of: []string{"handshake"}, Only: []string{"internal/facts", "internal/wire", "vrank", "internal/seal"}, Never: []string{"net/...", "os", "time"},
		Why: "State machines: their callers have the socket and the clock."},
	{Of: []string{"internal/seal"}, Only: []string{Nothing}, Never: []string{"net/...", "os", Clock, "runtime/cgo", "crypto/rand", "math/rand", "math/rand/v2"},
		Why: "Arithmetic with keys; the caller has the random bytes."},
	{Of: []string{"collectives"}, Never: []string{"internal/wire", "net/...", "os", "time", "internal/transport/...", "mmpi/...", "runtime/cgo"},
		Why: "Schedules, which tests run against a simulated network."},
	{Of: []string{"internal/rma"}, Only: []string{Nothing}, Never: []string{"net/...", "os", "sync", "time", "runtime/cgo"}, Why: "A state machine."},
	{Of: []string{"mmpi/engine/flow"}, Only: []string{Nothing}, Never: []string{"net/...", "os", "sync", Clock, "runtime/cgo"},
		Why: "Arithmetic of credit, order and rates; the caller passes the time."},

	{Of: []string{"mmpi/engine/agree"}, Only: []string{Nothing}, Never: []string{"net/...", "os", "sync", "time", "runtime/cgo"},
		Users: []string{"mmpi/engine"}, Why: "A state machine, of votes and decisions."},

	{Of: []string{"mmpi/engine/wait", "mmpi/engine/link", "mmpi/engine/pt2pt", "mmpi/engine/coll", "mmpi/engine/rmawin"},
		Never: []string{"mmpi/engine"}, Why: "The engine is their face and their lock; they call back by interfaces of their own."},
	{Of: []string{"mmpi/engine/link"}, Never: []string{"mmpi/engine/pt2pt", "mmpi/engine/coll", "mmpi/engine/rmawin", "collectives", "internal/rma"},
		Why: "Links know frames, no request and no MPI."},
	{Of: []string{"mmpi/engine/link/failover"}, Only: []string{"internal/wire"}, Never: []string{"net/...", "os", "sync", Clock, "runtime/cgo"},
		Users: []string{"mmpi/engine/link"}, Why: "A state machine, which its caller tells what has happened and when."},
	{Of: []string{"mmpi/engine/link/demand"}, Only: []string{Nothing}, Never: []string{"net/...", "os", "sync", Clock, "runtime/cgo"},
		Users: []string{"mmpi/engine/link"}, Why: "A state machine, which its caller tells what has happened and when."},
	{Of: []string{"mmpi/engine/link/ready"}, Only: []string{"mmpi/engine/wait"}, Users: []string{"mmpi/engine/link"},
		Why: "Descriptors and whether they can be read; no frames."},
	{Of: []string{"mmpi/engine/pt2pt"}, Never: []string{"mmpi/engine/coll", "mmpi/engine/rmawin", "collectives", "internal/rma"},
		Why: "Messages; their uses are in other packages."},
	{Of: []string{"mmpi/engine/coll"}, Only: []string{"mmpi/engine/pt2pt", "mmpi/engine/fault", "mmpi/engine/world", "collectives"},
		Why: "Collectives send and receive as users of pt2pt do."},
	{Of: []string{"mmpi/engine/rmawin"}, Only: []string{"mmpi/engine/pt2pt", "mmpi/engine/fault", "internal/rma", "internal/idtable"}, Why: "So do windows."},
	{Of: []string{"mmpi/engine/wait", "mmpi/engine/fault"}, Only: []string{"internal/highfd"}, Why: "Leaves."},
	{Of: []string{"mmpi/engine/limits"}, Only: []string{"internal/wire"}, Why: "Numbers."},
	{Of: []string{"mmpi/engine/..."}, Never: append([]string{"forwarder/...", "cgo/...", "runtime/cgo", "mmpi/boot",
		"internal/dial", "internal/jobenv", "internal/traffic/...", "launch/..."}, transports...),
		Why: "The engine is given its links, its settings and its place in the world."},
	{Of: []string{"mmpi/boot"}, Never: []string{"forwarder/...", "cgo/abi/...", "cgo/mpi/...", "launch/..."}, Why: "How a process gets its engine; no MPI library is needed for it."},
	{Of: []string{"cgo/abi/lib"}, Never: []string{Environment},
		Why: "Go has a copy of the environment without later changes by C code; cgo/abi calls C's getenv."},
	{Of: []string{"mmpi"}, Never: []string{"forwarder/...", "launch/..."}, Why: "A program takes no part in starting or relaying."},

	{Of: []string{"forwarder/loop"}, Only: []string{Nothing}, Why: "Descriptors and times; no bytes, no jobs."},
	{Of: []string{"forwarder/serial"}, Only: []string{Nothing}, Users: []string{"forwarder"}, Why: "Functions and their order."},
	{Of: []string{"forwarder/halves"}, Only: []string{"internal/wire"}, Why: "A list; the caller passes the time."},
	{Of: []string{"forwarder/budget"}, Only: []string{Nothing}, Why: "Numbers of bytes."},
	{Of: []string{"forwarder/relay"}, Only: []string{"forwarder/budget", "forwarder/loop", "internal/trickle", "internal/transport", "internal/transport/splice", "internal/wire", "internal/seal"}, Why: "Bytes from one connection to another; no jobs."},
	{Of: []string{"forwarder/job"}, Only: []string{"forwarder/action", "forwarder/bridge", "forwarder/trunk", "handshake", "vrank", "internal/wire"},
		Never: []string{"net", "os", "sync/...", Clock, "runtime/cgo"}, Why: "A state machine: events in, actions out."},
	{Of: []string{"forwarder/bridge"}, Only: []string{"forwarder/action", "forwarder/trunk", "internal/wire"},
		Never: []string{"net", "os", "sync/...", Clock, "runtime/cgo"}, Why: "A state machine: events in, actions out."},
	{Of: []string{"forwarder/action", "forwarder/clock", "forwarder/role"}, Only: []string{Nothing}, Why: "Words that others share."},
	{Of: []string{"forwarder/report"}, Only: []string{"internal/wire"}, Why: "Reports, and sums."},
	{Of: []string{"forwarder/jobreport"}, Only: []string{"forwarder/action", "forwarder/bridge", "forwarder/job", "forwarder/plane", "forwarder/report", "forwarder/trunk", "internal/wire"}, Why: "Reads a job; changes nothing."},
	{Of: []string{"forwarder/index"}, Only: []string{"handshake", "internal/wire"}, Why: "A list."},
	{Of: []string{"forwarder/plane"}, Only: []string{"forwarder/budget", "forwarder/relay", "forwarder/report", "internal/wire"}, Why: "Data of a job that loops use without its lock."},
	{Of: []string{"forwarder/trunk"}, Only: []string{"internal/transport"}, Why: "Arithmetic: how many connections there are to be."},
	{Of: []string{"forwarder/..."}, Never: []string{"mmpi/...", "cgo/abi/...", "cgo/mpi/...", "cgo/unmaps", "launch/...", "internal/jobenv"},
		Why: "A forwarder needs no MPI and serves any launcher."},

	{Of: []string{"internal/transport"}, Only: []string{Nothing}, Never: []string{"net", "os", "sync/...", Clock, "runtime/cgo"}, Why: "What links can do; no link."},
	{Of: []string{"internal/transport/..."}, Only: []string{"internal/transport/...", "cgo/verbs", "internal/highfd"}, Why: "A transport moves bytes for any caller."},
	{Of: transports, Users: []string{"internal/dial", "bench/contend", "bench/netgauge", "forwarder/forwardertest"},
		Why: "Which transport an address is for dial knows alone; the others measure one, or test with it."},

	{Of: []string{"simulation/kernel"}, Only: []string{"internal/transport", "internal/transport/standing"}, Never: []string{"net", "os", "sync", Clock, "runtime/cgo"},
		Why: "An operating system in memory, independent of the programs that run on it."},
	{Of: []string{"simulation"}, Never: []string{"launch/...", "mmpi/boot", "contention/..."}, Users: []string{"cmd/..."},
		Why: "Random jobs with their invariants."},
	{Of: []string{"simulation/process", "simulation/play"}, Never: []string{"launch/...", "mmpi/boot", "bench/..."},
		Users: []string{"simulation/...", "bench/contend", "cmd/zipper/internal/modelcmd"},
		Why:   "The product's engines and forwarders, none of which knows that it is simulated."},

	{Of: []string{"launch/..."}, Never: []string{"mmpi/...", "forwarder/...", "bench/..."}, Why: "The parent of processes, nothing more."},
	{Of: []string{"launch/spec", "launch/output"}, Never: []string{"launch", "launch/native", "launch/doctor"}, Why: "A description does not depend on its execution."},
	{Of: []string{"launch/output"}, Only: []string{Nothing}, Why: "Lines and where they go."},
	{Of: []string{"launch/batch"}, Only: []string{Nothing}, Why: "Queries to the batch system, for any caller."},
	{Of: []string{"launch/together"}, Only: []string{Nothing}, Never: []string{"net", "os", "sync", Clock, "runtime/cgo"},
		Users: []string{"launch/submit", "cmd/zipper/internal/jobcmd"}, Why: "A state machine: looks in, actions out."},
	{Of: []string{"launch/native"}, Never: []string{"launch", "launch/output", "launch/doctor"}, Why: "How a cluster's launcher is driven."},

	{Of: []string{"contention/..."}, Never: []string{"net/...", "runtime/cgo", "mmpi/...", "forwarder/...", "internal/transport/...", "launch/...", "bench/..."},
		Why: "Models read files, which other packages write."},
	{Of: []string{"internal/traffic/..."}, Only: []string{"internal/traffic/...", "internal/disjoint", "internal/lines"}, Why: "Files that engine, launcher and models share."},
	{Of: []string{"cmd/zipper/internal/clikit"}, Never: []string{"cmd/zipper/internal/jobcmd",
		"cmd/zipper/internal/benchcmd",
		"cmd/zipper/internal/modelcmd", "forwarder/...", "bench/...", "contention/..."},
		Why: "Code that commands share."},
	{Of: []string{"cmd/zipper/internal/modelcmd"}, Only: []string{"cmd/zipper/internal/clikit", "contention/...", "simulation/play", "internal/jobenv", "internal/traffic/...", "vrank"},
		Why: "Models run where nothing else does."},
	{Of: []string{"cmd/zipper/internal/benchcmd", "cmd/zipper/internal/jobcmd"}, Users: []string{"cmd/zipper"}, Why: "Commands do not call each other."},
	{Of: []string{"bench/..."}, Users: []string{"bench/...", "cmd/..."}, Why: "Measured code does not depend on the benchmarks."},
	{Of: []string{"cmd/..."}, Users: []string{"cmd/..."}, Why: "Commands are the end of the line."},
}

// Overview returns the table for docs/reference/import-rules.md.
func Overview() string {
	var b strings.Builder
	for _, r := range Rules {
		line := "- " + code(r.Of)
		var parts []string
		if len(r.Only) == 1 && r.Only[0] == Nothing {
			parts = append(parts, "nothing of this module")
		} else if len(r.Only) > 0 {
			parts = append(parts, "of this module only "+code(r.Only))
		}
		if len(r.Never) > 0 {
			parts = append(parts, "not "+code(r.Never))
		}
		if len(r.Users) > 0 {
			parts = append(parts, "only for "+code(r.Users))
		}
		b.WriteString(wrap(fmt.Sprintf("%s: %s. %s", line, strings.Join(parts, "; "), r.Why), 100))
	}
	return b.String()
}

func code(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		if out[i] = "`" + s + "`"; s == Clock || s == Environment {
			out[i] = s
		}
	}
	return strings.Join(out, ", ")
}

// wrap breaks an entry of a list into lines of at most width bytes.
func wrap(text string, width int) string {
	var b strings.Builder
	n := 0
	for i, w := range strings.Fields(text) {
		switch {
		case i == 0:
		case n+1+len(w) > width:
			b.WriteString("\n  ")
			n = 2
		default:
			b.WriteByte(' ')
			n++
		}
		b.WriteString(w)
		n += len(w)
	}
	return b.String() + "\n"
}
