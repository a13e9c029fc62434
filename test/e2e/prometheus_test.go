package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/leidenzipper/zipper/internal/freeport"
)

// TestPrometheus lets a real Prometheus scrape two forwarders while a job runs over both. Its own
// tool accepts the metrics and the rules of dist/prometheus; each query of the dashboard and of the
// rules returns data; no label clashes with one of Prometheus's; and when a forwarder is gone the
// alert for that is raised, while its relayed traffic stays known.
func TestPrometheus(t *testing.T) {
	b := New(t)
	dir := t.TempDir()
	ab, bc := b.StartForwarder("--metrics", "--status", freePort(t)), b.StartForwarder("--metrics", "--status",
		freePort(t))
	statusOf := func(f *Forwarder) string { return f.Cmd.Args[len(f.Cmd.Args)-1] }
	p := startPrometheus(b, dir, statusOf(ab), statusOf(bc))
	prog := b.Compile(OpenMPI, "test/programs/c/stream.c")
	stop := filepath.Join(dir, "stop")
	args, _ := b.runArgs(Job{Clusters: []Cluster{A(2, OpenMPI), B(1, OpenMPI), C(1, OpenMPI)}, Flags: hopFlags(ab, bc)})
	job := b.Start(nil, nil, append(args, "--", prog, stop)...)
	b.WaitFor(time.Minute, "a rate", func() bool { return p.value("sum(rate(zipper_forwarder_payload_bytes_total[5s])) > 0") != "" })

	metrics := get(t, "http://"+statusOf(ab)+"/metrics")
	lint := exec.Command("promtool", "check", "metrics")
	lint.Stdin = strings.NewReader(metrics)
	if out, err := lint.CombinedOutput(); err != nil || strings.Contains(string(out), "zipper_") {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
	if m := regexp.MustCompile(`(?m)^.*[{,](job|instance|exported_\w+)=.*$`).FindString(metrics); m != "" {
		t.Errorf("a label of Prometheus's own: %s", m)
	}
	if n := strings.Count(metrics, "\nzipper_"); n > 300 {
		t.Errorf("%d series for one job", n)
	}

	queries := append(dashboardQueries(b), ruleQueries(b)...)
	if len(queries) < 30 {
		t.Errorf("only %d queries", len(queries))
	}
	for _, q := range queries {
		b.WaitFor(20*time.Second, "data for "+q, func() bool { return p.value(q) != "" })
	}
	if v := p.value(`{exported_job!=""} or {exported_instance!=""}`); v != "" {
		t.Errorf("Prometheus renamed labels: %s", v)
	}

	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.OK(job.Wait())
	b.WaitFor(20*time.Second, "the job to be counted", func() bool {
		return p.value(`sum(zipper_forwarder_jobs_ended_total{result="ok"}) == 2 and sum(zipper_forwarder_payload_bytes_total) > 0 unless sum(zipper_forwarder_job_info)`) != ""
	})
	bc.Signal(syscall.SIGKILL)
	b.WaitFor(20*time.Second, "the alert that a forwarder is gone", func() bool {
		return p.value(`ALERTS{alertname="ZipperForwarderDown",instance="`+statusOf(bc)+`"}`) != ""
	})
}

// prometheus is a running Prometheus.
type prometheus struct {
	b    *Bed
	addr string
}

// startPrometheus scrapes the targets each second, with the rules of dist/prometheus.
func startPrometheus(b *Bed, dir string, targets ...string) *prometheus {
	b.T.Helper()
	rules := filepath.Join(b.Root, "dist/prometheus/zipper.rules.yml")
	if out, err := exec.Command("promtool", "check", "rules", rules).CombinedOutput(); err != nil {
		b.T.Fatalf("promtool check rules: %v\n%s", err, out)
	}
	conf := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf(`global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - job_name: zipper
    static_configs: [{targets: ["%s"]}]
`, rules, strings.Join(targets, `", "`))
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		b.T.Fatal(err)
	}
	p := &prometheus{b, freePort(b.T)}
	proc := b.Start(nil, nil, "prometheus", "--config.file", conf, "--storage.tsdb.path", filepath.Join(dir, "data"),
		"--web.listen-address", p.addr, "--log.level", "warn")
	b.WaitFor(time.Minute, "Prometheus to be ready", func() bool {
		r, err := http.Get("http://" + p.addr + "/-/ready")
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
	b.T.Cleanup(func() {
		if b.T.Failed() {
			b.T.Logf("Prometheus says:\n%s", proc.Stderr())
		}
	})
	return p
}

// value returns the result of a query, or "" if there is none.
func (p *prometheus) value(query string) string {
	p.b.T.Helper()
	var answer struct {
		Status, Error string
		Data          struct{ Result []json.RawMessage }
	}
	text := get(p.b.T, "http://"+p.addr+"/api/v1/query?query="+url.QueryEscape(query))
	if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Status != "success" {
		p.b.T.Fatalf("query %s: %v, %s", query, err, text)
	}
	if len(answer.Data.Result) == 0 {
		return ""
	}
	return text
}

// dashboardQueries returns the queries of all panels, with Grafana's variables replaced.
func dashboardQueries(b *Bed) (list []string) {
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	decode(b, "dist/prometheus/dashboard.json", json.Unmarshal, &board)
	for _, p := range board.Panels {
		for _, t := range p.Targets {
			list = append(list, strings.NewReplacer("$instance", ".+", "$__rate_interval", "10s").Replace(t.Expr))
		}
	}
	return list
}

// threshold matches the end of an alert's expression: without it there is a value while all is
// well.
var threshold = regexp.MustCompile(` (>|==) [0-9.]+$`)

// ruleQueries returns the queries of all rules, those of alerts without the threshold.
func ruleQueries(b *Bed) (list []string) {
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Record, Expr string }
		}
	}
	decode(b, "dist/prometheus/zipper.rules.yml", yaml.Unmarshal, &rules)
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			value := threshold.ReplaceAllString(r.Expr, "")
			if r.Alert != "" && value == r.Expr {
				b.T.Errorf("alert %s has no threshold at its end: %s", r.Alert, r.Expr)
			}
			list = append(list, value)
			if r.Record != "" {
				list = append(list, r.Record)
			}
		}
	}
	return list
}

func decode(b *Bed, name string, unmarshal func([]byte, any) error, into any) {
	b.T.Helper()
	text, err := os.ReadFile(filepath.Join(b.Root, name))
	if err == nil {
		err = unmarshal(text, into)
	}
	if err != nil {
		b.T.Fatal(err)
	}
}

// freePort returns an address of the loopback interface on which no process listens.
func freePort(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", freeport.Of(t, 1)[0])
}

func get(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
