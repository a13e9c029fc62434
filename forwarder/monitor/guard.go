package monitor

import (
	"net"
	"net/http"
)

// guard refuses requests from pages of other sites. A browser on this host reaches the loopback
// address for any page: by a link or a script (Sec-Fetch-Site), or in a frame. A page may also have
// a name that resolves to 127.0.0.1, which makes its script one of this site. So a request that
// arrives at the loopback address must name that address.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy",
			"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		site := r.Header.Get("Sec-Fetch-Site")
		// shows the page to the user, but reveals nothing to the other site
		byLink := r.Header.Get("Sec-Fetch-Mode") == "navigate"
		if local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); local != nil &&
			local.IP.IsLoopback() && !loopback(r.Host) {
			http.Error(w, "this address is for its own host: open it as http://localhost or http://127.0.0.1",
				http.StatusForbidden)
			return
		}
		if site != "" && site != "same-origin" && site != "none" && !byLink {
			http.Error(w, "pages of other sites may not read this", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// loopback reports whether a Host header names this host by its loopback address.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip.IsLoopback()
}
