package nat

import (
	"net/netip"
	"slices"
	"sync/atomic"
)

// Record records whether a Kernel opens ways. The zero value is ready for use. It is safe for
// concurrent use.
type Record struct {
	failure atomic.Pointer[string] // failure is the last error if no way could be opened; nil: one could.
}

// Open calls OpenWays of kernel k, records the result and returns it.
func (r *Record) Open(k Kernel, ways []Way) (at []netip.AddrPort, err error) {
	at, err = k.OpenWays(ways)
	if err != nil && !slices.ContainsFunc(at, netip.AddrPort.IsValid) {
		text := err.Error()
		r.failure.Store(&text)
	} else {
		r.failure.Store(nil)
	}
	return at, err
}

// Failure returns the reason why the kernel could open no way of the last request, or "" if it
// could, or was not asked yet.
func (r *Record) Failure() string {
	if text := r.failure.Load(); text != nil {
		return *text
	}
	return ""
}
