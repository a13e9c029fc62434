package e2e

import (
	"encoding/json"
	"net"
	"net/http"
	"testing"
)

// TestImpostorSignalsNobody checks that drain and reload send no signal to a forwarder that another
// process names in an answer of its own: root would send it to a forwarder of any user.
func TestImpostorSignalsNobody(t *testing.T) {
	b := New(t)
	f := b.StartForwarder("--status", "127.0.0.1:0")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		// Serve returns when the listener is closed.
		_ = http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{"pid": f.Cmd.Process.Pid, "config": "x"})
		}))
	}()
	for _, command := range []string{"drain", "reload"} {
		b.Fails(b.Run(nil, nil, b.Zipper, command, ln.Addr().String()), 1, "not a zipper forwarder on this host")
	}
}
