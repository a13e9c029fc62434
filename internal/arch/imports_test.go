// Package arch checks the import rules of ARCHITECTURE.md.
package arch

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/leidenzipper/zipper/"

// rules: packages at or below a path must not import packages at or below these. A dependency that is itself
// bound by a rule carries it on, so direct imports are enough.
var rules = []struct {
	of     string
	never  []string
	except []string
}{
	{"vrank", []string{module, "net", "os"}, nil},
	{"wire", []string{module, "net", "os"}, []string{"vrank"}},
	{"handshake", []string{"net", "os", "time", module + "transport", module + "mmpi", module + "forwarder"}, nil},
	{"collectives", []string{"net", module + "wire", module + "transport", module + "mmpi", "runtime/cgo"}, nil},
	{"rma", []string{module, "net", "os", "sync", "time", "runtime/cgo"}, nil},
	{"forwarder", []string{module + "mmpi", module + "cgo"}, nil},
	{"forwarder/loop", []string{module}, nil},
	{"forwarder/relay", []string{module}, []string{"forwarder/loop", "transport", "wire"}},
	{"transport", []string{module}, []string{"cgo/verbs"}},
	{"mmpi/engine", []string{module + "forwarder", "runtime/cgo", module + "cgo", module + "mmpi/boot", module + "jobenv", module + "dial",
		module + "traffic"}, nil},
	{"mmpi/boot", []string{module + "forwarder", "runtime/cgo", module + "cgo"}, nil},
	{"mmpi", []string{module + "forwarder"}, nil},
	{"contention", []string{"net", "runtime/cgo", module + "mmpi", module + "forwarder", module + "transport"}, nil},
	{"launch", []string{module + "mmpi", module + "forwarder", module + "bench"}, nil},
	{"launch/spec", []string{module + "launch"}, nil},
	{"launch/native", []string{module + "launch"}, []string{"launch/spec"}},
	{"launch/output", []string{module}, nil},
	{"internal/agent", []string{module}, nil},
	{"traffic", []string{module}, []string{"internal"}},
	{"cmd/zipper/internal/clikit", []string{module + "cmd", module + "forwarder", module + "bench", module + "contention"}, nil},
	{"cmd/zipper/internal/modelcmd", []string{module + "cmd", module + "launch", module + "forwarder"}, []string{"cmd/zipper/internal/clikit"}},
	{"cmd/zipper/internal/benchcmd", []string{module + "cmd/zipper/internal/jobcmd", module + "cmd/zipper/internal/modelcmd"}, nil},
	{"cmd/zipper/internal/jobcmd", []string{module + "cmd/zipper/internal/benchcmd", module + "cmd/zipper/internal/modelcmd"}, nil},
}

// only: packages that nobody but these, and what is below themselves, imports. Which transport an
// address is for dial knows alone; the others measure a transport, or test with it.
var only = []struct {
	of string
	by []string
}{
	{"transport/tcp", []string{"dial", "bench/contend", "forwarder/forwardertest"}},
	{"transport/shm", []string{"dial", "bench/netgauge"}},
	{"transport/verbs", []string{"dial", "bench/netgauge"}},
	{"transport/memnet", nil},
}

func TestImports(t *testing.T) {
	deps := packages(t)
	for _, r := range only {
		for pkg, imports := range deps {
			if allowed(pkg, append(r.by, r.of)) {
				continue
			}
			for _, dep := range imports {
				if below(dep, module+r.of) {
					t.Errorf("%s must not import %s: only %v may (ARCHITECTURE.md)", pkg, dep, r.by)
				}
			}
		}
	}
	for _, r := range rules {
		for pkg, imports := range deps {
			if !below(pkg, module+r.of) {
				continue
			}
			for _, dep := range imports {
				for _, n := range r.never {
					if (n == module && strings.HasPrefix(dep, module) || below(dep, n)) && !below(dep, module+r.of) && !allowed(dep, r.except) {
						t.Errorf("%s must not import %s (rule for %s in ARCHITECTURE.md)", pkg, dep, r.of)
					}
				}
			}
		}
	}
}

func below(pkg, path string) bool { return pkg == path || strings.HasPrefix(pkg, path+"/") }

func allowed(dep string, except []string) bool {
	for _, e := range except {
		if below(dep, module+e) {
			return true
		}
	}
	return false
}

// packages lists what every package of the module, tests left out, imports directly.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	m := map[string][]string{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		m[p.ImportPath] = p.Imports
	}
	if len(m) < 5 {
		t.Fatalf("go list found only %d packages", len(m))
	}
	return m
}
