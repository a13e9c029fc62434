package jobenv

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseZipper(t *testing.T) {
	for in, want := range map[string]string{
		"h:1=a+b":                      "a@h:1+b@h:1",
		"h=a,b":                        "a@h+b@h",
		"a@10.0.0.1:7475+b@[::1]:7475": "a@10.0.0.1:7475+b@[::1]:7475",
		"a@h+w":                        "a@h+w",
		"a@verbs:h:1?device=mlx5_0:1+b@verbs:h2:1": "a@verbs:h:1?device=mlx5_0:1+b@verbs:h2:1",
	} {
		plain, z, err := ParseZipper(in)
		if err != nil || plain != "" || z.String() != want {
			t.Errorf("%s: %q, %v, %v", in, plain, z, err)
			continue
		}
		if _, again, err := ParseZipper(z.String()); err != nil || !reflect.DeepEqual(again, z) {
			t.Errorf("%s: %v, %v", z, again, err)
		}
	}
	for _, in := range []string{"h:1", "verbs:h:1?device=mlx5_0:1"} {
		if plain, z, err := ParseZipper(in); err != nil || plain != in || len(z.Ports) > 0 {
			t.Errorf("%s: %q, %v, %v", in, plain, z, err)
		}
	}
	for _, in := range []string{"=a", "h=", "h=a+a", "a@", "@h", "a@h+a@g"} {
		if plain, z, err := ParseZipper(in); err == nil {
			t.Errorf("%s: %q, %v", in, plain, z)
		}
	}
}

func TestHops(t *testing.T) {
	from := func(cluster, forwarders string) (Job, error) {
		return From(func(k string) string {
			return map[string]string{VarJob: "j", VarSecret: goodSecret, VarCluster: cluster, VarLayout: "a=1,b=2,c=1",
				VarForwarders: forwarders}[k]
		})
	}
	j, err := from("b", "x:1=a+b,b@y:2+c@z:3")
	if err != nil || !reflect.DeepEqual(j.Forwarders, []string{"x:1", "y:2"}) {
		t.Fatalf("%+v, %v", j, err)
	}
	// The variables that a process sets for its children describe the same job.
	env := map[string]string{}
	for _, kv := range j.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	if again, err := From(func(k string) string { return env[k] }); err != nil || !reflect.DeepEqual(again, j) {
		t.Errorf("%+v, %v; want %+v", again, err, j)
	}
	if c, err := from("c", "x:1=a+b,b@y:2+c@z:3"); err != nil || !reflect.DeepEqual(c.Forwarders, []string{"z:3"}) {
		t.Errorf("%+v, %v", c, err)
	}
	if a, err := from("a", "x=a+b,y=a+b,z=b+c"); err != nil || !reflect.DeepEqual(a.Forwarders, []string{"x", "y"}) {
		t.Errorf("%+v, %v", a, err)
	}
	for list, want := range map[string]string{
		"x=a+b,y=b+c,z=a+c":   "zipper 3 closes a loop",
		"x=a+b,y=b+c,z=a+b+c": "zipper 3 closes a loop",
		"x=a+b":               "no zipper leads from cluster a to cluster c",
		"x=a+b,y=b":           "fewer than two",
		"x=a+b,y=b+d":         `cluster "d", which the job does not have`,
		"x=a+b,y":             "or of none",
	} {
		if _, err := from("a", list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", list, err, want)
		}
	}
}

// TestNetworks checks forwarders on networks without ranks, with and without an address there.
func TestNetworks(t *testing.T) {
	from := func(networks, forwarders string) (Job, error) {
		return From(func(k string) string {
			return map[string]string{VarJob: "j", VarSecret: goodSecret, VarCluster: "a", VarLayout: "a=1,b=2",
				VarNetworks: networks, VarForwarders: forwarders}[k]
		})
	}
	for _, tc := range []struct{ networks, forwarders string }{
		{"w", "a@x:1+w@x2:1,b@y:1+w@y2:1"},
		{"w", "a@x:1+w,b@y:1+w@y2:1"},
		{"v,w", "a@x:1+v,v@h:1+w@h:2,w+b@y:1"}, // a hub that both ends dial
	} {
		j, err := from(tc.networks, tc.forwarders)
		if err != nil || !reflect.DeepEqual(j.Forwarders, []string{"x:1"}) {
			t.Errorf("%v: %+v, %v", tc, j, err)
		}
		env := map[string]string{}
		for _, kv := range j.Environ() {
			k, v, _ := strings.Cut(kv, "=")
			env[k] = v
		}
		if again, err := From(func(k string) string { return env[k] }); err != nil || !reflect.DeepEqual(again, j) {
			t.Errorf("%v: %+v, %v; want %+v", tc, again, err, j)
		}
	}
	for _, tc := range []struct{ networks, forwarders, want string }{
		{"w", "x,y", "give the networks of every forwarder"},
		{"w", "x=a+b", "no zipper leads from cluster a to network w"},
		{"w", "x=a+b+w", "network w joins nothing"},
		{"w", "x=a+w,y=b", "fewer than two networks"},
		{"w", "a+w@x,y=b+w", "has no address for cluster \"a\""},
		{"w", "a@x+w,b@y+w", "neither listens there"},
		{"v,w", "a@x+v@x,v@h+w,b@y+w@y", "cannot open it"},
		{"u,v,w", "x=a+u,y=u+v,z=v+w,q=w+b", "cannot open it"},
		{"a", "x=a+b", "a cluster's name too"},
		{"w,w", "x=a+w,y=b+w", "given twice"},
		{"w,", "x=a+w,y=b+w", "want a word"},
	} {
		if _, err := from(tc.networks, tc.forwarders); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: %v", tc, err)
		}
	}
}

// TestLinks checks which forwarder opens each link, and on which network.
func TestLinks(t *testing.T) {
	for _, tc := range []struct {
		networks, forwarders string
		want                 []Link
	}{
		{"w", "a@x:1+w@x2:1,b@y:1+w@y2:1", []Link{{"w", 0, 1, "y2:1"}}},
		{"w", "b@y:1+w@y2:1,a@x:1+w", []Link{{"w", 1, 0, "y2:1"}}},
		{"v,w", "v@h:1+w@h:2,a@x:1+v,w+b@y:1", []Link{{"v", 1, 0, "h:1"}, {"w", 2, 0, "h:2"}}},
		// side by side; in the second row the forwarder of b is named first
		{"w", "a@x:1+w@x2:1,b@y:1+w@y2:1,b@q:1+w@q2:1,a@p:1+w@p2:1", []Link{{"w", 0, 1, "y2:1"}, {"w", 3, 2, "q2:1"}}},
		{"", "x:1=a+b,y:1=a+b", nil},
	} {
		j, err := From(func(k string) string {
			return map[string]string{VarJob: "j", VarSecret: goodSecret, VarCluster: "a", VarLayout: "a=1,b=2",
				VarNetworks: tc.networks, VarForwarders: tc.forwarders}[k]
		})
		if err != nil {
			t.Fatal(err)
		}
		if links, err := j.Net().Links(j.Zippers); err != nil || !reflect.DeepEqual(links, tc.want) {
			t.Errorf("%s: %v, %v", tc.forwarders, links, err)
		}
	}
	if _, err := (Net{Layout: []Cluster{{Name: "a", Size: 1}}}).Links([]Zipper{{}}); err == nil {
		t.Error("a zipper on no network")
	}
}
