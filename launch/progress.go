package launch

import (
	"context"
	"time"
)

// showProgress calls show with the ranks that a job waits for while it gathers over the forwarder
// of this run, beginning a while after its start, and at the end with an empty string. stop ends
// that early.
func showProgress(fwd Forwarder, show func(missing string)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer show("")
		t := time.NewTicker(progressStep)
		defer t.Stop()
		for begin := time.Now(); ; {
			select {
			case <-ctx.Done():
				return
			case now := <-t.C:
				v := fwd.View()
				switch {
				case v.Started || v.Ended:
					return
				case now.Sub(begin) < progressFrom:
				case v.Known:
					show(v.Missing)
				default:
					show("all clusters")
				}
			}
		}
	}()
	return func() { cancel(); <-over }
}
