package boot

import (
	"context"
	"sync"
)

// pending are connections whose other end is not known yet, as they came. Safe for concurrent use.
type pending struct {
	mu    sync.Mutex
	limit int
	list  []*context.CancelFunc
}

// add takes in one more connection, which is given up when ctx ends. If there are too many the
// oldest goes. done is called when its other end is known, or has failed.
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

// drop gives the oldest up, for its descriptor; false: there is none.
func (p *pending) drop() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.list) == 0 {
		return false
	}
	p.oldest()
	return true
}

// oldest gives the oldest up; there is one. With mu.
func (p *pending) oldest() {
	(*p.list[0])()
	p.list = p.list[1:]
}
