package launch

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

var (
	unknownKey   = regexp.MustCompile(`^line ([0-9]+): field (.*) not found in type launch\.(\w+)$`)
	bareDuration = regexp.MustCompile("^line ([0-9]+): cannot unmarshal !!(?:int|float) `?([0-9.]+)`? into time.Duration$")
)

// explain puts what the YAML package says of a job file in the words of its author.
func explain(err error) error {
	var te *yaml.TypeError
	if !errors.As(err, &te) {
		return err
	}
	var all []string
	for _, s := range te.Errors {
		if m := unknownKey.FindStringSubmatch(s); m != nil {
			keys := keysOf(m[3])
			s = fmt.Sprintf("line %s: there is no key %q here; known are %s", m[1], m[2], strings.Join(keys, ", "))
			for _, k := range keys {
				if k == m[2]+"s" || k+"s" == m[2] || strings.EqualFold(k, m[2]) {
					s = fmt.Sprintf("line %s: there is no key %q; %q is meant?", m[1], m[2], k)
				}
			}
		} else if m := bareDuration.FindStringSubmatch(s); m != nil {
			s = fmt.Sprintf("line %s: %s is no duration: write the unit, as in %[2]ss", m[1], m[2])
		}
		all = append(all, s)
	}
	return errors.New(strings.Join(all, "; "))
}

// keysOf lists the keys of a part of the file.
func keysOf(part string) (keys []string) {
	for _, t := range []reflect.Type{reflect.TypeFor[file](), reflect.TypeFor[fileZipper](), reflect.TypeFor[fileCluster]()} {
		for i := 0; t.Name() == part && i < t.NumField(); i++ {
			keys = append(keys, t.Field(i).Tag.Get("yaml"))
		}
	}
	return keys
}
