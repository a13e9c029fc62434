package monitor

import (
	"embed"
	"io/fs"
	"net/http"
	"time"
)

// The page for users is index.html, its style and its script, without any content of other sites.
// Its data arrives as server-sent events (text/event-stream), a View each step.
//
//go:embed page
var pageFiles embed.FS

func (w *watch) addPage(mux *http.ServeMux) {
	files, err := fs.Sub(pageFiles, "page")
	if err != nil {
		panic(err) // cannot be: it is in the program
	}
	serve := http.FileServerFS(files)
	for _, name := range []string{"{$}", "page.css", "page.js", "icon.svg"} {
		mux.Handle("GET /"+name, serve)
	}
	mux.HandleFunc("GET /events", w.events)
}

// events answers a request of the page with a stream of views, until the browser closes the
// connection or the forwarder ends. If too many pages are open it answers at once with the status
// 503.
func (w *watch) events(out http.ResponseWriter, r *http.Request) {
	next, leave := w.subscribe()
	if next == nil {
		http.Error(out, "too many pages are open here: close some", http.StatusServiceUnavailable)
		return
	}
	defer leave()
	out.Header().Set("Content-Type", "text/event-stream")
	c := http.NewResponseController(out)
	for {
		select {
		case <-r.Context().Done():
			return
		case text, ok := <-next:
			if !ok {
				return
			}
			_ = c.SetWriteDeadline(time.Now().Add(writeTime)) // where there is none it cannot be set
			for _, part := range [][]byte{[]byte("data: "), text, []byte("\n\n")} {
				if _, err := out.Write(part); err != nil {
					return
				}
			}
			if c.Flush() != nil {
				return
			}
		}
	}
}
