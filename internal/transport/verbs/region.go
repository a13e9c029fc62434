package verbs

import (
	"errors"
	"os"
	"slices"
	"sync"
	"unsafe"
)

// Unmaps reports which of its memory the program has given back to the system, or was about to. It
// is safe for concurrent use.
type Unmaps interface {
	// Since calls f for every range noted after the point seen, or for the whole address space if
	// the ranges are no longer known. It returns the point reached. 0 is before everything.
	Since(seen uint64, f func(from, to uintptr)) uint64
}

// registration is a *verbs.MR, or a fake one.
type registration interface {
	Bytes() []byte
	Close() error
}

// regions registers the program's memory in one protection domain. Without a cache a region is
// deregistered when its last user has released it. With a cache it is kept in list, the last used
// first, and removed before the next use if the program has unmapped it.
type regions struct {
	register func(mem []byte) (registration, error)
	unmaps   Unmaps // nil without a cache

	mu     sync.Mutex
	seen   uint64 // point of unmaps that was processed last
	list   []*region
	bytes  int                  // number of bytes in the list
	all    map[*region]struct{} // all registered regions
	closed bool
}

// region is registered memory: in use, or in the list, or both.
type region struct {
	of     *regions
	mr     registration
	users  int
	listed bool
}

// span is the position of some memory in a region.
type span struct {
	r   *region
	off int
}

func start(mem []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(mem))) }

func (r *region) from() uintptr { return start(r.mr.Bytes()) }
func (r *region) to() uintptr   { return r.from() + uintptr(len(r.mr.Bytes())) }

// wholePages returns the pages that contain mem, and the offset of mem in them.
func wholePages(mem []byte) (pages []byte, off int) {
	page := os.Getpagesize()
	off = int(start(mem) % uintptr(page))
	n := (off + len(mem) + page - 1) &^ (page - 1)
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(mem)), -off)), n), off
}

var errEnded = errors.New("the link has ended")

// get returns registered memory, and registers it if necessary. It adds a user.
func (c *regions) get(mem []byte) (span, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return span{}, errEnded
	}
	if err := c.forget(); err != nil {
		return span{}, err
	}
	at, off := start(mem), 0
	for i, r := range c.list {
		if r.from() <= at && at+uintptr(len(mem)) <= r.to() {
			copy(c.list[1:i+1], c.list[:i])
			c.list[0] = r
			r.users++
			return span{r, int(at - r.from())}, nil
		}
	}
	if c.unmaps != nil { // the kernel pins whole pages anyway
		mem, off = wholePages(mem)
		if err := c.shrink(maxKept-1, maxKeptBytes-len(mem)); err != nil {
			return span{}, err
		}
	}
	mr, err := c.register(mem)
	if err != nil && len(c.list) > 0 { // perhaps the limit of locked memory: try again without unused registrations
		if e := c.shrink(0, 0); e != nil {
			return span{}, errors.Join(err, e)
		}
		mr, err = c.register(mem)
	}
	if err != nil {
		return span{}, err
	}
	r := &region{of: c, mr: mr, users: 1, listed: c.unmaps != nil}
	c.all[r] = struct{}{}
	if r.listed {
		c.list = slices.Insert(c.list, 0, r)
		c.bytes += len(mem)
	}
	return span{r, off}, nil
}

// use adds a user to a region that has one.
func (r *region) use() {
	r.of.mu.Lock()
	r.users++
	r.of.mu.Unlock()
}

// put removes a user. Any thread may call it.
func (r *region) put() error {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	r.users--
	return errors.Join(r.of.forget(), r.end())
}

// end deregisters a region that is neither in use nor in the list.
func (r *region) end() error {
	if _, there := r.of.all[r]; r.users > 0 || r.listed || !there {
		return nil
	}
	delete(r.of.all, r)
	return r.mr.Close()
}

// forget removes regions that the program has unmapped.
func (c *regions) forget() error {
	if c.unmaps == nil {
		return nil
	}
	var errs []error
	c.seen = c.unmaps.Since(c.seen, func(from, to uintptr) {
		for i := len(c.list) - 1; i >= 0; i-- {
			if r := c.list[i]; r.from() < to && from < r.to() {
				errs = append(errs, c.drop(i))
			}
		}
	})
	return errors.Join(errs...)
}

// shrink removes unused regions, the least recently used first, until at most n regions with bytes
// bytes are left, if it can.
func (c *regions) shrink(n, bytes int) error {
	for i := len(c.list) - 1; i >= 0 && (len(c.list) > n || c.bytes > bytes); i-- {
		if c.list[i].users == 0 {
			if err := c.drop(i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *regions) drop(i int) error {
	r := c.list[i]
	c.list = slices.Delete(c.list, i, i+1)
	c.bytes -= len(r.mr.Bytes())
	r.listed = false
	return r.end()
}

// close deregisters everything, because no queue pair uses it any more. Users may still call put.
func (c *regions) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed, c.list = true, nil
	var errs []error
	for r := range c.all {
		errs = append(errs, r.mr.Close())
	}
	clear(c.all)
	return errors.Join(errs...)
}
