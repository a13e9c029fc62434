// Package budget bounds the memory that connections have in a forwarder: what waits for
// destinations that do not take it, and frames that have come in part. One Budget is for the
// process, one for each job. At the limit nothing is thrown away and nobody is closed: whoever has
// more than what is left is not read for a while, so its own TCP connection holds it back, and all
// others go on (dynamic thresholds: Choudhury and Hahne, IEEE/ACM Transactions on Networking 6,
// 1998). With n such connections each comes to 1/(n+1) of the limit, so there is always something
// left.
package budget

import (
	"sync"
	"sync/atomic"
)

// Budget is how much may be kept. Safe for concurrent use.
type Budget struct {
	limit atomic.Int64
	used  atomic.Int64
	peak  atomic.Int64
}

// New makes a budget of so many bytes.
func New(limit int64) *Budget {
	b := new(Budget)
	b.SetLimit(limit)
	return b
}

// SetLimit changes how many bytes may be kept. What is kept stays.
func (b *Budget) SetLimit(limit int64) { b.limit.Store(limit) }

// Limit is how many bytes may be kept.
func (b *Budget) Limit() int64 { return b.limit.Load() }

// Used is how many bytes are.
func (b *Budget) Used() int64 { return b.used.Load() }

// Peak is the most that connections had at a time.
func (b *Budget) Peak() int64 { return b.peak.Load() }

// add books n bytes of a connection.
func (b *Budget) add(n int64) {
	used := b.used.Add(n)
	for peak := b.peak.Load(); used > peak && !b.peak.CompareAndSwap(peak, used); peak = b.peak.Load() {
	}
}

// Keep takes n bytes that are not a connection's, if there is so much left.
func (b *Budget) Keep(n int64) bool {
	if b.used.Add(n) > b.Limit() {
		b.used.Add(-n)
		return false
	}
	return true
}

// Drop gives back what Keep took.
func (b *Budget) Drop(n int64) { b.used.Add(-n) }

// Account is what one connection has. Safe for concurrent use, but for Open.
type Account struct {
	mu      sync.Mutex
	held    atomic.Int64
	process *Budget
	part    atomic.Pointer[Budget] // of the process: a job's
}

// Open sets from which budgets an account takes, before it is used.
func (a *Account) Open(process, part *Budget) {
	a.process = process
	a.part.Store(part)
}

// Move has an account take from another part of the process's budget.
func (a *Account) Move(part *Budget) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.held.Load()
	a.part.Load().used.Add(-n)
	a.part.Store(part)
	part.add(n)
}

// Take books n bytes, whether they fit or not; n may be negative.
func (a *Account) Take(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held.Add(n)
	a.process.add(n)
	a.part.Load().add(n)
}

// Held is how many bytes are booked.
func (a *Account) Held() int64 { return a.held.Load() }

// left is how much is left of the tighter budget; less than 0: more than all of it is in use.
func (a *Account) left() int64 {
	part := a.part.Load()
	return min(a.process.Limit()-a.process.Used(), part.Limit()-part.Used())
}

// Over reports whether the connection has so much that it is not to be read.
func (a *Account) Over() bool {
	held := a.held.Load()
	return held > 0 && held > a.left()
}

// Under reports whether one that was not read is to be read again: some time after it is no longer
// Over, so that this does not change with every frame.
func (a *Account) Under() bool {
	held := a.held.Load()
	return held == 0 || held <= a.left()/2
}
