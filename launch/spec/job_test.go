package spec

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

func TestParseCluster(t *testing.T) {
	good := map[string]Cluster{
		"a=2":                        {Name: "a", Ranks: 2},
		"b=3,mpi=mpich":              {Name: "b", Ranks: 3, MPI: MPICH},
		"c=1,hosts=h,program=./p":    {Name: "c", Ranks: 1, Hosts: "h", Program: []string{"./p"}},
		"d=1,launcher=ssh,login=u@h": {Name: "d", Ranks: 1, Launcher: "ssh", Login: "u@h"},
		"e=4,dir=/tmp,mpi=openmpi":   {Name: "e", Ranks: 4, Dir: "/tmp", MPI: OpenMPI},
	}
	for s, want := range good {
		got, err := ParseCluster(s)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", s, got, err, want)
		}
	}
	for s, word := range map[string]string{"": "KEY=VALUE", "a": "KEY=VALUE", "a=": "KEY=VALUE", "a=x": "number",
		"a=1,mpi=lam": "openmpi or mpich", "a=1,color=red": "unknown key", "a=1,mpi": "KEY=VALUE"} {
		if _, err := ParseCluster(s); err == nil || !strings.Contains(err.Error(), word) ||
			!strings.Contains(err.Error(), "NAME=RANKS") {
			t.Errorf("%q: %v; want an error with %q and the form", s, err, word)
		}
	}
}

func TestParseZipper(t *testing.T) {
	for s, want := range map[string]string{"zip1": "zip1:7475", "zip1:99": "zip1:99", "10.0.0.1": "10.0.0.1:7475",
		"fd00::1": "[fd00::1]:7475", "[fd00::1]:80": "[fd00::1]:80", "unix:/run/z": "unix:/run/z"} {
		if z, err := ParseZipper(s); err != nil || z.Address != want {
			t.Errorf("%s: %v, %v; want %s", s, z.Address, err, want)
		}
	}
	for _, s := range []string{"", "zip1:", "zip1:0", "zip1:http", "zip1:70000", ":7475", "--", "-z:1"} {
		if z, err := ParseZipper(s); err == nil {
			t.Errorf("%q is taken for %s", s, z.Address)
		}
	}
}

func TestNormalize(t *testing.T) {
	j := Job{Program: []string{"./p", "x"}, Clusters: []Cluster{{Name: "a", Ranks: 2},
		{Name: "b", Ranks: 3, Program: []string{"./q"}, Login: "h"}}}
	if err := j.Normalize(); err != nil {
		t.Fatal(err)
	}
	if j.ID == "" || len(j.Secret) < 32 || j.Timeout != time.Minute || j.Clusters[0].Launcher != "mpirun" ||
		j.Clusters[1].Launcher != "ssh" {
		t.Errorf("defaults: %+v", j)
	}
	if got := j.Clusters[1].Program; !reflect.DeepEqual(got, []string{"./q", "x"}) {
		t.Errorf("program of b is %q: program= replaces the program, not its arguments", got)
	}
	if j.Offset("a") != 0 || j.Offset("b") != 2 {
		t.Errorf("offsets %d, %d", j.Offset("a"), j.Offset("b"))
	}
	one := []Cluster{{Name: "a", Ranks: 1}}
	for word, bad := range map[string]Job{
		"no clusters": {Program: []string{"p"}},
		"twice":       {Program: []string{"p"}, Clusters: []Cluster{{Name: "a", Ranks: 1}, {Name: "a", Ranks: 1}}},
		"at least 1":  {Program: []string{"p"}, Clusters: []Cluster{{Name: "a"}}},
		"ranks together": {Program: []string{"p"}, Clusters: []Cluster{{Name: "a", Ranks: wire.MaxRanks / 2},
			{Name: "b", Ranks: wire.MaxRanks/2 + 1}}},
		fmt.Sprint("at most ", wire.MaxRanks): {Program: []string{"p"}, Clusters: []Cluster{{Name: "a", Ranks: 1e9}}},
		"cluster name":                        {Program: []string{"p"}, Clusters: []Cluster{{Name: "a,b", Ranks: 1}}},
		"no program":                          {Clusters: one},
		"launcher=":                           {Program: []string{"p"}, Clusters: []Cluster{{Name: "a", Ranks: 1, Launcher: "fork"}}},
		"for launcher=ssh": {Program: []string{"p"}, Clusters: []Cluster{{Name: "a", Ranks: 1, Launcher: "mpirun",
			Login: "h"}}},
		"job id":   {ID: "a b", Program: []string{"p"}, Clusters: one},
		"positive": {Timeout: -1, Program: []string{"p"}, Clusters: one},
		"zipper h:1 is named for cluster \"x\", which the job does not have": {Program: []string{"p"}, Clusters: one,
			Zippers: []Zipper{{Per: map[string]string{"x": "h:1"}}}},
		"zipper h:1 is given twice": {Program: []string{"p"},
			Clusters: []Cluster{{Name: "a", Ranks: 1}, {Name: "b", Ranks: 1}},
			Zippers:  []Zipper{{Address: "h:1"}, {Address: "h:2"}, {Address: "h:1"}}},
		"no address for": {Program: []string{"p"},
			Clusters: []Cluster{{Name: "a", Ranks: 1}, {Name: "b", Ranks: 1}},
			Zippers:  []Zipper{{Per: map[string]string{"a": "h:1"}}}},
	} {
		if err := bad.Normalize(); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("want an error with %q, got %v", word, err)
		}
	}
}

func TestJobFile(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(secret, []byte(" 00112233445566778899aabbccddeeff\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := parseFile([]byte(`
job: j1
secret_file: ` + secret + `
program: ./prog.{mpi} 1 2
timeout: 90s
rsh: [ssh, -p, "22"]
zippers:
  - address: zip1
  - addresses: {a: 10.0.0.1, b: "10.1.0.1:99"}
  - zip2:80
clusters:
  - {name: a, ranks: 2, mpi: openmpi, hosts: h, args: [--mca, x, y], env: {K: v}}
  - {name: b, ranks: 1, mpi: mpich, launcher: ssh, login: l, program: [p, "an argument"], zipper: /z, mpirun: /m, dir: /d}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := &Job{ID: "j1", Secret: "00112233445566778899aabbccddeeff", Program: []string{"./prog.{mpi}", "1", "2"},
		Timeout: 90 * time.Second,
		Rsh:     []string{"ssh", "-p", "22"},
		Zippers: []Zipper{{Address: "zip1:7475", Per: map[string]string{}},
			{Per: map[string]string{"a": "10.0.0.1:7475", "b": "10.1.0.1:99"}},
			{Address: "zip2:80", Per: map[string]string{}}},
		Clusters: []Cluster{
			{Name: "a", Ranks: 2, MPI: OpenMPI, Hosts: "h", Args: []string{"--mca", "x", "y"},
				Env: map[string]string{"K": "v"}},
			{Name: "b", Ranks: 1, MPI: MPICH, Launcher: "ssh", Login: "l", Program: []string{"p", "an argument"},
				Zipper: "/z", Mpirun: "/m", Dir: "/d"},
		}}
	if !reflect.DeepEqual(j, want) {
		t.Errorf("got %+v\nwant %+v", j, want)
	}
	exposed := filepath.Join(t.TempDir(), "exposed")
	if err := errors.Join(os.WriteFile(exposed, []byte("hush"), 0o600), os.Chmod(exposed, 0o604)); err != nil {
		t.Fatal(err)
	}
	for text, word := range map[string]string{
		"":                                       "empty",
		"secret_file: " + exposed:                "secret_file: others on this host can use the secret",
		"clusterz: []":                           "clusterz",
		"poll: often":                            "adaptive",
		"timeout: -1s":                           "positive",
		"timeout: soon":                          `line 1: timeout: want a positive duration with its unit, such as 60s, not "soon"`,
		"timeout: 20":                            "such as 60s, not 20",
		"timeout: 0s":                            "positive",
		"timeout: 60sec":                         `not "60sec"`,
		"timeout: [1s]":                          "not a list",
		"secret_file: /nowhere":                  "secret_file",
		"zippers: [{address: h:x}]":              "HOST[:PORT]",
		"clusters: [{ranks: many}]":              "line 1: ranks: want a whole number, not \"many\"",
		"clusters:\n - name: a\n   ranks: 2.5\n": "line 3: ranks: want a whole number, not 2.5",
		"clusters: [{ranks: \"2\"}]":             `ranks: want a whole number, not "2"`,
		"clusters: [{ranks: [2]}]":               "ranks: want a whole number, not a list",
		"clusters: [{rank: 2}]":                  `unknown key "rank": did you mean "ranks"?`,
		"clusters: [{Name: a}]":                  `unknown key "Name": did you mean "name"?`,
		"programm: p":                            `unknown key "programm": did you mean "program"?`,
		"\"\": p":                                `unknown key "" here`,
		"clsuters: []":                           `unknown key "clsuters": did you mean "clusters"?`,
		"zippers: [{port: 2}]":                   `unknown key "port" here; the known keys are address, addresses, clusters`,
		"zippers: [zip1, [zip2]]":                "line 1: want a zipper: its address, or keys such as address: and clusters:, not a list",
		"zippers: zip1":                          `want a list of zippers, each an address or with address: or addresses:, not "zip1"`,
		"zippers: [\"\"]":                        "empty",
		"clusters: {a: 2}":                       "line 1: want a list of clusters, each with name: and ranks:, not NAME: VALUE pairs",
		"clusters: [a=2]":                        `want a cluster, with name: and ranks:, not "a=2"`,
		"clusters: [{name: [a]}]":                "want one word, not a list",
		"clusters: [{mpi: [mpich]}]":             "want openmpi or mpich, not a list",
		"clusters: [{args: -x}]":                 `want a list of words, not "-x"`,
		"program: {a: b}":                        "want a list of words, not NAME: VALUE pairs",
		"env: [A=1]":                             "want NAME: VALUE pairs, not a list",
		"hello":                                  `want keys with their values, such as clusters: and program:, not "hello"`,
	} {
		if _, err := parseFile([]byte(text)); err == nil || !strings.Contains(err.Error(), word) ||
			strings.Contains(err.Error(), "unmarshal") {
			t.Errorf("%q: %v; want an error with %q", text, err, word)
		}
	}
}

func FuzzJobFile(f *testing.F) {
	f.Add([]byte("program: p\nclusters: [{name: a, ranks: 2}]\n"))
	f.Add([]byte("zippers: [h, {addresses: {a: h}}]\ntimeout: 1s\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		j, err := parseFile(b)
		if err != nil {
			return
		}
		if j.Normalize() == nil { // a cluster that is accepted is complete
			for _, c := range j.Clusters {
				if c.Ranks < 1 || c.Name == "" || len(c.Program) == 0 {
					t.Errorf("accepted %+v", c)
				}
			}
		}
	})
}
