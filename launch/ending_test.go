package launch

import (
	"bytes"
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"
)

// remoteShell writes a script that stands for a remote shell and the zipper command on the other
// host, and returns its path. body may use $mark, the half's Mark.
func remoteShell(t *testing.T, body string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "rsh")
	script := "#!/bin/sh\nlength=$(head -c 5 | od -An -j1 -tu4)\n" + // the head of the pipe's first frame
		"mark=$(head -c $length | tr ',' '\\n' | sed -n 's/.*\"Mark\":\"\\([A-Z0-9]*\\)\".*/\\1/p')\n" + body
	if err := os.WriteFile(name, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestStatusOfTheRemoteShell checks that an exit status by which the remote shell says that there
// is no zipper is an error, unless zipper was started there.
func TestStatusOfTheRemoteShell(t *testing.T) {
	for _, status := range []string{"126", "127", "255"} {
		for _, started := range []bool{false, true} {
			body := "echo hello >&2\n"
			if started {
				body += "echo zipper ending $mark >&2\n"
			}
			h := Half{Mark: rand.Text()}
			h.Cluster.Name = "a"
			var stderr bytes.Buffer
			_, err := h.runRemote(context.Background(), []string{remoteShell(t, body+"exit "+status), "host"}, nil,
				new(bytes.Buffer), &stderr)
			if (err == nil) != started || stderr.String() != "hello\n" {
				t.Errorf("status %s, started %v: error %v, output %q", status, started, err, &stderr)
			}
		}
	}
}

// TestEndingFilter checks that the output around the line arrives, however it is divided.
func TestEndingFilter(t *testing.T) {
	for _, c := range []struct {
		in, out string
		found   bool
	}{
		{"some\nzipper ending X\n", "some\n", true},
		{"zipper ending Xmore\n", "zipper ending Xmore\n", false},
		{"zizipper ending X\nmore", "zimore", true},
		{"no end zipper ending", "no end zipper ending", false},
		{"", "", false},
	} {
		for n := 1; n <= 20; n++ {
			var out bytes.Buffer
			f := newEndingFilter(&out, "X")
			for b := []byte(c.in); len(b) > 0; {
				k := min(n, len(b))
				if _, err := f.Write(b[:k]); err != nil {
					t.Fatal(err)
				}
				b = b[k:]
			}
			if found := f.end(); found != c.found || out.String() != c.out {
				t.Errorf("%q in pieces of %d: %q, %v", c.in, n, &out, found)
			}
		}
	}
}

// TestEndingIsWrittenForTheShellsStatuses checks that other statuses add nothing to the output.
func TestEndingIsWrittenForTheShellsStatuses(t *testing.T) {
	for status, want := range map[int]string{0: "", 1: "", 125: "", 126: "zipper ending X\n", 127: "zipper ending X\n",
		255: "zipper ending X\n"} {
		var out bytes.Buffer
		if writeEnding(&out, "X", status); out.String() != want {
			t.Errorf("status %d: %q", status, &out)
		}
	}
}
