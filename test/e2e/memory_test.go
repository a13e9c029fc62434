package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/forwarder/forwardertest"
	"github.com/leidenzipper/zipper/internal/dial"
)

// stoppedOf lists the processes of a job that run a program and are stopped.
func stoppedOf(id, program string) (pids []int) {
	for _, p := range Processes(id) {
		_, err := running([]int{p}, program)
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p))
		if err == nil && strings.Contains(string(stat), ") T ") {
			pids = append(pids, p)
		}
	}
	return pids
}

// TestStoppedReceiversBoundMemory has receivers that have granted credit to their senders and then
// read nothing. Two forwarders in a row keep no more than a job may, and the senders are held back.
// Another job on the same forwarders runs undisturbed, and when the receivers go on every byte
// arrives. 32 pairs with ZIPPER_LONG=1.
func TestStoppedReceiversBoundMemory(t *testing.T) {
	b := New(t)
	const most = 4 << 20
	pairs := 4
	if long() {
		pairs = 32
	}
	var fs []*forwarder.Forwarder
	flags := []string{"--network", "wan"}
	for _, net := range []string{"a", "b"} {
		f, addr := forwardertest.Serve(t, forwarder.Config{Dial: dial.Open, JobMemory: most})
		fs = append(fs, f)
		flags = append(flags, "--zipper", net+"@"+addr+"+wan@"+addr)
	}
	prog := b.Compile(OpenMPI, "test/programs/c/stopped.c")
	other := b.Compile(OpenMPI, "test/programs/c/coll_basic.c")
	native := b.OK(b.Native(OpenMPI, 2*pairs, prog))
	args, id := b.runArgs(Job{Clusters: []Cluster{A(pairs, OpenMPI), B(pairs, OpenMPI)}, Flags: flags})
	p := b.Start(nil, nil, append(args, "--", prog, "stop")...)
	exe, err := filepath.EvalSymlinks(prog)
	if err != nil {
		t.Fatal(err)
	}
	b.WaitFor(time.Minute, "all receivers to stop", func() bool { return len(stoppedOf(id, exe)) == pairs })
	queued := func() (n int) {
		for _, f := range fs {
			for _, j := range f.Status().Jobs {
				n += j.QueuedBytes
			}
		}
		return n
	}
	b.Same(b.OK(b.Native(OpenMPI, 4, other)),
		b.OK(b.Zipped(Job{Clusters: []Cluster{A(2, OpenMPI), B(2, OpenMPI)}, Flags: flags}, other)), nil)
	// A forwarder reads up to a megabyte more of each link before it checks again.
	n := queued()
	if n > 2*(most+(pairs+1)<<20) || n < 1<<20 {
		t.Errorf("both forwarders keep %d bytes for receivers that do not read", n)
	}
	t.Logf("%d pairs whose receivers do not read: %d bytes wait in both forwarders", pairs, n)
	for _, pid := range stoppedOf(id, exe) {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	}
	b.Same(native, b.OK(p.Wait()), nil)
	b.NothingLeft(id)
}
