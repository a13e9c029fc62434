package spec

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// HostLine is one host of a host file.
type HostLine struct {
	// Name is the host's name or address.
	Name string
	// Slots is a number from 1; it is empty if the file has none.
	Slots string
	// Options are the other words of the line, for the launcher that knows them.
	Options string
}

// ReadHosts reads a host file in the form of either MPI or of a batch system: one host a line,
// "a1", "a1 slots=2" or "a1:2", or several, "a[01-04]". It is an error if there is no host.
func ReadHosts(file string) ([]HostLine, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("host file: %w", err)
	}
	hosts, err := ParseHosts(string(b))
	if err != nil {
		return nil, fmt.Errorf("host file %s: %w", file, err)
	}
	return hosts, nil
}

// ParseHosts reads the text of a host file.
func ParseHosts(text string) ([]HostLine, error) {
	var hosts []HostLine
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, _, _ := strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		names, h, err := parseHost(f[0])
		for _, option := range f[1:] {
			if n, ok := strings.CutPrefix(option, "slots="); ok {
				h.Slots = n
			} else {
				h.Options += " " + option
			}
		}
		if n, err := strconv.Atoi(h.Slots); h.Slots != "" && (err != nil || n < 1) {
			return nil, fmt.Errorf("line %d: %q slots: want a number from 1", number, h.Slots)
		}
		if err == nil && len(hosts)+len(names) > maxHosts {
			err = fmt.Errorf("more than %d hosts", maxHosts)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		for _, h.Name = range names {
			hosts = append(hosts, h)
		}
	}
	if hosts == nil {
		return nil, errors.New("it names no host")
	}
	return hosts, nil
}

// parseHost reads a name or a pattern of names with or without a number of slots, or an address of
// IPv6, which has brackets if slots follow.
func parseHost(word string) (names []string, h HostLine, err error) {
	if _, err := netip.ParseAddr(word); err == nil {
		return []string{word}, h, nil
	}
	name, rest, ok := strings.Cut(strings.TrimPrefix(word, "["), "]")
	if _, err := netip.ParseAddr(name); err == nil && ok {
		slots, given := strings.CutPrefix(rest, ":")
		if !given && rest != "" {
			return nil, h, fmt.Errorf("%q: want [ADDRESS] or [ADDRESS]:SLOTS", word)
		}
		h.Slots = slots
		return []string{name}, h, nil
	}
	name, h.Slots, _ = strings.Cut(word, ":")
	names, err = ExpandHosts(name)
	return names, h, err
}

// HostFile returns the text of a host file for an MPI library's launcher.
func HostFile(m MPI, hosts []HostLine) (string, error) {
	var text strings.Builder
	for _, h := range hosts {
		text.WriteString(h.Name)
		switch {
		case m == MPICH && strings.Contains(h.Name, ":"):
			return "", fmt.Errorf("host %s: MPICH's launcher takes no IPv6 address in a host file: give the host's name", h.Name)
		case m == MPICH && h.Slots != "":
			text.WriteString(":" + h.Slots)
		case h.Slots != "":
			text.WriteString(" slots=" + h.Slots)
		}
		for _, option := range strings.Fields(h.Options) {
			// MPICH's launcher ends with an error at an option that it does not know.
			if m != MPICH || !strings.HasPrefix(option, "max_slots=") && !strings.HasPrefix(option, "max-slots=") {
				text.WriteString(" " + option)
			}
		}
		text.WriteString("\n")
	}
	return text.String(), nil
}

// FirstHost returns the first host of a host file.
func FirstHost(file string) (string, error) {
	hosts, err := ReadHosts(file)
	if err != nil {
		return "", err
	}
	return hosts[0].Name, nil
}
