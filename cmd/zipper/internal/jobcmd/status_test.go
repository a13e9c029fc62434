package jobcmd

import (
	"bytes"
	"testing"

	"github.com/leidenzipper/zipper/forwarder"
)

// TestStatusIsText: whatever strangers call their jobs, the terminal gets no escape sequence.
func TestStatusIsText(t *testing.T) {
	const evil = "x\x1b[2J\r\n\u202eok"
	traffic := []forwarder.Traffic{{From: evil, To: evil}}
	s := forwarder.Status{Addresses: []string{evil},
		Jobs: []forwarder.JobStatus{{Job: evil, State: evil, Missing: evil, Refused: evil, Reason: evil,
			Clusters: []forwarder.ClusterStatus{{Name: evil, Size: 1}}, Forwarders: []string{evil}, Traffic: traffic}},
		Past: []forwarder.Summary{{Job: evil, Reason: evil, Traffic: traffic}}}
	var out bytes.Buffer
	if err := writeStatus(&out, s); err != nil {
		t.Fatal(err)
	}
	if bytes.ContainsAny(out.Bytes(), "\x1b\r\u202e") {
		t.Errorf("got %q", out.String())
	}
	if n := bytes.Count(out.Bytes(), []byte(`x\x1b[2J\r\n\u202eok`)); n != 14 {
		t.Errorf("%d of 14 texts in %q", n, out.String())
	}
}
