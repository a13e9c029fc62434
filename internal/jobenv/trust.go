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

// Values of VarOnLoss and VarQuorum.
const (
	LossEnds      = "end"
	LossContinues = "continue"
	QuorumRank0   = "rank0"
	QuorumBoth    = "both"
)

// ParseOnLoss parses what a job with a protocol does when a cluster is lost, and reports whether it
// goes on. "" is the default: it ends.
func ParseOnLoss(s, protocol string) (outlives bool, err error) {
	switch s {
	case "", LossEnds:
		return false, nil
	case LossContinues:
		if protocol == Classic {
			return false, fmt.Errorf("%q: the protocol %s has %s only", s, protocol, LossEnds)
		}
		return true, nil
	}
	return false, fmt.Errorf("%q: want %s or %s", s, LossEnds, LossContinues)
}

// ParseQuorum parses which sides of a cut between forwarders go on, and reports whether both do. ""
// is the default: the side with rank 0. outlives is the result of ParseOnLoss.
func ParseQuorum(s string, outlives bool) (both bool, err error) {
	switch s {
	case "", QuorumRank0:
		return false, nil
	case QuorumBoth:
		if !outlives {
			return false, fmt.Errorf("%q: that is for jobs that go on when a cluster is lost (--on-loss %s, or %s=%[2]s)",
				s, LossContinues, VarOnLoss)
		}
		return true, nil
	}
	return false, fmt.Errorf("%q: want %s or %s", s, QuorumRank0, QuorumBoth)
}
