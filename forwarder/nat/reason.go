package nat

import (
	"errors"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Privileged reports whether the calling thread has the privilege that this package requires,
// CAP_NET_ADMIN.
func Privileged() bool {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&head, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_NET_ADMIN) != 0
}

// privilege returns an error if the process lacks the privilege.
func privilege() error {
	if !Privileged() {
		return errors.New("this process lacks CAP_NET_ADMIN")
	}
	return nil
}

// reason is an error with its text in one line, for a log and the status.
type reason struct {
	error
	text string
}

func (r reason) Error() string { return r.text }

func (r reason) Unwrap() error { return r.error }

// oneLine joins errors to one with the lines of their texts in one line, each of them once. It
// returns nil if all errors are nil.
func oneLine(errs ...error) error {
	all := errors.Join(errs...)
	if all == nil {
		return nil
	}
	var lines []string
	for l := range strings.SplitSeq(all.Error(), "\n") {
		if !slices.Contains(lines, l) {
			lines = append(lines, l)
		}
	}
	return reason{all, strings.Join(lines, "; ")}
}
