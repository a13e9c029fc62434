package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// These are the sizes that a reader can keep in mind. The folders of the C library have their own
// check (c_test.go).
const (
	filesInPackage = 20 // Go files without tests
	methodsOfType  = 30
)

// larger lists the packages and types that may be larger, with the reason and the limit.
var larger = map[string]struct {
	limit  int
	reason string
}{
	"cgo/mpi.Communicator":          {31, "a method for each function of MPI that is bound"},
	"forwarder/relay.Conn":          {45, "what the loop, the other connections and the owner ask of a connection"},
	"forwarder/relay.output":        {37, "one queue with its ways out: written, lent, spliced, counted"},
	"mmpi/engine.Engine":            {55, "the face of the engine, one method for each of its functions"},
	"mmpi/engine/pt2pt.Endpoint":    {39, "the matching of one process, under one lock"},
	"mmpi/engine/link":              {21, "one part of the way of a frame a file"},
	"internal/rma.Node":             {42, "the windows of one process: origin, target and synchronization"},
	"simulation/kernel.Kernel":      {31, "the system calls of a simulated kernel"},
	"simulation/play.run":           {37, "a played recording: what ranks do in turn"},
	"internal/transport/verbs.link": {36, "one link over all kinds of queue pairs"},
	"forwarder/relay":               {21, "one way of a frame a file: copied, spliced, sealed, over a trunk"},
	"internal/wire":                 {26, "one frame a file, and the newest version in two for two builds"},
	"collectives":                   {29, "one algorithm a file, and a new one is one file more"},
}

// TestSizes checks the sizes of packages and types.
func TestSizes(t *testing.T) {
	used := map[string]bool{}
	check := func(what string, n, limit int, unit string) {
		if e, ok := larger[what]; ok && n > limit {
			used[what], limit = true, e.limit
		}
		if n > limit {
			t.Errorf("%s has %d %s, more than %d: divide it, or give a reason in internal/arch/size_test.go", what, n,
				unit, limit)
		}
	}
	dirs := folders(t)
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		files := slices.DeleteFunc(dirs[dir], func(f string) bool { return strings.HasSuffix(f, "_test.go") })
		check(filepath.ToSlash(dir), len(files), filesInPackage, "files")
		methods := map[string]int{}
		for _, f := range files {
			countMethods(t, filepath.Join(root, dir, f), methods)
		}
		for _, name := range slices.Sorted(maps.Keys(methods)) {
			check(filepath.ToSlash(dir)+"."+name, methods[name], methodsOfType, "methods")
		}
	}
	for what, e := range larger {
		if !used[what] {
			t.Errorf("%s is no longer too large: its exception (%s) can go", what, e.reason)
		}
	}
}

// countMethods adds the number of methods that a file declares. Methods in two files for different
// builds count twice.
func countMethods(t *testing.T, path string, methods map[string]int) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv == nil {
			continue
		}
		x := fn.Recv.List[0].Type
		if p, ok := x.(*ast.StarExpr); ok {
			x = p.X
		}
		switch g := x.(type) {
		case *ast.IndexExpr:
			x = g.X
		case *ast.IndexListExpr:
			x = g.X
		}
		methods[x.(*ast.Ident).Name]++
	}
}
