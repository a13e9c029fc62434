package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

var le = binary.LittleEndian

// ErrTrailing means that there are bytes after the end of a body.
var ErrTrailing = errors.New("wire: bytes after the end of the frame")

// These are bounds of strings in bodies, in bytes.
const (
	MaxString = 4096 // any string
	MaxName   = 255  // names of job, cluster, host, library, data model
)

// exactly checks that a body of fixed size has that size.
func exactly(b []byte, n int) error {
	switch {
	case len(b) < n:
		return ErrShort
	case len(b) > n:
		return ErrTrailing
	}
	return nil
}

func parseHandle(b []byte) (uint64, error) {
	if err := exactly(b, 8); err != nil {
		return 0, err
	}
	return le.Uint64(b), nil
}

// appendString appends a u16 length and the bytes. It cuts a string that is too long at a rune's
// border.
func appendString(b []byte, s string) []byte {
	s = clip(s)
	return append(le.AppendUint16(b, uint16(len(s))), s...)
}

func clip(s string) string {
	if len(s) <= MaxString {
		return s
	}
	n := MaxString
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// reader parses a body. After the first failure all results are zero, and end returns the failure.
type reader struct {
	b   []byte
	err error
}

func (r *reader) take(n int) []byte {
	if r.err == nil && len(r.b) < n {
		r.err = ErrShort
	}
	if r.err != nil {
		return nil
	}
	p := r.b[:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) u16() uint16 {
	if p := r.take(2); p != nil {
		return le.Uint16(p)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if p := r.take(4); p != nil {
		return le.Uint32(p)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if p := r.take(8); p != nil {
		return le.Uint64(p)
	}
	return 0
}

func (r *reader) bytes(p []byte) { copy(p, r.take(len(p))) }

func (r *reader) string() string { return r.text(MaxString) }

// name reads a text that is shown to people. A character that cannot be printed is an error.
func (r *reader) name() string {
	s := r.text(MaxName)
	if strings.ContainsFunc(s, unprintable) {
		r.fail(fmt.Errorf("wire: name %q has characters that cannot be printed", s))
	}
	return s
}

func unprintable(c rune) bool { return !unicode.IsPrint(c) }

// Printable returns a text from another host in a form for people. It escapes unprintable
// characters as in Go, so that they neither move a cursor nor begin a line.
func Printable(s string) string {
	if !strings.ContainsFunc(s, unprintable) {
		return s
	}
	var b strings.Builder
	for _, c := range s {
		if unprintable(c) {
			q := strconv.QuoteRune(c)
			b.WriteString(q[1 : len(q)-1])
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

func (r *reader) text(limit int) string {
	n := int(r.u16())
	if n > limit {
		r.fail(fmt.Errorf("wire: string of %d bytes, at most %d allowed", n, limit))
	}
	p := r.take(n)
	if !utf8.Valid(p) {
		r.fail(errors.New("wire: string is not UTF-8"))
		return ""
	}
	return string(p)
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// end returns the first failure, or ErrTrailing if bytes are left.
func (r *reader) end() error {
	if r.err == nil && len(r.b) > 0 {
		r.err = ErrTrailing
	}
	return r.err
}

// Body is the body of a frame, which AppendFrame appends after a header.
type Body interface{ Append(b []byte) []byte }

// Control returns the header of a frame between the two ends of a link. AppendFrame sets its
// Length.
func Control(t Type) Header { return Header{Type: t, Src: Nobody, Dst: Nobody} }

// AppendFrame appends a whole frame to b: the header, with its Length and sums set, and the body
// (nil for none). It is for frames without a payload; the data path appends header and body itself.
func AppendFrame(b []byte, h Header, body Body) []byte {
	start := len(b)
	b = append(b, make([]byte, HeaderLen)...)
	if body != nil {
		b = body.Append(b)
	}
	h.Length, h.BodySum = uint32(len(b)-start-HeaderLen), Sum(b[start+HeaderLen:])
	h.Append(b[start:start])
	return b
}
