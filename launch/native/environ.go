package native

import "strings"

// An environment is a list of NAME=VALUE in which the last entry of a name counts.

func lookup(environ []string, key string) string {
	for i := len(environ) - 1; i >= 0; i-- {
		if k, v, _ := strings.Cut(environ[i], "="); k == key {
			return v
		}
	}
	return ""
}

func without(environ []string, key string) []string {
	var out []string
	for _, kv := range environ {
		if k, _, _ := strings.Cut(kv, "="); k != key {
			out = append(out, kv)
		}
	}
	return out
}

func setEnv(environ []string, kv string) []string {
	k, _, _ := strings.Cut(kv, "=")
	return append(without(environ, k), kv)
}
