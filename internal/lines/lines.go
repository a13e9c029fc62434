// Package lines reads text files of records: one record per line, its fields separated by spaces.
package lines

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Each calls do for every line that has fields, with its number from 1. # begins a comment. Each
// ends with the first error, of the reader or of do, and adds the line to it. A line must be
// shorter than 64 KiB.
func Each(r io.Reader, do func(line int, fields []string) error) error {
	s := bufio.NewScanner(r)
	line := 0
	for s.Scan() {
		line++
		text, _, _ := strings.Cut(s.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		if err := do(line, fields); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("line %d: %w", line+1, err)
	}
	return nil
}
