package monitor

import (
	"net"
	"net/http"
)

// guard keeps pages of other sites from what is shown here. A browser on this host reaches the
// loopback address for whatever page it shows: by a link or a script (Sec-Fetch-Site), or in a
// frame. A page may also have a name that leads to 127.0.0.1, and then its script is of this site.
// So a request that comes to the loopback address has to be for that address.
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
		byLink := r.Header.Get("Sec-Fetch-Mode") == "navigate" // shows the page, tells the other site nothing
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
