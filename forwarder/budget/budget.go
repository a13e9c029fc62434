// Package budget bounds the memory of a forwarder's connections: of bytes that wait for
// destinations that do not accept them, and of frames that have arrived in part. One Budget is for
// the process, and one for each job. At the limit no bytes are discarded and no connection is
// closed. A connection that holds more than the rest of the budget is not read for a while, so TCP
// stops its sender, and all others go on (dynamic thresholds: Choudhury and Hahne, IEEE/ACM
// Transactions on Networking 6, 1998). Each of n such connections holds 1/(n+1) of the limit, so
// some of the budget is always left.
package budget

import (
	"sync"
	"sync/atomic"
)

// Budget counts the bytes of memory that are in use for a purpose, such as a job, and has a limit
// for them. It is safe for concurrent use.
type Budget struct {
	limit atomic.Int64
	used  atomic.Int64
	peak  atomic.Int64
}

// New returns a budget of which nothing is used. limit is in bytes.
func New(limit int64) *Budget {
	b := new(Budget)
	b.SetLimit(limit)
	return b
}

// SetLimit changes the limit, in bytes. Bytes that are in use stay so, even if they exceed the new
// limit.
func (b *Budget) SetLimit(limit int64) { b.limit.Store(limit) }

// Limit returns the number of bytes that may be in use at a time.
func (b *Budget) Limit() int64 { return b.limit.Load() }

// Used returns the number of bytes that are in use now.
func (b *Budget) Used() int64 { return b.used.Load() }

// Peak returns the greatest number of bytes that connections have held at one time so far.
func (b *Budget) Peak() int64 { return b.peak.Load() }

// add counts n more bytes as held by a connection, even beyond the limit; a negative n releases
// bytes.
func (b *Budget) add(n int64) {
	used := b.used.Add(n)
	for peak := b.peak.Load(); used > peak && !b.peak.CompareAndSwap(peak, used); peak = b.peak.Load() {
	}
}

// Keep counts n bytes that belong to no connection as used, and returns true. If fewer than n bytes
// are left, it counts nothing and returns false.
func (b *Budget) Keep(n int64) bool {
	if b.used.Add(n) > b.Limit() {
		b.used.Add(-n)
		return false
	}
	return true
}

// Charge counts n bytes that belong to no connection as used, even beyond the limit.
func (b *Budget) Charge(n int64) { b.used.Add(n) }

// Drop releases n bytes that Keep or Charge has counted as used.
func (b *Budget) Drop(n int64) { b.used.Add(-n) }

// Account counts the bytes of memory that one connection holds. It is safe for concurrent use,
// except for Open.
type Account struct {
	mu      sync.Mutex
	held    atomic.Int64
	process *Budget
	// a second budget to which the bytes are charged too, such as that of the connection's job
	part atomic.Pointer[Budget]
}

// Open sets the two budgets to which an account's bytes are charged. It must be called before the
// account is used.
func (a *Account) Open(process, part *Budget) {
	a.process = process
	a.part.Store(part)
}

// Move releases an account's bytes from its present part of the process's budget, and charges them
// to another one.
func (a *Account) Move(part *Budget) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.held.Load()
	a.part.Load().used.Add(-n)
	a.part.Store(part)
	part.add(n)
}

// Take charges n more bytes to the connection and its budgets, even beyond their limits. A negative
// n releases bytes.
func (a *Account) Take(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held.Add(n)
	a.process.add(n)
	a.part.Load().add(n)
}

// Held returns the number of bytes that the connection holds.
func (a *Account) Held() int64 { return a.held.Load() }

// left returns how many bytes may still be used: the lesser number of the account's two budgets. It
// is negative if a limit is exceeded.
func (a *Account) left() int64 {
	part := a.part.Load()
	return min(a.process.Limit()-a.process.Used(), part.Limit()-part.Used())
}

// Over reports whether the connection must not be read, because it holds too many bytes compared
// with those that its budgets have left.
func (a *Account) Over() bool {
	held := a.held.Load()
	return held > 0 && held > a.left()
}

// Under reports whether a connection that was not read should be read again. The threshold is lower
// than that of Over, so that this does not change with every frame.
func (a *Account) Under() bool {
	held := a.held.Load()
	return held == 0 || held <= a.left()/2
}
