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

// TestUpToDate checks that the generated parts of the documents match the code.
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

// TestConstants reads single and grouped declarations, and ignores types and functions.
func TestConstants(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.go")
	if err := os.WriteFile(path, []byte(`package p

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
`), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := constants(path)
	want := []constant{
		{"turns", "1 << 3", "turns is how often."}, {"a, b", "4, 5", "both"},
		{"wait", "3 * time.Second", "wait is so long."}, {"most", "7", "most is a bound."},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
}

// TestEnvironment checks that docs/reference/environment.md has every ZIPPER_ variable that a
// program reads.
func TestEnvironment(t *testing.T) {
	page := read(t, "../../docs/reference/environment.md")
	within := []string{ // variables between our own programs, and of tests
		"ZIPPER_LAUNCH", "ZIPPER_FORWARDER", "ZIPPER_TASK_CLUSTER", "ZIPPER_TASK_ENV", "ZIPPER_TASK_PROGRAM",
		"ZIPPER_TASK_ZIPPER", "ZIPPER_SEEDS", "ZIPPER_NEEDS", "ZIPPER_EMULATED"}
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
