package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A connection over a long path carries no more per round trip than the kernel's buffers at its
// ends hold. The buffers grow by themselves, up to a maximum that the host's administrator sets. A
// connection also needs several round trips to become fast, again after each idle time, unless the
// administrator has turned that off.

// Buffers are the limits that the kernel sets for a connection.
type Buffers struct {
	// Send is the largest send buffer in bytes, the third number of net.ipv4.tcp_wmem; 0: unknown.
	Send int `json:"send"`
	// Receive is the largest receive buffer in bytes, the third number of net.ipv4.tcp_rmem; 0:
	// unknown.
	Receive int `json:"receive"`
	// Restart is net.ipv4.tcp_slow_start_after_idle: idle connections become slow again.
	Restart bool `json:"restart"`
}

// buffers reads the limits from proc, which is /proc/sys/net/ipv4.
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

// speed returns an interface's rate in Mbit/s from sys, which is /sys/class/net; 0: unknown.
func speed(sys, name string) int {
	b, _ := os.ReadFile(filepath.Join(sys, name, "speed")) // without the file the rate is unknown
	n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return max(n, 0)
}

// narrow returns a finding, and what to do, if a host's buffers are too small for a connection at
// the rate of its fastest interface over a path. Both are empty if the buffers are large enough.
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

// cools returns a finding, and what to do, if a host's connections over a path become slow while
// they are idle. Both are empty otherwise.
func cools(h *Hello, roundTrip time.Duration) (detail, advice string) {
	if roundTrip < farAway || !h.Buffers.Restart {
		return "", ""
	}
	return fmt.Sprintf("%s: a connection over a round trip of %v begins slowly again whenever it was idle", h.Host,
		roundTrip.Round(time.Millisecond)), "as root, at both ends: sysctl -w net.ipv4.tcp_slow_start_after_idle=0"
}
