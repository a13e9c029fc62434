package facts

import "testing"

// These are the facts of processes on x86-64 and aarch64 Linux, with and without Fortran.
const (
	x86     = Word(0x01423321)
	x86True = Word(0x11423321)
	arm     = Word(0x02423321)
	armTrue = Word(0x22423321)
)

func TestFactsFit(t *testing.T) {
	for _, c := range []struct {
		name string
		f, g Word
		want string
	}{
		{"equal", x86, x86, ""},
		{"other long double", x86, arm, ""},
		{"no data", 0, arm, ""},
		{"unknown .true.", x86True, arm, ""},
		{"other .true.", x86True, armTrue, "the values of Fortran's .true. differ: use Fortran compilers, or options of them, with the same value"},
		{"other byte order", x86, x86 ^ 3, "the byte orders differ"},
		{"other size of long", x86, x86 ^ 0x100, "the sizes of types differ"},
		{"two doubles", x86, 0x03423321, "the formats of long double differ, and only x87 and binary128 can be converted"},
	} {
		if got := c.f.Fits(c.g); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if got := c.g.Fits(c.f); got != c.want {
			t.Errorf("%s, reversed: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestMixedNeedsTwoFormats(t *testing.T) {
	if Mixed([]Word{x86, 0, x86True}) || Mixed(nil) {
		t.Error("mixed with one format")
	}
	if !Mixed([]Word{0, x86, arm}) {
		t.Error("not mixed with two formats")
	}
}

func TestFactsText(t *testing.T) {
	want := "little endian, int 4, long 8, pointer 8, wchar_t 4, long double 16 bytes (x87), .true. is 1"
	if got := x86True.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
