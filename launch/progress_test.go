package launch

import (
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestProgress: what is missing is told after a while, until the job runs, or the run is over.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &changing{v: View{}}
		var told []string
		stop := showProgress(f, func(missing string) { told = append(told, missing) })
		time.Sleep(progressFrom + progressStep/2)
		f.set(View{Known: true, Missing: "rank 1 of cluster b"})
		time.Sleep(progressStep)
		f.set(View{Known: true, Started: true})
		time.Sleep(time.Minute)
		stop()
		if want := []string{"all clusters", "rank 1 of cluster b", ""}; !reflect.DeepEqual(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		told = nil
		stop = showProgress(f, func(missing string) { told = append(told, missing) })
		stop()
		if want := []string{""}; !reflect.DeepEqual(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

// changing is a forwarder that sees another thing after a while.
type changing struct {
	Forwarder
	mu sync.Mutex
	v  View
}

func (c *changing) View() View { c.mu.Lock(); defer c.mu.Unlock(); return c.v }
func (c *changing) set(v View) { c.mu.Lock(); defer c.mu.Unlock(); c.v = v }
