package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A connection over a long path carries no more than the kernel's buffers at its ends hold in a
// round trip. They grow by themselves, up to a maximum that the host's administrator sets. And it
// takes several round trips to become fast, again after each time in which nothing was sent, unless
// the administrator has that off.

// Buffers are what the kernel gives a connection.
type Buffers struct {
	Send    int  `json:"send"`    // the most bytes, net.ipv4.tcp_wmem's third number; 0: unknown
	Receive int  `json:"receive"` // net.ipv4.tcp_rmem's
	Restart bool `json:"restart"` // net.ipv4.tcp_slow_start_after_idle
}

// buffers reads them from proc, /proc/sys/net/ipv4.
func buffers(proc string) Buffers {
	most := func(name string) int {
		b, _ := os.ReadFile(filepath.Join(proc, name))
		words := strings.Fields(string(b))
		if len(words) != 3 {
			return 0
		}
		n, _ := strconv.Atoi(words[2])
		return max(n, 0)
	}
	restart, _ := os.ReadFile(filepath.Join(proc, "tcp_slow_start_after_idle"))
	return Buffers{most("tcp_wmem"), most("tcp_rmem"), strings.TrimSpace(string(restart)) == "1"}
}

// speed is an interface's rate in Mbit/s as sys, /sys/class/net, has it; 0: unknown.
func speed(sys, name string) int {
	b, _ := os.ReadFile(filepath.Join(sys, name, "speed")) // an error: it has none
	n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return max(n, 0)
}

// narrow says what to do if a host's buffers are too small for a connection at the rate of its
// fastest interface over a path; empty: nothing.
func narrow(h *Hello, roundTrip time.Duration) (detail, advice string) {
	rate := 0
	for _, a := range h.Addresses {
		rate = max(rate, a.Speed)
	}
	need := int(bufferShare * float64(rate) * 1e6 / 8 * roundTrip.Seconds())
	if roundTrip < farAway || rate == 0 {
		return "", ""
	}
	for _, b := range []struct {
		name  string
		bytes int
		first string
	}{{"tcp_wmem", h.Buffers.Send, "4096 16384"}, {"tcp_rmem", h.Buffers.Receive, "4096 131072"}} {
		if b.bytes > 0 && b.bytes < need {
			detail += fmt.Sprintf("; net.ipv4.%s ends at %d bytes", b.name, b.bytes)
			advice += fmt.Sprintf(" net.ipv4.%s='%s %d'", b.name, b.first, need)
		}
	}
	if advice == "" {
		return "", ""
	}
	return fmt.Sprintf("%s: a connection over a round trip of %v does not fill %d Mbit/s%s", h.Host,
		roundTrip.Round(time.Millisecond), rate, detail), "as root, at both ends: sysctl -w" + advice
}

// cools says what to do if a host's connections over a path become slow while they are idle; empty:
// nothing.
func cools(h *Hello, roundTrip time.Duration) (detail, advice string) {
	if roundTrip < farAway || !h.Buffers.Restart {
		return "", ""
	}
	return fmt.Sprintf("%s: a connection over a round trip of %v begins slowly again whenever it was idle", h.Host,
		roundTrip.Round(time.Millisecond)), "as root, at both ends: sysctl -w net.ipv4.tcp_slow_start_after_idle=0"
}
