package monitor

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestGuard checks that pages of other sites get no answer in any way, and that this site's pages,
// programs and links do.
func TestGuard(t *testing.T) {
	s := httptest.NewServer(handlerOf(sample, nil))
	defer s.Close()
	for _, c := range []struct {
		what, host string
		header     http.Header
		status     int
	}{
		{"a program", "", nil, 200},
		{"a program that asks for localhost", "localhost:7476", nil, 200},
		{"IPv6", "[::1]:7476", nil, 200},
		{"this page", "", http.Header{"Sec-Fetch-Site": {"same-origin"}}, 200},
		{"typed", "", http.Header{"Sec-Fetch-Site": {"none"}}, 200},
		{"a link", "", http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"navigate"}}, 200},
		{"a script of another site", "", http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"cors"}}, 403},
		{"another port of this host", "", http.Header{"Sec-Fetch-Site": {"same-site"}, "Sec-Fetch-Mode": {"no-cors"}}, 403},
		{"a name that leads here", "evil.example:7476", nil, 403},
	} {
		r, err := http.NewRequest(http.MethodGet, s.URL+"/status", nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Header = c.header; c.header == nil {
			r.Header = http.Header{}
		}
		r.Host = c.host
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != c.status {
			t.Errorf("%s: %s, want %d", c.what, answer.Status, c.status)
		}
		if h := answer.Header; h.Get("Content-Security-Policy") == "" || h.Get("X-Frame-Options") != "DENY" ||
			h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: headers %v", c.what, h)
		}
	}
}
