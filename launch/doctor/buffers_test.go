package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestBuffersAreReadFromProc(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"tcp_wmem": "4096\t16384\t4194304\n", "tcp_rmem": "4096 131072\n",
		"tcp_slow_start_after_idle": "1\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if b := buffers(dir); b != (Buffers{Send: 4194304, Restart: true}) {
		t.Errorf("%+v", b)
	}
	for _, c := range []struct{ text, want string }{{"1000\n", "1000"}, {"-1\n", "0"}, {"", "0"}} {
		if err := os.MkdirAll(filepath.Join(dir, "eth0"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "eth0", "speed"), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if n := speed(dir, "eth0"); (c.want == "0") != (n == 0) {
			t.Errorf("%q: %d Mbit/s", c.text, n)
		}
	}
}

// TestSmallBuffersAreReportedWithTheFix checks that buffers too small for the path are reported
// with the line that fixes them, and that other buffers are not reported.
func TestSmallBuffersAreReportedWithTheFix(t *testing.T) {
	at := func(mbit, send, receive int) *Hello {
		return &Hello{Host: "a1", Addresses: []Address{{Speed: 100}, {Speed: mbit}},
			Buffers: Buffers{Send: send, Receive: receive}}
	}
	for _, c := range []struct {
		h    *Hello
		rtt  time.Duration
		want string
	}{
		{at(1000, 4<<20, 6<<20), time.Millisecond, ""},
		{at(1000, 4<<20, 6<<20), 20 * time.Millisecond, ""},
		{at(1000, 4<<20, 8<<20), 40 * time.Millisecond, "net.ipv4.tcp_wmem='4096 16384 7000000'"},
		{at(10000, 4<<20, 6<<20), 40 * time.Millisecond, "net.ipv4.tcp_wmem='4096 16384 70000000' net.ipv4.tcp_rmem='4096 131072 70000000'"},
		{at(10000, 0, 0), 40 * time.Millisecond, ""},
		{&Hello{Buffers: Buffers{Send: 1, Receive: 1}}, time.Second, ""},
	} {
		detail, advice := narrow(c.h, c.rtt)
		if !strings.HasSuffix(advice, c.want) || (advice == "") != (c.want == "") || (detail == "") != (c.want == "") {
			t.Errorf("%v over %v: %q, %q", c.h, c.rtt, detail, advice)
		}
	}
}

// TestConnectionsThatSlowDownAreReported checks that idle connections that become slow are reported
// for a distant host, and not for a near one.
func TestConnectionsThatSlowDownAreReported(t *testing.T) {
	for _, c := range []struct {
		restart bool
		rtt     time.Duration
		want    string
	}{{true, 40 * time.Millisecond, "tcp_slow_start_after_idle=0"}, {true, time.Millisecond, ""},
		{false, time.Second, ""}} {
		detail, advice := cools(&Hello{Host: "a1", Buffers: Buffers{Restart: c.restart}}, c.rtt)
		if !strings.HasSuffix(advice, c.want) || (advice == "") != (c.want == "") || (detail == "") != (c.want == "") {
			t.Errorf("%+v: %q, %q", c, detail, advice)
		}
	}
}
