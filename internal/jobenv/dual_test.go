package jobenv

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
)

func TestParseDual(t *testing.T) {
	for in, want := range map[string]string{
		"":                       "",
		"10.2.0.1":               "10.2.0.1:0",
		"b@10.2.0.1+c@zip:7500":  "b@10.2.0.1:0+c@zip:7500",
		"10.2.0.1:7500, fe80::1": "10.2.0.1:7500+[fe80::1]:0",
		"b@[fe80::1]:7,b@[::1]":  "b@[fe80::1]:7+b@[::1]:0",
	} {
		l, err := ParseDual(in)
		if err != nil || FormatDual(l) != want {
			t.Errorf("%s: %v, %v", in, l, err)
			continue
		}
		if again, err := ParseDual(want); err != nil || FormatDual(again) != want {
			t.Errorf("%s: %v, %v", want, again, err)
		}
	}
	for in, want := range map[string]string{
		"@h":            "CLUSTER@",
		"b@":            "the other cluster connects to",
		"0.0.0.0":       "the other cluster connects to",
		"[::]:70":       "the other cluster connects to",
		":7500":         "the other cluster connects to",
		"h:x":           "HOST[:PORT]",
		"h:70000":       "HOST[:PORT]",
		"unix:/tmp/x:1": "TCP",
		"verbs:h:7475":  "TCP",
	} {
		if l, err := ParseDual(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %q", in, l, err, want)
		}
	}
}

func TestDual(t *testing.T) {
	from := func(dual, protocol string) (Job, error) {
		return From(func(k string) string {
			return map[string]string{VarJob: "j", VarSecret: goodSecret, VarCluster: "a", VarLayout: "a=1,b=2",
				VarForwarders: "h:1", VarDual: dual, VarProtocol: protocol}[k]
		})
	}
	j, err := from("b@10.2.0.1", "")
	if err != nil || len(j.Dual) != 1 || !strings.Contains(strings.Join(j.Environ(), " "), VarDual+"=b@10.2.0.1:0") {
		t.Errorf("%+v, %v", j, err)
	}
	for _, c := range [][3]string{
		{"a@10.2.0.1", "", "the cluster itself"},
		{"c@10.2.0.1", "", `c@10.2.0.1 is for cluster "c", which the job does not have`},
		{"c@fe80::1", "", "c@fe80::1 is for"},
		{"c@h:7", "", "c@h:7 is for"},
		{"h:x", "", VarDual},
		{"10.2.0.1", Classic, "classic"},
	} {
		if _, err := from(c[0], c[1]); err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%v: %v", c, err)
		}
	}
}

func TestParseDirectAllow(t *testing.T) {
	d, err := ParseDirectAllow("10.2.0.7, zip2+10.3.0.0/24,fe80::1")
	if want := (DirectAllow{Hosts: []string{"10.2.0.7", "zip2", "fe80::1"},
		Networks: []netip.Prefix{netip.MustParsePrefix("10.3.0.0/24")}}); err != nil || !reflect.DeepEqual(d, want) {
		t.Errorf("%+v, %v, want %+v", d, err, want)
	}
	for _, s := range []string{"10.2.0.7:7475", "10.3.0.0/33", "b@10.2.0.1", "zip2:1", "a b", ","} {
		d, err := ParseDirectAllow(s)
		if none := s == ","; (err == nil) != none {
			t.Errorf("%q: %+v, %v", s, d, err)
		}
	}
	_, err = From(func(k string) string {
		return map[string]string{VarJob: "j", VarSecret: goodSecret, VarCluster: "a", VarLayout: "a=1,b=2",
			VarForwarders: "h:1", VarDirectAllow: "h:1"}[k]
	})
	if err == nil || !strings.Contains(err.Error(), VarDirectAllow) {
		t.Errorf("a host with a port: %v", err)
	}
}

// TestReached checks that ranks of a cluster are allowed the addresses that are for them.
func TestReached(t *testing.T) {
	l, err := ParseDual("b@10.2.0.1+c@zip:7500+fe80::1")
	if err != nil {
		t.Fatal(err)
	}
	for cluster, want := range map[string]string{"b": "10.2.0.1,fe80::1", "c": "zip,fe80::1", "d": "fe80::1"} {
		if got := Reached(l, cluster); got != want {
			t.Errorf("%s: %q, want %q", cluster, got, want)
		}
	}
}
