package boot

import (
	"context"
	"sync"
)

// pending has connections whose other end is not known yet, in the order of arrival. It is safe for
// concurrent use.
type pending struct {
	mu    sync.Mutex
	limit int
	list  []*context.CancelFunc
}

// add adds a connection, which is closed when ctx ends. If there are too many the oldest one is
// closed. done must be called when the other end is known, or has failed.
func (p *pending) add(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithTimeout(ctx, meetingTime)
	me := &cancel
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.list) >= p.limit {
		p.oldest()
	}
	p.list = append(p.list, me)
	return ctx, func() {
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		for i, c := range p.list {
			if c == me {
				p.list = append(p.list[:i], p.list[i+1:]...)
				return
			}
		}
	}
}

// drop closes the oldest connection to free its descriptor. It returns false if there is none.
func (p *pending) drop() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.list) == 0 {
		return false
	}
	p.oldest()
	return true
}

// oldest closes the oldest connection, which must exist. The caller holds mu.
func (p *pending) oldest() {
	(*p.list[0])()
	p.list = p.list[1:]
}
