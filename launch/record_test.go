package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/traffic/trace"
	"github.com/leidenzipper/zipper/launch/spec"
)

func TestRecordMerges(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "job.trace")
	r, err := newRecord(&spec.Job{ID: "j", Clusters: []spec.Cluster{{Name: "a", Ranks: 1}, {Name: "b", Ranks: 1}}},
		path)
	if err != nil {
		t.Fatal(err)
	}
	part := func(rank string, x *trace.Recorder) {
		f, err := os.Create(r.prefix() + rank)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := x.Write(f, "h"); err != nil {
			t.Fatal(err)
		}
	}
	zero, one := trace.NewRecorder(0, 10), trace.NewRecorder(1, 10)
	zero.Sent(5, 2, 1, 100)
	zero.Sent(6, 2, 1, 100)
	one.Received(9, 3, 0)
	part("0", zero)
	if _, err := r.merge(); err == nil || !strings.Contains(err.Error(), "ranks 1 left no record") {
		t.Errorf("without rank 1: %v", err)
	}
	part("0", zero)
	part("1", one)
	untimed, err := r.merge()
	if err != nil || untimed != 1 {
		t.Fatalf("%d messages without times, %v; want 1", untimed, err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	x, err := trace.Read(f)
	if err != nil || x.Matrix()[[2]int{0, 1}] != 200 || len(x.Messages) != 1 {
		t.Errorf("%+v %v", x, err)
	}
	r.clear()
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("files left: %v", left)
	}
}

func TestUnrecordableJobIsRefused(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	two := &spec.Job{Clusters: []spec.Cluster{{Name: "a", Ranks: 1}, {Name: "b", Ranks: 1}}}
	if _, err := newRecord(two, t.TempDir()); err == nil || !strings.Contains(err.Error(), "regular file") {
		t.Errorf("a directory to record to: %v", err)
	}
	if _, err := newRecord(two, fifo); err == nil || !strings.Contains(err.Error(), "regular file") {
		t.Errorf("a FIFO to record to: %v", err)
	}
	if _, err := newRecord(two, filepath.Join(t.TempDir(), "no", "such", "x")); err == nil {
		t.Error("a directory that is not there was accepted")
	}
	if _, err := newRecord(&spec.Job{Clusters: two.Clusters[:1]}, "x"); err == nil ||
		!strings.Contains(err.Error(), "two clusters") {
		t.Errorf("one cluster: %v", err)
	}
	ordered := &spec.Job{Clusters: two.Clusters, Order: []jobenv.Cluster{{Name: "b", Size: 1}, {Name: "a", Size: 1}}}
	if _, err := newRecord(ordered, filepath.Join(t.TempDir(), "trace")); err == nil ||
		!strings.Contains(err.Error(), "without a plan") {
		t.Errorf("with an order of ranks: %v", err)
	}
}
