package jobcmd

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder"
)

// TestStatusIsText checks that the name of a stranger's job sends no escape sequence to the
// terminal.
func TestStatusIsText(t *testing.T) {
	const evil = "x\x1b[2J\r\n\u202eok"
	traffic := []forwarder.Traffic{{From: evil, To: evil}}
	s := forwarder.Status{Addresses: []string{evil},
		Jobs: []forwarder.JobStatus{{Job: evil, State: evil, Missing: evil, Refused: evil, Reason: evil,
			Clusters:   []forwarder.ClusterStatus{{Name: evil, Size: 1, Host: evil, Arch: evil, Origin: evil}},
			Forwarders: []string{evil}, Traffic: traffic}},
		Past: []forwarder.Summary{{Job: evil, Reason: evil, Traffic: traffic}}}
	var out bytes.Buffer
	if err := writeStatus(&out, s, nil); err != nil {
		t.Fatal(err)
	}
	if bytes.ContainsAny(out.Bytes(), "\x1b\r\u202e") {
		t.Errorf("got %q", out.String())
	}
	if n := bytes.Count(out.Bytes(), []byte(`x\x1b[2J\r\n\u202eok`)); n != 17 {
		t.Errorf("%d of 17 texts in %q", n, out.String())
	}
}

// TestStatusHasFailuresAndLevel checks that the status has the refused, damaged, lost and
// retransmitted frames, and the level of a job.
func TestStatusHasFailuresAndLevel(t *testing.T) {
	again := forwarder.Traffic{From: "a", To: "b", ResentFrames: 4}
	s := forwarder.Status{Jobs: []forwarder.JobStatus{{Job: "j", Level: "sealed", LostLinks: 3, BadFrames: 1,
		Traffic: []forwarder.Traffic{again}}},
		Totals: forwarder.Totals{Refused: map[string]uint64{"no ticket": 2, "layout": 0}, LostLinks: 5, LostTrunks: 6,
			BadFrames: 7, Traffic: forwarder.Traffic{ResentFrames: 8}}}
	var out bytes.Buffer
	if err := writeStatus(&out, s, nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"level sealed\n", "refused since the start: 2: no ticket\n",
		"since the start 5 links of ranks and 6 to other forwarders lost, 7 damaged frames, 8 frames sent again\n",
		"3 links lost and reconnected, or lost for a while; 1 of them because of damaged frames; 4 frames sent again\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// TestStatusHasWaysAsReported checks that the status says of traffic over connections in the kernel
// only that ranks report it, or that none has.
func TestStatusHasWaysAsReported(t *testing.T) {
	job := forwarder.JobStatus{Job: "j", Ways: 5, Doors: 2, Kernel: forwarder.KernelTraffic{Messages: 7, PayloadBytes: 430}}
	unused := forwarder.JobStatus{Job: "k", Ways: 5, WaysUnused: true}
	var out bytes.Buffer
	if err := writeStatus(&out, forwarder.Status{Jobs: []forwarder.JobStatus{job, unused}}, nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ranks were told 5 ports, of which 2 are open now; they report 7 messages with 430 bytes over them\n",
		"no rank has reported traffic over these ports: does a firewall"} {
		if strings.Count(out.String(), want) != 1 {
			t.Errorf("not one %q in\n%s", want, out.String())
		}
	}
}

// TestStatusHasRatesAndLimits checks that with an earlier status, directions have a rate, and that
// the site that limits a job is named.
func TestStatusHasRatesAndLimits(t *testing.T) {
	at := func(second int64, moved uint64, blocked float64) forwarder.Status {
		return forwarder.Status{Now: time.Unix(second, 0), Jobs: []forwarder.JobStatus{{Job: "j", State: "running",
			Clusters: []forwarder.ClusterStatus{{Name: "a", Size: 1}, {Name: "b", Size: 1, Blocked: blocked}},
			Traffic:  []forwarder.Traffic{{From: "a", To: "b", PayloadBytes: moved}}}}}
	}
	before := at(10, 1e6, 0)
	var out bytes.Buffer
	if err := writeStatus(&out, at(12, 5e6, 1), &before); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2 MB/s", "limited by cluster b: its links were full 50 % of the time"} {
		if !bytes.Contains(out.Bytes(), []byte(want)) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// TestStatusNamesLostClusters checks that the clusters which a job has lost are named, with the
// time and, as far as it is known, the reason.
func TestStatusNamesLostClusters(t *testing.T) {
	lost := []forwarder.LostCluster{{Cluster: "b", At: time.Unix(7, 0), Reason: "cluster b is\nwhy"}, {Cluster: "c", At: time.Unix(9, 0)}}
	s := forwarder.Status{Now: time.Unix(10, 0), Totals: forwarder.Totals{Lost: 4},
		Jobs: []forwarder.JobStatus{{Job: "j", State: "running", Lost: lost[:1]}},
		Past: []forwarder.Summary{{Job: "k", OK: true, Lost: lost[1:]}}}
	var out bytes.Buffer
	if err := writeStatus(&out, s, nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  cluster b was lost 3s ago: cluster b is", "ended well\n  cluster c was lost 1s ago\n",
		"since the start 4 clusters lost"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "is\nwhy") {
		t.Errorf("a reason breaks the line in\n%s", out.String())
	}
}
