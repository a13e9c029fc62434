package quantity

import "testing"

func TestQuantities(t *testing.T) {
	for in, want := range map[string]string{"100": "100", "64KiB": "65536", "1 MB": "1000000", "1.5k": "1500",
		"2GiB": "2147483648"} {
		if r, err := Size(in); err != nil || r.RatString() != want {
			t.Errorf("Size(%q) = %v, %v; want %s", in, r, err, want)
		}
	}
	for in, want := range map[string]string{"940 Mbit/s": "117500000", "1gbit": "125000000", "2GB/s": "2000000000",
		"1e9": "1000000000", "3MiB/s": "3145728", "125MBps": "125000000", "1Gb/s": "125000000", "8bps": "1"} {
		if r, err := Rate(in); err != nil || r.RatString() != want {
			t.Errorf("Rate(%q) = %v, %v; want %s", in, r, err, want)
		}
	}
	for in, want := range map[string]string{"50us": "1/20000", "1.5ms": "3/2000", "2 s": "2", "7ns": "7/1000000000",
		"3": "3"} {
		if r, err := Time(in); err != nil || r.RatString() != want {
			t.Errorf("Time(%q) = %v, %v; want %s", in, r, err, want)
		}
	}
	for _, bad := range []string{"", "x", "-1", "1e999999999", "NaN", "Inf", "1 parsec", "1/2", "0x10"} {
		for _, f := range []func(string) (r interface{ Sign() int }, err error){
			func(s string) (interface{ Sign() int }, error) { return Size(s) },
			func(s string) (interface{ Sign() int }, error) { return Rate(s) },
			func(s string) (interface{ Sign() int }, error) { return Time(s) },
		} {
			if r, err := f(bad); err == nil {
				t.Errorf("%q read as %v", bad, r)
			}
		}
	}
	for got, want := range map[string]string{FormatRate(117.5e6): "117.5 MB/s", FormatSize(65536): "64 KiB",
		FormatTime(.00125): "1.25 ms", FormatTime(2.5): "2.5 s", FormatTime(0): "0 s"} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
