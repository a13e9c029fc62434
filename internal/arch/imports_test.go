package arch

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/leidenzipper/zipper"
)

// builds are sets of build tags. An import in any of these builds counts.
var builds = [][]string{nil, {"rdma"}, {"rdma", "openmpi"}, {"rdma", "mpich"}, {"race"}}

// TestImports checks the rules for all packages in all builds, without tests.
func TestImports(t *testing.T) {
	g := load(t)
	for _, r := range Rules {
		for _, fault := range g.check(r) {
			t.Error(fault)
		}
		for _, of := range r.Of {
			if !g.has(of) {
				t.Errorf("the rule for %s (%s) is for no package: is the name right?", of, r.Why)
			}
		}
	}
}

// graph has the imports of each package, with the place of each import. Packages of this module
// have their path below it, others their full path.
type graph map[string]map[string]string

// load reads the files with os.ReadFile, so that go test knows that the result depends on them.
func load(t *testing.T) graph {
	t.Helper()
	g := graph{}
	for dir := range folders(t) {
		for _, tags := range builds {
			ctx := build.Default
			ctx.BuildTags, ctx.CgoEnabled, ctx.GOOS, ctx.GOARCH = tags, true, "linux", "amd64"
			p, err := ctx.ImportDir(filepath.Join(root, dir), 0)
			if p == nil || len(p.GoFiles)+len(p.CgoFiles) == 0 {
				continue // only tests, or nothing for these tags
			}
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.ToSlash(dir)
			if g[name] == nil {
				g[name] = map[string]string{}
			}
			for path, places := range p.ImportPos {
				if _, ours := strings.CutPrefix(path, module+"/"); ours || !strings.Contains(path, module) {
					g[name][strings.TrimPrefix(path, module+"/")] = fmt.Sprintf("%s:%d",
						filepath.Join(dir, filepath.Base(places[0].Filename)), places[0].Line)
				}
			}
			if len(p.CgoFiles) > 0 {
				g[name]["runtime/cgo"] = filepath.Join(dir, p.CgoFiles[0])
			}
			for _, f := range slices.Concat(p.GoFiles, p.CgoFiles) {
				for what, at := range asks(t, filepath.Join(root, dir, f)) {
					g[name][what] = filepath.Join(dir, f) + ":" + at
				}
			}
		}
	}
	if len(g) < 50 {
		t.Fatalf("only %d packages found", len(g))
	}
	return g
}

// folders returns all folders of the module by their path below the root, with the names of their
// Go files.
func folders(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() {
			switch {
			case rel == ".":
				return nil
			case strings.HasPrefix(d.Name(), "."),
				slices.Contains([]string{"testdata", "build", "bin", "lib", filepath.Join("internal", "tools")}, rel),
				d.Name() == "testdata":
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(path, ".go") {
			dir := filepath.Dir(rel)
			all[dir] = append(all[dir], d.Name())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// questions are the functions of the standard library that read a clock or wait, and those that
// read environment variables.
var questions = map[string]string{
	"time.Now": Clock, "time.Since": Clock, "time.Until": Clock, "time.Sleep": Clock, "time.After": Clock,
	"time.AfterFunc": Clock, "time.NewTimer": Clock, "time.NewTicker": Clock, "time.Tick": Clock,
	"os.Getenv": Environment, "os.LookupEnv": Environment, "os.Environ": Environment, "os.ExpandEnv": Environment,
	"syscall.Getenv": Environment, "syscall.Environ": Environment, "unix.Getenv": Environment, "unix.Environ": Environment,
}

// asks returns the first line of the file that reads a clock, by Clock, and the environment, by
// Environment.
func asks(t *testing.T, path string) map[string]string {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok {
			if what := questions[x.Name+"."+s.Sel.Name]; what != "" && lines[what] == "" {
				lines[what] = fmt.Sprint(set.Position(s.Pos()).Line)
			}
		}
		return true
	})
	return lines
}

// matches reports whether a path matches a pattern.
func matches(path, pattern string) bool {
	p, below := strings.CutSuffix(pattern, "/...")
	return path == p || below && strings.HasPrefix(path, p+"/")
}

func anyOf(path string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(path, p) })
}

func (g graph) has(pattern string) bool {
	for p := range g {
		if matches(p, pattern) {
			return true
		}
	}
	return false
}

// check returns the breaches of a rule.
func (g graph) check(r Rule) (list []string) {
	fault := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)+" ("+r.Why+")") }
	for _, pkg := range slices.Sorted(maps.Keys(g)) {
		for _, dep := range slices.Sorted(maps.Keys(g[pkg])) {
			if len(r.Users) > 0 && anyOf(dep, r.Of) && !anyOf(pkg, r.Users) && !anyOf(pkg, r.Of) {
				fault("%s: %s must not import %s", g[pkg][dep], pkg, dep)
			}
			if len(r.Only) > 0 && anyOf(pkg, r.Of) && g[dep] != nil && !anyOf(dep, r.Only) {
				fault("%s: %s must not import %s", g[pkg][dep], pkg, dep)
			}
		}
		if len(r.Never) > 0 && anyOf(pkg, r.Of) {
			for _, way := range g.ways(pkg) {
				if dep := way[len(way)-1]; anyOf(dep, r.Never) {
					fault("%s: %s must not import %s", g[pkg][way[1]], pkg, strings.Join(way[1:], ", which imports "))
				}
			}
		}
	}
	return list
}

// ways returns the shortest import paths from a package to all packages that it imports, directly
// or through others of this module.
func (g graph) ways(pkg string) (list [][]string) {
	seen := map[string]bool{pkg: true}
	for queue := [][]string{{pkg}}; len(queue) > 0; queue = queue[1:] {
		way := queue[0]
		for _, dep := range slices.SortedFunc(maps.Keys(g[way[len(way)-1]]), cmp.Compare[string]) {
			if seen[dep] {
				continue
			}
			seen[dep] = true
			next := append(slices.Clone(way), dep)
			list = append(list, next)
			if g[dep] != nil {
				queue = append(queue, next)
			}
		}
	}
	return list
}

// TestRules checks that each kind of rule finds breaches.
func TestRules(t *testing.T) {
	g := graph{"a": {"b": "a/a.go:3", "fmt": "a/a.go:4"}, "b": {"b/c": "b/b.go:1", "net": "b/b.go:2"},
		"b/c": {Clock: "b/c/c.go:9"}, "d": {"b/c": "d/d.go:1"},
		"e": {Environment: "e/e.go:1"}}
	for _, c := range []struct {
		name string
		rule Rule
		want string
	}{
		{"only", Rule{Of: []string{"a"}, Only: []string{Nothing}}, "a/a.go:3: a must not import b"},
		{"only, kept", Rule{Of: []string{"a"}, Only: []string{"b"}}, ""},
		{"never", Rule{Of: []string{"b"}, Never: []string{"net/..."}}, "b/b.go:2: b must not import net"},
		{"never, by another", Rule{Of: []string{"a"}, Never: []string{"net"}}, "a/a.go:3: a must not import b, which imports net"},
		{"never, a clock", Rule{Of: []string{"d"}, Never: []string{Clock}}, "d/d.go:1: d must not import b/c, which imports a clock"},
		{"never, the environment", Rule{Of: []string{"e"}, Never: []string{Environment}}, "e/e.go:1: e must not import the environment"},
		{"never, that package alone", Rule{Of: []string{"d"}, Never: []string{"b"}}, ""},
		{"never, those below", Rule{Of: []string{"d"}, Never: []string{"b/..."}}, "d/d.go:1: d must not import b/c"},
		{"users", Rule{Of: []string{"b/..."}, Users: []string{"a"}}, "d/d.go:1: d must not import b/c"},
		{"users, all", Rule{Of: []string{"b/..."}, Users: []string{"a", "d"}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := g.check(c.rule)
			if c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 ||
				!strings.HasPrefix(found[0], c.want)) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}
