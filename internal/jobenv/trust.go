package jobenv

import (
	"fmt"
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

// ParseLevel parses the level of a job with a protocol, and with these networks without ranks. ""
// is the default. A long link between two sites is such a network, and others may listen there.
func ParseLevel(s, protocol string, networks []string) (wire.Level, error) {
	l := wire.LevelChecked
	switch {
	case protocol == Classic:
		l = wire.LevelPlain
	case len(networks) > 0:
		l = wire.LevelSealed
	}
	if s == "" {
		return l, nil
	}
	l, err := wire.ParseLevel(s)
	if err == nil && protocol == Classic && l != wire.LevelPlain {
		err = fmt.Errorf("level %v: the protocol %s has %v only", l, protocol, wire.LevelPlain)
	}
	return l, err
}

// ParsePatience parses a time from 0 to a day. "" is the default.
func ParsePatience(s string) (time.Duration, error) {
	if s == "" {
		return defaultPatience, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > wire.MaxPatience*time.Millisecond {
		return 0, fmt.Errorf("%q: want a duration from 0s to 24h, such as 30s", s)
	}
	return d, nil
}
