package main

import (
	"strings"
	"testing"
)

func TestSummary(t *testing.T) {
	in := `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"A"}
{"Action":"run","Package":"p","Test":"A/one"}
{"Action":"pass","Package":"p","Test":"A/one"}
{"Action":"run","Package":"p","Test":"A/two"}
{"Action":"output","Package":"p","Test":"A/two","Output":"bad luck\n"}
{"Action":"fail","Package":"p","Test":"A/two"}
{"Action":"fail","Package":"p","Test":"A","Elapsed":2.4}
{"Action":"pass","Package":"p","Test":"L","Elapsed":61}
{"Action":"run","Package":"p","Test":"S"}
{"Action":"output","Package":"p","Test":"S","Output":"    s_test.go:7: needs root\n"}
{"Action":"skip","Package":"p","Test":"S"}
{"Action":"fail","Package":"p"}
{"Action":"start","Package":"q"}
{"Action":"output","Package":"q","Output":"panic: at the disco\n"}
{"Action":"fail","Package":"q"}
not JSON
`
	var out, skips strings.Builder
	s := &summary{out: &out, skips: &skips, tests: map[[2]string]*test{}}
	if err := s.read(strings.NewReader(in)); err != nil {
		t.Error(err)
	}
	if s.passed != 2 || s.failed != 2 || s.skipped != 1 {
		t.Errorf("%d passed, %d failed, %d skipped; want 2, 2, 1", s.passed, s.failed, s.skipped)
	}
	for _, want := range []string{"bad luck", "panic: at the disco", "not JSON", "FAILED p A/two"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	s.printSlowest()
	if got := out.String(); !strings.HasSuffix(got, "   slowest: L 61 s, A 2 s\n") {
		t.Errorf("the slowest tests are missing at the end of\n%s", got)
	}
	if skips.String() != "S: needs root\n" {
		t.Errorf("skips: %q", &skips)
	}
	if err := s.read(strings.NewReader(`{"Action":"start","Package":"r"}` + "\n")); err == nil {
		t.Error("an output that breaks off is taken for whole")
	}
}
