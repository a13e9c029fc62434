package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/docpart"
)

// TestUpToDate: the documents have what is made from the code as it is.
func TestUpToDate(t *testing.T) {
	for name, part := range documents {
		made, err := part("../..")
		if err != nil {
			t.Error(err)
			continue
		}
		docpart.Test(t, filepath.Join("../..", folder, name), made)
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

// TestEnvironment: every variable of ours that a program reads is in docs/reference/environment.md.
func TestEnvironment(t *testing.T) {
	page := read(t, "../../docs/reference/environment.md")
	within := []string{ // between our own programs, and of tests
		"ZIPPER_LAUNCH", "ZIPPER_FORWARDER", "ZIPPER_TASK_CLUSTER", "ZIPPER_TASK_ENV", "ZIPPER_TASK_PROGRAM",
		"ZIPPER_TASK_ZIPPER", "ZIPPER_SEEDS", "ZIPPER_NEEDS"}
	name, found := regexp.MustCompile(`"(ZIPPER_[A-Z_]*[A-Z])"`), 0
	for _, file := range tree(t) {
		rel := strings.TrimPrefix(file, "../../")
		first, _, _ := strings.Cut(rel, "/")
		if ext := filepath.Ext(file); ext != ".go" && ext != ".c" || strings.HasSuffix(file, "_test.go") ||
			first == "test" || strings.HasPrefix(rel, "cgo/libmmpi/test/") || rel == "internal/docpart/docpart.go" {
			continue
		}
		for _, m := range name.FindAllStringSubmatch(read(t, file), -1) {
			found++
			if !slices.Contains(within, m[1]) && !strings.Contains(page, "`"+m[1]+"`") {
				t.Errorf("%s reads %s, which docs/reference/environment.md lacks", rel, m[1])
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d variables found: is the pattern still right?", found)
	}
}
