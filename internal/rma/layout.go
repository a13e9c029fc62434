package rma

// Run is Count pieces of Len bytes. The first is Off bytes from an origin, and each other one
// Stride bytes after the one before.
type Run struct {
	Off    int64
	Len    uint32
	Count  uint32
	Stride int64
}

// Span is a piece of one element of a datatype: Len bytes, Off bytes from the element's origin.
type Span struct{ Off, Len int64 }

// Layout is Count elements of a datatype, each Extent bytes after the one before, in the order of
// the type map.
type Layout struct {
	Spans  []Span
	Extent int64
	Count  int64
}

// Size returns the number of data bytes.
func (l *Layout) Size() int64 {
	var n int64
	for _, s := range l.Spans {
		n += s.Len
	}
	return n * l.Count
}

// cursor walks over the data of a layout.
type cursor struct {
	Layout
	element int64
	span    int
	within  int64 // bytes of the span that have been passed
}

// maxPiece keeps the lengths of pieces within 32 bits.
const maxPiece = 1 << 30

// take describes the next bytes, at most max of them in at most runs runs (0 for any number), and
// returns their number.
func (c *cursor) take(max int64, runs int) (list []Run, n int64) {
	for n < max && c.element < c.Count {
		if len(c.Spans) == 0 {
			c.element = c.Count
			break
		}
		s := c.Spans[c.span]
		length := min(s.Len-c.within, max-n, maxPiece)
		if length > 0 {
			if !extend(list, c.element*c.Extent+s.Off+c.within, length) {
				if runs > 0 && len(list) == runs {
					break
				}
				list = append(list, Run{Off: c.element*c.Extent + s.Off + c.within, Len: uint32(length), Count: 1})
			}
			n += length
		}
		if c.within += length; c.within == s.Len {
			c.within = 0
			if c.span++; c.span == len(c.Spans) {
				c.span = 0
				c.element++
			}
		}
	}
	return list, n
}

// extend adds a piece to the last run and returns true, if the piece continues the run.
func extend(list []Run, off, length int64) bool {
	if len(list) == 0 {
		return false
	}
	r := &list[len(list)-1]
	switch {
	case r.Count == 1 && r.Off+int64(r.Len) == off && int64(r.Len)+length <= maxPiece:
		r.Len += uint32(length)
	case int64(r.Len) != length || r.Count == 1<<32-1:
		return false
	case r.Count == 1:
		r.Stride = off - r.Off
		r.Count = 2
	case r.Off+int64(r.Count)*r.Stride == off:
		r.Count++
	default:
		return false
	}
	return true
}

// Space is memory that layouts refer to. At returns n bytes, off bytes from its origin.
type Space interface {
	At(off int64, n int) []byte
}

// Device is a Space in memory of a device, which only Copy can write.
type Device struct {
	Space
	Copy func(to, from []byte) error
}

// Bytes is a Space that begins at its own first byte.
type Bytes []byte

// At implements Space.
func (b Bytes) At(off int64, n int) []byte { return b[off:][:n] }

// View is data in memory.
type View struct {
	Space Space
	Layout
}

// gather appends the data that runs describe to b.
func gather(b []byte, s Space, runs []Run) []byte {
	for _, r := range runs {
		for i := int64(0); i < int64(r.Count); i++ {
			b = append(b, s.At(r.Off+i*r.Stride, int(r.Len))...)
		}
	}
	return b
}

// total returns the number of bytes that runs describe.
func total(runs []Run) (n int64) {
	for _, r := range runs {
		n += int64(r.Len) * int64(r.Count)
	}
	return n
}

// scatter copies data from b to the places that runs describe.
func scatter(s Space, runs []Run, b []byte) error {
	d, device := s.(Device)
	for _, r := range runs {
		for i := int64(0); i < int64(r.Count); i++ {
			place := s.At(r.Off+i*r.Stride, int(r.Len))
			if !device {
				copy(place, b)
			} else if err := d.Copy(place, b[:len(place)]); err != nil {
				return err
			}
			b = b[len(place):]
		}
	}
	return nil
}
