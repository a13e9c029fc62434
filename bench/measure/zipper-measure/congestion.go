package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

const allowed = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"

// allow lets namespaces choose a congestion control, which some systems refuse. back restores the
// system's setting.
func allow(name string) (back func(), err error) {
	before, err := os.ReadFile(allowed)
	if err != nil {
		return nil, err
	}
	if slices.Contains(strings.Fields(string(before)), name) {
		return func() {}, nil
	}
	if err := os.WriteFile(allowed, []byte(strings.TrimSpace(string(before))+" "+name), 0); err != nil {
		return nil, fmt.Errorf("congestion control %s, which this kernel may not have: %w", name, err)
	}
	return func() { _ = os.WriteFile(allowed, before, 0) }, nil
}
