package submit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/launch/spec"
)

// TestGate checks that a half goes on when it is told to, and otherwise ends with the reason: after
// its bound, when its files are gone, and where zipper is missing.
func TestGate(t *testing.T) {
	home := t.TempDir()
	h := &Half{Cluster: spec.Cluster{Name: "a", Zipper: "/bin/true"}, dir: "job"}
	pass := func(h *Half) (string, error) {
		cmd := exec.Command("sh")
		cmd.Env = append(os.Environ(), "HOME="+home)
		cmd.Stdin = strings.NewReader(h.gate(1) + "echo begins\n")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	word := filepath.Join(home, "job", "a.go")
	write(t, word, "wait\n")
	if out, err := pass(h); err == nil || !strings.Contains(out, "no word from zipper submit for 1 s") {
		t.Errorf("%v: %s", err, out)
	}
	write(t, word, "go\n")
	if out, err := pass(h); err != nil || out != "begins\n" {
		t.Errorf("%v: %s", err, out)
	}
	if err := os.Remove(word); err != nil {
		t.Fatal(err)
	}
	if out, err := pass(h); err == nil || strings.Contains(out, "begins") {
		t.Errorf("%v: %s", err, out)
	}
	h.Cluster.Zipper = "/no/zipper"
	if out, err := pass(h); err == nil || !strings.Contains(out, "there is no /no/zipper on") {
		t.Errorf("%v: %s", err, out)
	}
}
