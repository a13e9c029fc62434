package main

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// TestUpToDate: the documents have what is made from the code as it is.
func TestUpToDate(t *testing.T) {
	for name := range documents {
		is, want, err := document("../..", name)
		if err != nil {
			t.Error(err)
		} else if is != want {
			t.Errorf("%s is not up to date: make generate", name)
		}
	}
}

func TestGoNumbers(t *testing.T) {
	got := numbersOf(t, goNumbers, "limits.go", `// Package p has things.
package p

import "time"

// How often.
const (
	// turns is how
	// often.
	turns = 1 << 3

	a, b = 4, 5 // both
)

// wait is so long.
const wait = 3 * time.Second

// most is a bound.
var most = 7

// Limits are settings.
type Limits struct {
	Eager int // bytes
}

func f() { const hidden = 1 }
`)
	want := []group{
		{"How often.", []number{{"turns", "1 << 3", "turns is how often."}, {"a, b", "4, 5", "both"}}},
		{"", []number{{"wait", "3 * time.Second", "wait is so long."}, {"most", "7", "most is a bound."}}},
		{"Limits are settings.", []number{{"Limits.Eager", "", "bytes"}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestCNumbers(t *testing.T) {
	got := numbersOf(t, cNumbers, "limits.h", `/* The file. */
#ifndef X_H
#define X_H

/* Waiting. */
enum {
  /* The longest spin:
   * long. */
  Z_SPIN = 400,

  Z_A = 1 << 3, /* behind */
  Z_B = 2 /* last */
};

/* One alone. */
enum { Z_C = 3 };

/* Another. */
enum { Z_D = 4 };

#define Z_E 5

#endif
`)
	want := []group{
		{"Waiting.", []number{{"Z_SPIN", "400", "The longest spin: long."}, {"Z_A", "1 << 3", "behind"}, {"Z_B", "2", "last"}}},
		{"", []number{{"Z_C", "3", "One alone."}, {"Z_D", "4", "Another."}, {"Z_E", "5", ""}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func numbersOf(t *testing.T, read func(string) ([]group, error), name, text string) []group {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := read(path)
	if err != nil {
		t.Fatal(err)
	}
	return got
}
