package account

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leidenzipper/zipper/forwarder"
)

// TestLog checks that each job has its line, also if the file is moved away meanwhile, and that the
// log has the records that cannot be written.
func TestLog(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "jobs")
	core, logged := observer.New(zap.ErrorLevel)
	if _, err := Open(filepath.Join(dir, "none", "jobs"), zap.NewNop()); err == nil ||
		!strings.Contains(err.Error(), "may write") {
		t.Errorf("no such directory: %v", err)
	}
	l, err := Open(name, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	const evil = "x\n{\"job\":\"other\"}"
	l.JobEnd(forwarder.Summary{Job: "one", OK: true, Messages: 7, Reason: evil})
	l.Close()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var s forwarder.Summary
	if err := json.Unmarshal(text, &s); err != nil || s.Job != "one" || s.Messages != 7 || s.Reason != evil ||
		strings.Count(string(text), "\n") != 1 {
		t.Errorf("record %q: %v", text, err)
	}
	if err := os.Rename(name, name+".1"); err != nil {
		t.Fatal(err)
	}
	l, err = Open(name, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		l.JobEnd(forwarder.Summary{Job: "more"})
	}
	l.Close()
	if text, _ := os.ReadFile(name); strings.Count(string(text), `"job":"more"`) != 100 {
		t.Errorf("%d bytes", len(text))
	}
	if l, err = Open(name, zap.New(core)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(name, 0o700); err != nil {
		t.Fatal(err)
	}
	l.JobEnd(forwarder.Summary{Job: "lost"})
	l.Close()
	if all := logged.All(); len(all) != 1 || !strings.Contains(string(all[0].ContextMap()["record"].(string)), "lost") {
		t.Errorf("the log has %v", all)
	}
}
