// Package quantity parses and formats rates, sizes and times as people write them in files: "940
// Mbit/s", "64KiB", "50us". Values are exact.
package quantity

import (
	"fmt"
	"math/big"
	"regexp"
	"strings"
)

// form bounds the number of digits and the exponent, because an exact 1e999999999 would not fit
// into memory.
var form = regexp.MustCompile(`^([0-9]{1,18}(?:\.[0-9]{1,18})?(?:[eE][+-]?[0-9]{1,2})?)\s*([A-Za-zµ/]*)$`)

func parse(what, s string, unit func(string) (*big.Rat, bool)) (*big.Rat, error) {
	m := form.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return nil, fmt.Errorf("%q is no %s", s, what)
	}
	r, ok := new(big.Rat).SetString(m[1])
	if !ok {
		return nil, fmt.Errorf("%q is no %s", s, what)
	}
	u, ok := unit(m[2])
	if !ok {
		return nil, fmt.Errorf("%q: %s has no unit %q", s, what, m[2])
	}
	return r.Mul(r, u), nil
}

// prefix splits u, a unit in bytes or bits such as "MiB", into the factor of its decimal or binary
// prefix and the rest, such as "B".
func prefix(u string) (*big.Rat, string) {
	factor := int64(1)
	lower := strings.ToLower(u)
	for i, p := range []string{"k", "m", "g", "t"} {
		if strings.HasPrefix(lower, p) {
			base := int64(1000)
			u = u[1:]
			if strings.HasPrefix(strings.ToLower(u), "i") {
				base, u = 1024, u[1:]
			}
			for range i + 1 {
				factor *= base
			}
			break
		}
	}
	return new(big.Rat).SetInt64(factor), u
}

// Size parses a number of bytes exactly: "100", "64 KiB", "1MB". The result is 0 or more. It
// returns an error for any other text.
func Size(s string) (*big.Rat, error) {
	return parse("size", s, func(u string) (*big.Rat, bool) {
		f, rest := prefix(u)
		return f, rest == "B" || rest == "" || rest == "b" && u == "b"
	})
}

// Rate parses a number of bytes per second: "1e9", "2 GB/s", "125MBps", "940 Mbit/s", "1gbit",
// "1Gb/s" (B is a byte, b a bit; without "per second" a bit is written out). The result is 0 or
// more.
func Rate(s string) (*big.Rat, error) {
	return parse("rate", s, func(u string) (*big.Rat, bool) {
		f, rest := prefix(u)
		switch rest {
		case "", "B/s", "B", "Bps":
			return f, true
		case "bit", "bit/s", "bps", "b/s":
			return f.Quo(f, big.NewRat(8, 1)), true
		}
		return nil, false
	})
}

// Time parses a duration and returns it in seconds, exactly: "50us", "1.5ms", "2s", "0.1". The
// result is 0 or more. It returns an error for any other text.
func Time(s string) (*big.Rat, error) {
	return parse("time", s, func(u string) (*big.Rat, bool) {
		switch u {
		case "", "s":
			return big.NewRat(1, 1), true
		case "ms":
			return big.NewRat(1, 1e3), true
		case "us", "µs":
			return big.NewRat(1, 1e6), true
		case "ns":
			return big.NewRat(1, 1e9), true
		}
		return nil, false
	})
}

func scaled(v float64, base float64, units ...string) string {
	i := 0
	for i < len(units)-1 && (v >= base || v <= -base) {
		v, i = v/base, i+1
	}
	return fmt.Sprintf("%.4g %s", v, units[i])
}

// FormatRate returns a rate in bytes per second as text for people: "117.5 MB/s".
func FormatRate(bytesPerSecond float64) string {
	return scaled(bytesPerSecond, 1000, "B/s", "kB/s", "MB/s", "GB/s", "TB/s")
}

// FormatSize returns a number of bytes as text for people: "64 KiB".
func FormatSize(bytes float64) string {
	return scaled(bytes, 1024, "B", "KiB", "MiB", "GiB", "TiB")
}

// FormatTime returns a time in seconds as text for people: "1.25 ms".
func FormatTime(seconds float64) string {
	if seconds == 0 {
		return "0 s"
	}
	if seconds >= 1 {
		return fmt.Sprintf("%.4g s", seconds)
	}
	return scaled(seconds*1e9, 1000, "ns", "µs", "ms", "s")
}
