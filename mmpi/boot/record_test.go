package boot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/traffic/trace"
)

// burn uses processor time.
func burn(d time.Duration) {
	for begun := processorTime(); processorTime() < begun+d; {
	}
}

// TestRecordingOmitsWaits checks that a recording has the processor time outside of waits.
func TestRecordingOmitsWaits(t *testing.T) {
	r := newRecording(t.TempDir()+"/part-", 3, "host")
	const long = 20 * time.Millisecond
	burn(long)
	r.Waits(0, true)
	before := r.computed()
	burn(long)
	r.Waits(0, true) // a wait inside the first one
	burn(long)
	r.Waits(0, false)
	if during := r.computed(); before < long || during != before {
		t.Errorf("%v were computed, %v in waits", before, during-before)
	}
	r.Waits(0, false)
	after := r.computed()
	burn(long)
	if last := r.computed(); after-before > long/2 || last-after < long {
		t.Errorf("%v were computed in waits, %v after them", after-before, last-after)
	}
}

// TestEarlyMessageIsRecordedAtNextLook checks that a message that arrives while the program does
// not wait is recorded when it looks.
func TestEarlyMessageIsRecordedAtNextLook(t *testing.T) {
	dir := t.TempDir() + "/"
	sender, r := newRecording(dir+"part-", 0, "there"), newRecording(dir+"part-", 1, "here")
	for i := range 4 {
		sender.Sent(time.Duration(i), 1, 1)
	}
	r.Arrived(10, 0)
	r.Arrived(11, 0)
	r.Waits(20, true)
	r.Arrived(21, 0)
	r.Waits(22, false)
	r.Arrived(30, 0)
	if err := errors.Join(sender.Close(40), r.Close(40)); err != nil {
		t.Fatal(err)
	}
	var parts []io.Reader
	for i := range 2 {
		part, err := os.ReadFile(fmt.Sprintf("%spart-%d", dir, i))
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, bytes.NewReader(part))
	}
	x, unmatched, err := trace.Merge("job", []trace.Cluster{{Name: "a", Ranks: 1}, {Name: "b", Ranks: 1}}, parts)
	if err != nil || unmatched > 0 {
		t.Fatalf("%d unmatched, %v", unmatched, err)
	}
	var ends []int64
	for _, m := range x.Messages {
		ends = append(ends, m.End)
	}
	if want := []int64{20, 20, 21, 40}; !slices.Equal(ends, want) {
		t.Errorf("messages were there at %v, want %v", ends, want)
	}
}

// TestRecording checks that an error in writing the recording is reported when the engine finishes.
func TestRecording(t *testing.T) {
	dir := t.TempDir() + "/"
	r := newRecording(dir+"part-", 3, "host")
	r.Sent(5, 1, 100)
	r.Received(9, 1)
	r.Sent(0, 2, 7)
	if err := r.Close(9); err != nil {
		t.Error(err)
	}
	if err := newRecording(dir+"none/part-", 3, "host").Close(0); err == nil ||
		!strings.Contains(err.Error(), "recording traffic") {
		t.Errorf("%v", err)
	}
}

// TestRecordFollowsNoLink checks that a rank does not write its part through a link at a
// predictable name.
func TestRecordFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	if err := os.WriteFile(precious, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(precious, filepath.Join(dir, "rank3")); err != nil {
		t.Fatal(err)
	}
	if err := newRecording(filepath.Join(dir, "rank"), 3, "h").Close(0); err == nil {
		t.Error("no error")
	}
	if b, err := os.ReadFile(precious); err != nil || string(b) != "kept" {
		t.Errorf("the file that the link leads to has %q, %v", b, err)
	}
}
