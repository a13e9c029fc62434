package spec

import (
	"fmt"
	"os"
	"strings"
)

// HostLine is one host of a host file.
type HostLine struct {
	Name  string
	Slots string // as written; empty: not said
}

// ReadHosts reads a host file of either MPI: a host a line, "a1", "a1 slots=2" or "a1:2". It has
// one host at least.
func ReadHosts(file string) ([]HostLine, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("host file: %w", err)
	}
	var hosts []HostLine
	for line := range strings.Lines(string(b)) {
		line, _, _ := strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		var h HostLine
		h.Name, h.Slots, _ = strings.Cut(f[0], ":")
		for _, option := range f[1:] {
			if n, ok := strings.CutPrefix(option, "slots="); ok {
				h.Slots = n
			}
		}
		hosts = append(hosts, h)
	}
	if hosts == nil {
		return nil, fmt.Errorf("host file %s names no host", file)
	}
	return hosts, nil
}

// FirstHost is the first host of a host file.
func FirstHost(file string) (string, error) {
	hosts, err := ReadHosts(file)
	if err != nil {
		return "", err
	}
	return hosts[0].Name, nil
}
