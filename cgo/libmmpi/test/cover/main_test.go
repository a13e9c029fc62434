package main

import (
	"strings"
	"testing"
)

// gcov has two builds of one file, a header that both include, and a file outside of the library.
const gcov = `{"files": [
  {"file": "cgo/libmmpi/type/type.c", "lines": [{"line_number": 3, "count": 0}, {"line_number": 4, "count": 2}, {"line_number": 9, "count": 0}]},
  {"file": "cgo/libmmpi/core/map.h", "lines": [{"line_number": 7, "count": 0}]},
  {"file": "cgo/libmmpi/test/unit/main.c", "lines": [{"line_number": 1, "count": 1}]},
  {"file": "/usr/include/stdlib.h", "lines": [{"line_number": 1, "count": 1}]}]}
{"files": [
  {"file": "cgo/libmmpi/type/type.c", "lines": [{"line_number": 3, "count": 0}, {"line_number": 4, "count": 0}, {"line_number": 6, "count": 1}]},
  {"file": "cgo/libmmpi/core/map.h", "lines": [{"line_number": 7, "count": 1}]}]}`

func TestLines(t *testing.T) {
	l := lines{}
	if err := l.add(strings.NewReader(gcov)); err != nil {
		t.Fatal(err)
	}
	want := `core                         1 of     1  100.0 %
  map.h                      1 of     1  100.0 %
type                         2 of     4   50.0 %
  type.c                     2 of     4   50.0 %
type                         2 of     4   50.0 %
all                          3 of     5   60.0 %
`
	if got := l.table([]string{"type"}); got != want {
		t.Errorf("the table is\n%s\nwant\n%s", got, want)
	}
	if got, want := l.missed(), "cgo/libmmpi/type/type.c:3-3\ncgo/libmmpi/type/type.c:9-9\n"; got != want {
		t.Errorf("missed are %q, want %q", got, want)
	}
}

func TestShort(t *testing.T) {
	l := lines{}
	if err := l.add(strings.NewReader(gcov)); err != nil {
		t.Fatal(err)
	}
	if err := l.short([]string{"core", "type"}, 50); err != nil {
		t.Error(err)
	}
	if err := l.short([]string{"core", "type"}, 51); err == nil || !strings.Contains(err.Error(), "chapter type") {
		t.Errorf("got %v, want an error that names the chapter", err)
	}
	if err := l.short([]string{"nowhere"}, 1); err == nil {
		t.Error("a chapter that is not there is not short")
	}
}

func TestBrokenOutput(t *testing.T) {
	if err := (lines{}).add(strings.NewReader(gcov[:100])); err == nil {
		t.Error("half a document is taken")
	}
}
