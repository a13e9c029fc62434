package lines

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestEach(t *testing.T) {
	stop := errors.New("stop")
	for _, c := range []struct {
		name, text, want, err string
	}{
		{"empty", "", "", ""},
		{"comments and blanks", "# one\n\n  \t\na b # c\n#d\ne\n", "4[a b] 6[e] ", ""},
		{"no last newline", "a\r\nb", "1[a] 2[b] ", ""},
		{"error", "a\n\nstop here\nb", "1[a] ", "line 3: stop"},
		{"too long", "a\n" + strings.Repeat("x", bufio.MaxScanTokenSize), "1[a] ", "line 2: " + bufio.ErrTooLong.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			err := Each(strings.NewReader(c.text), func(line int, f []string) error {
				if f[0] == "stop" {
					return stop
				}
				got += fmt.Sprintf("%d%v ", line, f)
				return nil
			})
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
				t.Errorf("error %v, want %q", err, c.err)
			}
		})
	}
}
