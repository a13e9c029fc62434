package monitor

import (
	"context"
	"fmt"
	"net/http"
)

// health reports to load balancers and monitors whether the forwarder accepts new jobs. It answers
// 200 if so, and 503 if it is drained or does not respond.
func health(w http.ResponseWriter, r *http.Request, f Source) {
	ctx, cancel := context.WithTimeout(r.Context(), aliveWithin)
	defer cancel()
	word, status := "ok", http.StatusOK
	switch {
	case f.Alive(ctx) != nil: // checked before Status, which would wait as well
		word, status = "stands still", http.StatusServiceUnavailable
	case f.Status().Draining:
		word, status = "draining", http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintln(w, word)
}
