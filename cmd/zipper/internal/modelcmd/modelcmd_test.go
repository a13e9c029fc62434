package modelcmd

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/cmd/zipper/internal/clikit"
)

const lab = `
name: lab
clusters:
  - {name: a, hosts: 2, nic: 1000 MB/s}
  - {name: b, hosts: 2, nic: 1000 MB/s}
zippers:
  - {name: z, cores: 1, ports: {a: 1000 MB/s, b: 1000 MB/s}, forwarder: {copy: 500 MB/s}}
`

// Ranks 0, 2 and ranks 1, 3 are pairs; in order all their messages would cross.
const recorded = `zipper-trace 1
job pairs
cluster a 2
cluster b 2
message 0 1000 0 2 100000000
message 0 1000 1 3 100000000
message 1000 2000 2 0 50000000
end 6
`

func zipper(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	app := &cli.App{Name: "zipper", Writer: &out, ErrWriter: &out, DisableSliceFlagSeparator: true,
		ExitErrHandler: func(*cli.Context, error) {},
		Commands:       []*cli.Command{Predict(), Simulate(), Plan()}}
	err := app.Run(append([]string{"zipper"}, args...))
	return out.String(), err
}

func files(t *testing.T, contents map[string]string) func(string) string {
	t.Helper()
	dir := t.TempDir()
	for name, s := range contents {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return func(name string) string { return filepath.Join(dir, name) }
}

func TestPredictAndPlan(t *testing.T) {
	at := files(t, map[string]string{"lab.yaml": lab, "job.trace": recorded, "one.txt": "a1 b1 500MB name=one\n"})
	out, err := zipper(t, "predict", at("lab.yaml"), at("one.txt"))
	if err != nil || !strings.Contains(out, "1 messages in 1 s; bottleneck z.cpu.a>b") {
		t.Errorf("%v\n%s", err, out)
	}
	for _, arg := range []string{"ring", "random:d=2,seed=5,size=3MB", at("job.trace")} {
		for _, rule := range []string{"max-min", "zhu", "penalty"} {
			if out, err := zipper(t, "predict", "--sharing", rule, at("lab.yaml"), arg); err != nil ||
				!strings.Contains(out, "rule "+rule) {
				t.Errorf("%s: %v\n%s", arg, err, out)
			}
		}
	}
	out, err = zipper(t, "plan", "--json", "--output", at("ranks"), at("lab.yaml"), at("job.trace"))
	if err != nil {
		t.Fatal(err)
	}
	var r planReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	// Before: 0>2 and 1>3 share 500 MB/s (0.4 s), then 2>0 alone (0.1 s).
	// After: both at 1000 MB/s, then 2>0.
	if !r.Exact || r.CrossingBefore != 250e6 || r.CrossingAfter != 0 || r.Before < .499 || r.Before > .501 ||
		r.After < .149 || r.After > .151 {
		t.Errorf("%+v", r)
	}
	if r.Order != "a,b,a,b" {
		t.Errorf("order %s", r.Order)
	}
	for name, want := range map[string]string{
		"ranks":            "# RANK HOST CLUSTER\n0 a1 a\n1 b1 b\n2 a2 a\n3 b2 b\n",
		"ranks.a.hosts":    "a1\na2\n",
		"ranks.b.hosts":    "b1\nb2\n",
		"ranks.b.rankfile": "rank 0=b1 slot=0\nrank 1=b2 slot=0\n",
	} {
		if b, err := os.ReadFile(at(name)); err != nil || string(b) != want {
			t.Errorf("%s: %v, %q, want %q", name, err, b, want)
		}
	}
	out, err = zipper(t, "predict", "--json", "--ranks", at("ranks"), "--picture", at("p.svg"), at("lab.yaml"),
		at("job.trace"))
	var p struct {
		Makespan float64 `json:"makespan_s"`
	}
	if err != nil || json.Unmarshal([]byte(out), &p) != nil || p.Makespan != r.After {
		t.Errorf("predicted %v with the plan, the plan says %v (%v)", p.Makespan, r.After, err)
	}
	if b, err := os.ReadFile(at("p.svg")); err != nil || !bytes.Contains(b, []byte("<svg")) {
		t.Errorf("picture: %v", err)
	}
	out, err = zipper(t, "plan", "--pin", "0=a", "--pin", "2=b,z", "--together", "1,3", at("lab.yaml"), at("job.trace"))
	if err != nil || !strings.Contains(out, "1 ranks on z") || !strings.Contains(out, "ranks on zipper nodes: [2]") ||
		!strings.Contains(out, "N*): 4") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestErrorsSayWhere(t *testing.T) {
	at := files(t, map[string]string{"lab.yaml": lab, "bad.yaml": "clusters:\n  - {name: a, nic: 0}\n",
		"bad.trace": "zipper-trace 1\nnonsense\n",
		"bad.txt":   "a1 b1 5\na1 q7 5\n", "ranks": "0 a1\n0 a2\n"})
	for _, x := range []struct {
		want  string
		usage bool
		args  []string
	}{
		{"bad.yaml: line 2: capacity", false, []string{"predict", at("bad.yaml"), "ring"}},
		{"bad.trace: line 2: unknown record", false, []string{"predict", at("lab.yaml"), at("bad.trace")}},
		{"line 2: unknown host \"q7\"", false, []string{"predict", at("lab.yaml"), at("bad.txt")}},
		{"ranks: line 2: rank 0 is placed twice", false, []string{"predict", "--ranks", at("ranks"), at("lab.yaml"),
			"ring"}},
		{"neither a file nor a pattern", false, []string{"predict", at("lab.yaml"), "circle"}},
		{"neither a trace nor a pattern", false, []string{"plan", at("lab.yaml"), "circle"}},
		{"want PLATFORM", true, []string{"predict", at("lab.yaml")}},
		{"want PLATFORM", true, []string{"plan"}},
		{"--compute NaN", true, []string{"predict", "--compute", "NaN", at("lab.yaml"), "ring"}},
		{"--pin 9=a", true, []string{"plan", "--pin", "9=a", at("lab.yaml"), "ring"}},
		{"named \"q\"", true, []string{"plan", "--pin", "1=q", at("lab.yaml"), "ring"}},
		{"--work", true, []string{"plan", "--work", "long", at("lab.yaml"), "ring"}},
		{"use max-min", false, []string{"predict", "--sharing", "guess", at("lab.yaml"), "ring"}},
		{"use svg or png", false, []string{"predict", "--picture", at("x.gif"), at("lab.yaml"), "ring"}},
	} {
		out, err := zipper(t, x.args...)
		if err == nil || !strings.Contains(err.Error(), x.want) || clikit.IsUsage(err) != x.usage {
			t.Errorf("%v: error %v, want one with %q\n%s", x.args, err, x.want, out)
		}
	}
}

// TestRecordedRanksStayInTheirClusters checks that a recorded job's ranks stay in their clusters,
// although the first one has room for more.
func TestRecordedRanksStayInTheirClusters(t *testing.T) {
	roomy := strings.Replace(lab, "hosts: 2", "hosts: 4", 1)
	at := files(t, map[string]string{"roomy.yaml": roomy,
		"other.yaml": strings.ReplaceAll(strings.ReplaceAll(roomy, "name: b", "name: c"), "b: 1000", "c: 1000"),
		"job.trace":  recorded})
	out, err := zipper(t, "predict", at("roomy.yaml"), at("job.trace"))
	if err != nil || !strings.Contains(out, "b1") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err = zipper(t, "plan", at("roomy.yaml"), at("job.trace")); err != nil ||
		!strings.Contains(out, "as recorded") || !strings.Contains(out, "238.4 MiB") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err = zipper(t, "plan", at("other.yaml"), at("job.trace")); err != nil ||
		!strings.Contains(out, "in order") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestExamplePlatformHasItsBottleneck checks that the example of the documentation is a platform,
// and that its bottleneck is the path between the clusters.
func TestExamplePlatformHasItsBottleneck(t *testing.T) {
	out, err := zipper(t, "predict", "../../../../examples/contention/platform.yaml", "ring:size=10MB")
	if err != nil || !strings.Contains(out, "10 messages") || !strings.Contains(out, "bottleneck z1.") {
		t.Errorf("%v, %s", err, out)
	}
}

// TestSlowerPlanIsNotCalledBest checks that a plan that is slower by the prediction is not called
// the best.
func TestSlowerPlanIsNotCalledBest(t *testing.T) {
	for after, best := range map[float64]bool{1: true, 2: true, 3: false} {
		var out strings.Builder
		r := planReport{Exact: true, CrossingBefore: 2e6, CrossingAfter: 1e6, Before: 2, After: after}
		if err := r.table(&out, ""); err != nil || strings.HasPrefix(out.String(), "the best plan") != best ||
			strings.Contains(out.String(), "slower than ranks in order") == best {
			t.Errorf("%v\n%s", err, &out)
		}
	}
}
