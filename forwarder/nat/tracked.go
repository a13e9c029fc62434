package nat

import (
	"fmt"
	"os"
)

// Tracked returns the number of connections that the kernel tracks in this process's network
// namespace, and the maximum. When that is reached it drops new connections of all kinds. Tracked
// returns an error if the kernel tracks none.
func Tracked() (n, most int, err error) {
	for file, to := range map[string]*int{"count": &n, "max": &most} {
		text, err := os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_" + file)
		if err == nil {
			_, err = fmt.Sscan(string(text), to)
		}
		if err != nil {
			return 0, 0, fmt.Errorf("connections that the kernel tracks: %w", err)
		}
	}
	return n, most, nil
}
