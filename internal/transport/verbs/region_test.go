package verbs

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// page is the size of a page in bytes.
var page = os.Getpagesize()

// notes is an Unmaps whose ranges the test sets.
type notes [][2]uintptr

func (n *notes) Since(seen uint64, f func(from, to uintptr)) uint64 {
	for _, r := range (*n)[seen:] {
		f(r[0], r[1])
	}
	return uint64(len(*n))
}

// fakeMR counts the registered bytes.
type fakeMR struct {
	mem  []byte
	live *int
}

func (m fakeMR) Bytes() []byte { return m.mem }
func (m fakeMR) Close() error  { *m.live -= len(m.mem); return nil }

type shelf struct {
	regions
	live, limit, calls int
}

func newShelf(u Unmaps) *shelf {
	s := &shelf{limit: 1 << 40}
	s.all, s.unmaps = map[*region]struct{}{}, u
	s.register = func(mem []byte) (registration, error) {
		s.calls++
		if s.live+len(mem) > s.limit {
			return nil, errors.New("ulimit")
		}
		s.live += len(mem)
		return fakeMR{mem, &s.live}, nil
	}
	return s
}

func (s *shelf) must(t *testing.T, mem []byte) span {
	t.Helper()
	x, err := s.get(mem)
	if err != nil {
		t.Fatal(err)
	}
	if got := x.r.mr.Bytes()[x.off:]; &got[0] != &mem[0] || len(got) < len(mem) {
		t.Fatal("it is other memory")
	}
	return x
}

func pages(t *testing.T, n int) []byte {
	t.Helper()
	m, err := unix.Mmap(-1, 0, n*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(m) })
	return m
}

// TestWithoutCache checks that a region lives as long as it has users.
func TestWithoutCache(t *testing.T) {
	s := newShelf(nil)
	m := pages(t, 4)
	a, b := s.must(t, m[10:100]), s.must(t, m[10:100])
	if s.calls != 2 || s.live != 180 {
		t.Errorf("%d registrations, %d bytes", s.calls, s.live)
	}
	a.r.use()
	for _, r := range []*region{a.r, b.r, a.r} {
		if s.live == 0 {
			t.Error("gone too early")
		}
		if err := r.put(); err != nil {
			t.Error(err)
		}
	}
	if s.live != 0 {
		t.Errorf("%d bytes are left", s.live)
	}
}

// TestCache checks that registered memory is found again until it is unmapped. Then it is
// registered again, and the old registration ends with its last user.
func TestCache(t *testing.T) {
	n := &notes{}
	s := newShelf(n)
	m := pages(t, 8)
	a := s.must(t, m[100:3*page])
	b := s.must(t, m[200:1000])
	if s.calls != 1 || a.r != b.r || s.live != 3*page {
		t.Errorf("%d registrations, %d bytes", s.calls, s.live)
	}
	b.r.put()
	other := s.must(t, m[4*page:5*page])
	other.r.put()
	// the third page of a, and none of the other
	*n = append(*n, [2]uintptr{start(m) + uintptr(2*page), start(m) + uintptr(4*page)})
	c := s.must(t, m[200:1000])
	if c.r == a.r || s.calls != 3 || s.live != 5*page {
		t.Errorf("after unmapping: %d registrations, %d bytes", s.calls, s.live)
	}
	a.r.put()
	if s.live != 2*page {
		t.Errorf("%d bytes are registered, want two pages", s.live)
	}
	if o := s.must(t, m[4*page:5*page]); o.r != other.r {
		t.Error("memory that was not unmapped is forgotten")
	}
	*n = append(*n, [2]uintptr{0, ^uintptr(0)})
	c.r.put() // this call checks the ranges
	if s.live != 1*page {
		t.Errorf("%d bytes are registered, want the page in use", s.live)
	}
	if err := s.close(); err != nil || s.live != 0 {
		t.Errorf("%v, %d bytes are left", err, s.live)
	}
	other.r.put() // after the end
	if _, err := s.get(m[:10]); err == nil {
		t.Error("registers after the end")
	}
}

// TestCacheBounds checks that the least recently used regions are removed first, that used ones
// stay, and that the limit of locked memory empties the cache before it is an error.
func TestCacheBounds(t *testing.T) {
	s := newShelf(&notes{})
	m := pages(t, 2*maxKept)
	nth := func(i int) []byte { return m[i*page : (i+1)*page] }
	held := s.must(t, nth(0))
	for i := 1; i < maxKept; i++ {
		s.must(t, nth(i)).r.put()
	}
	s.must(t, nth(1)).r.put() // used again, so that 2 is the oldest now
	s.must(t, nth(maxKept)).r.put()
	calls := s.calls
	s.must(t, nth(0)).r.put()
	s.must(t, nth(1)).r.put()
	if s.calls != calls || s.live != maxKept*page {
		t.Errorf("%d bytes are kept", s.live)
	}
	s.must(t, nth(2)).r.put()
	if s.calls != calls+1 {
		t.Error("the oldest was kept")
	}
	s.limit = s.live
	s.must(t, m[100*page:110*page]).r.put()
	if s.live != 11*page {
		t.Errorf("%d bytes are registered: the held page and ten are due", s.live)
	}
	s.limit = 5 * page
	if _, err := s.get(m[20*page : 30*page]); err == nil {
		t.Error("registered more than the limit")
	}
	if held.r.put(); s.live != 1*page { // in the list until another region needs its place
		t.Errorf("%d bytes", s.live)
	}
}
