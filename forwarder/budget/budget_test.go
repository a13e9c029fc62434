package budget

import "testing"

// TestShares checks that only accounts that hold more than the rest are over, and that some of the
// budget is always left.
func TestShares(t *testing.T) {
	const limit, piece = 1 << 20, 1 << 10
	for _, hogs := range []int{1, 3, 31} {
		process, job := New(8*limit), New(limit)
		accounts := make([]Account, hogs+1)
		for i := range accounts {
			accounts[i].Open(process, job)
		}
		for more := true; more; {
			more = false
			for i := range hogs {
				if a := &accounts[i]; !a.Over() {
					a.Take(piece)
					more = true
				}
			}
		}
		want := int64(limit * hogs / (hogs + 1))
		if used := job.Used(); used < want-int64(hogs)*piece || used > want+int64(hogs)*piece ||
			used != process.Used() {
			t.Errorf("%d hogs have %d of %d, the process %d", hogs, used, limit, process.Used())
		}
		small := &accounts[hogs]
		small.Take(piece)
		if small.Over() {
			t.Errorf("beside %d hogs there is nothing left for %d bytes", hogs, piece)
		}
		a := &accounts[0]
		if a.Under() {
			t.Error("a hog is to be read again at once")
		}
		a.Take(-a.Held())
		if !a.Under() || a.Over() {
			t.Error("an empty account is not to be read")
		}
	}
}

// TestTwoJobs checks that the process's budget applies to the largest account of any job, and a
// job's budget only to its own accounts.
func TestTwoJobs(t *testing.T) {
	process, one, two := New(100), New(60), New(60)
	var a, b Account
	a.Open(process, one)
	b.Open(process, two)
	a.Take(40)
	b.Take(10)
	if !a.Over() || b.Over() {
		t.Error("40 of 60 are over, 10 of 60 are not")
	}
	b.Take(30) // 20 of the process's are left
	if !b.Over() {
		t.Error("40 where 20 are left are not over")
	}
	b.Move(one)
	if two.Used() != 0 || one.Used() != 80 || process.Used() != 80 {
		t.Errorf("after moving: %d, %d and %d", one.Used(), two.Used(), process.Used())
	}
	if !process.Keep(20) || process.Keep(1) {
		t.Error("20 of 100 are left")
	}
	process.Drop(20)
	b.Take(-40)
	a.Take(-40)
	if one.Used() != 0 || process.Used() != 0 {
		t.Error("something is left over")
	}
}
