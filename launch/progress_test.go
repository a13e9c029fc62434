package launch

import (
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestMissingRanksAreShownAfterAWhile checks that missing ranks are shown after a while, until the
// job runs or the run is over.
func TestMissingRanksAreShownAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &changing{v: View{}}
		var shown []string
		stop := showProgress(f, func(missing string) { shown = append(shown, missing) })
		time.Sleep(progressFrom + progressStep/2)
		f.set(View{Known: true, Missing: "rank 1 of cluster b"})
		time.Sleep(progressStep)
		f.set(View{Known: true, Started: true})
		time.Sleep(time.Minute)
		stop()
		if want := []string{"all clusters", "rank 1 of cluster b", ""}; !reflect.DeepEqual(shown, want) {
			t.Errorf("shown: %q, want %q", shown, want)
		}
		shown = nil
		stop = showProgress(f, func(missing string) { shown = append(shown, missing) })
		stop()
		if want := []string{""}; !reflect.DeepEqual(shown, want) {
			t.Errorf("shown: %q, want %q", shown, want)
		}
	})
}

// changing is a forwarder whose view changes after a while.
type changing struct {
	Forwarder
	mu sync.Mutex
	v  View
}

func (c *changing) View() View { c.mu.Lock(); defer c.mu.Unlock(); return c.v }
func (c *changing) set(v View) { c.mu.Lock(); defer c.mu.Unlock(); c.v = v }
