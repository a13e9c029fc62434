package contention_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/leidenzipper/zipper/contention/num"
)

type rat = num.Rat

// ordered is a JSON object with string or array values whose order matters.
type ordered[V any] struct {
	keys   []string
	values map[string]V
}

func (o *ordered[V]) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &o.values); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		o.keys = append(o.keys, key.(string))
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			return err
		}
	}
	return nil
}

type vectors struct {
	Martinasso struct {
		Static  []staticVector
		Dynamic []dynamicVector
	}
	Zhu    []zhuVector
	Survey map[string]json.RawMessage
	Zipper []json.RawMessage
	Paper  map[string]json.RawMessage
}

func load(t *testing.T) vectors {
	t.Helper()
	b, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func exact(t *testing.T, s string) rat {
	t.Helper()
	r, ok := num.ParseRat(s)
	if !ok {
		t.Fatalf("%q is no rational", s)
	}
	return r
}

func wantExact(t *testing.T, what string, got rat, want string) {
	t.Helper()
	if got.Cmp(exact(t, want)) != 0 {
		t.Errorf("%s = %v, want %s", what, got, want)
	}
}

// wantRounded compares with a number printed with six decimals.
func wantRounded(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 0.51e-6) {
		t.Errorf("%s = %.9g, want %.9g", what, got, want)
	}
}
