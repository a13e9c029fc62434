package spec

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/xrash/smetrics"
	"go.yaml.in/yaml/v3"
)

var (
	unknownKey = regexp.MustCompile(`^line ([0-9]+): field (.*) not found in type spec\.(\w+)$`)
	wrongType  = regexp.MustCompile("^line ([0-9]+): cannot unmarshal (!!\\w+)(?: `(.*)`)? into (\\S+)$")
)

// wanted describes the value of the file for each of our types.
var wanted = map[string]string{
	"spec.file":          "keys with their values, such as clusters: and program:",
	"[]spec.fileZipper":  "a list of zippers, each an address or with address: or addresses:",
	"spec.fileZipper":    "a zipper: its address, or keys such as address: and clusters:",
	"[]spec.fileCluster": "a list of clusters, each with name: and ranks:",
	"spec.fileCluster":   "a cluster, with name: and ranks:",
	"spec.MPI":           "openmpi or mpich",
	"string":             "one word",
	"[]string":           "a list of words",
	"map[string]string":  "NAME: VALUE pairs",
}

// explain puts an error of the YAML package about a job file in the words of the file's author.
func explain(err error) error {
	var te *yaml.TypeError
	if !errors.As(err, &te) {
		return err
	}
	var all []string
	for _, s := range te.Errors {
		if m := unknownKey.FindStringSubmatch(s); m != nil {
			s = fmt.Sprintf("line %s: %s", m[1], unknown(m[2], keysOf(m[3])))
		} else if m := wrongType.FindStringSubmatch(s); m != nil && wanted[m[4]] != "" {
			s = fmt.Sprintf("line %s: want %s, not %s", m[1], wanted[m[4]], found(m[2], m[3]))
		}
		all = append(all, s)
	}
	return errors.New(strings.Join(all, "; "))
}

// unwanted returns the error for the value of a key.
func unwanted(n *yaml.Node, key, want string) error {
	return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %s: want %s, not %s", n.Line, key, want,
		found(n.ShortTag(), n.Value))}}
}

// found names a value of the file by its tag and, if it has one, by its text.
func found(tag, text string) string {
	switch tag {
	case "!!map":
		return "NAME: VALUE pairs"
	case "!!seq":
		return "a list"
	case "!!str":
		return fmt.Sprintf("%q", text)
	}
	return text
}

// unknown returns the error for a key that does not exist, with the key that may be meant.
func unknown(key string, keys []string) string {
	off := func(k string) int { return smetrics.WagnerFischer(strings.ToLower(key), k, 1, 1, 1) }
	if k := slices.MinFunc(keys,
		func(a, b string) int { return cmp.Compare(off(a), off(b)) }); off(k) <= min(2, len(key)/3) {
		return fmt.Sprintf("unknown key %q: did you mean %q?", key, k)
	}
	return fmt.Sprintf("unknown key %q here; the known keys are %s", key, strings.Join(keys, ", "))
}

// keysOf returns the keys of a part of the file.
func keysOf(part string) (keys []string) {
	for _, t := range []reflect.Type{reflect.TypeFor[file](), reflect.TypeFor[fileZipper](),
		reflect.TypeFor[fileCluster]()} {
		for i := 0; t.Name() == part && i < t.NumField(); i++ {
			keys = append(keys, t.Field(i).Tag.Get("yaml"))
		}
	}
	return keys
}
