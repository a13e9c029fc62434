package limits

import (
	"testing"
	"time"
)

// TestCutIsNoticedWithinPatience checks that a short time for noticing a cut network shortens the
// times of pings and of silence, and that a long one keeps their defaults.
func TestCutIsNoticedWithinPatience(t *testing.T) {
	for _, test := range []struct{ within, ping, silence time.Duration }{
		{4 * time.Second, time.Second, 4 * time.Second},
		{time.Minute, DefaultPing, DefaultSilence},
		{0, DefaultPing, DefaultSilence},
	} {
		var l Limits
		l.Notice(test.within)
		if l = l.WithDefaults(2); l.Ping != test.ping || l.Silence != test.silence {
			t.Errorf("%v: pings after %v, silence of %v", test.within, l.Ping, l.Silence)
		}
	}
}
