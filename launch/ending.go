package launch

import (
	"bytes"
	"fmt"
	"io"
	"slices"
)

// shellStatuses are the exit statuses by which a remote shell says that it could not start zipper:
// no login, a file that is not executable, no such file. A program may end with them, too.
var shellStatuses = []int{255, 126, 127}

// writeEnding writes to a half's standard error that zipper was started on its host, if the exit
// status of the half is one of shellStatuses. mark is Half.Mark.
func writeEnding(stderr io.Writer, mark string, status int) {
	if mark != "" && slices.Contains(shellStatuses, status) {
		// Without the line the launcher reports a missing zipper, as it did before.
		_, _ = fmt.Fprint(stderr, endingLine(mark))
	}
}

func endingLine(mark string) string { return "zipper ending " + mark + "\n" }

// endingFilter passes on a half's standard error without the line of writeEnding. It is not safe
// for concurrent use.
type endingFilter struct {
	to    io.Writer // receives the output
	line  []byte    // line of writeEnding
	held  []byte    // end of the output so far, if it is a beginning of line; otherwise empty
	found bool      // The line has arrived.
}

func newEndingFilter(to io.Writer, mark string) *endingFilter {
	return &endingFilter{to: to, line: []byte(endingLine(mark))}
}

// Write passes p on, except for bytes that may be the beginning of the line.
func (f *endingFilter) Write(p []byte) (int, error) {
	all := append(f.held, p...)
	if before, after, found := bytes.Cut(all, f.line); found {
		f.found = true
		all = slices.Concat(before, after)
	}
	keep := min(len(all), len(f.line)-1)
	for !bytes.HasPrefix(f.line, all[len(all)-keep:]) {
		keep--
	}
	out := all[:len(all)-keep]
	f.held = slices.Clone(all[len(all)-keep:])
	if len(out) > 0 {
		if _, err := f.to.Write(out); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// end passes on the bytes that were held back, and reports whether the line has arrived.
func (f *endingFilter) end() (found bool) {
	if len(f.held) > 0 {
		_, _ = f.to.Write(f.held) // Output that cannot be shown does not change the result.
		f.held = nil
	}
	return f.found
}
