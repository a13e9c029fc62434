package doctor

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/transport"
)

// dialVerbs connects over the fabric. The link's own proof shows whether both ports are on one
// fabric.
func dialVerbs(ctx context.Context, addr string, begin time.Time) Answer {
	ctx, cancel := context.WithTimeout(ctx, verbsTimeout)
	defer cancel()
	l, err := dial.Once(ctx, addr)
	if err != nil {
		kind := Silent
		var final interface{ Permanent() bool }
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			kind = Refused
		case errors.As(err, &final):
			kind = Other
		}
		return Answer{Kind: kind, Took: time.Since(begin), Detail: err.Error()}
	}
	defer l.Close()
	a := challenged(&linkReader{l, time.Now().Add(dialTimeout)}, begin)
	if a.Kind == Reached {
		a.Detail = "over the fabric, " + strings.TrimPrefix(l.Remote(), "verbs ")
	}
	return a
}

// linkReader reads from a link and waits at most until a time.
type linkReader struct {
	l   transport.Link
	end time.Time
}

func (r *linkReader) Read(p []byte) (int, error) {
	for {
		n, err := r.l.TryRead(p)
		if err != transport.ErrAgain {
			return n, err
		}
		if r.l.Arm() {
			continue
		}
		left := time.Until(r.end)
		if left <= 0 {
			return 0, errors.New("no answer in time")
		}
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(r.l.FD()), Events: unix.POLLIN}},
			int(left/time.Millisecond)+1); err != nil && err != unix.EINTR {
			return 0, err
		}
	}
}
