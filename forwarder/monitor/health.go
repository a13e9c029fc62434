package monitor

import (
	"context"
	"fmt"
	"net/http"
)

// health answers whether new jobs may be sent here, for what asks often: a load balancer, a
// monitor. 200: yes; 503: it is drained, or stands still.
func health(w http.ResponseWriter, r *http.Request, f Source) {
	ctx, cancel := context.WithTimeout(r.Context(), aliveWithin)
	defer cancel()
	word, status := "ok", http.StatusOK
	switch {
	case f.Alive(ctx) != nil: // before Status, which would wait, too
		word, status = "stands still", http.StatusServiceUnavailable
	case f.Status().Draining:
		word, status = "draining", http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintln(w, word)
}
