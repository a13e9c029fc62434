package arch

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// filesThatWrite is the largest number of files of a package that may assign to the fields of one
// struct. A reader who needs to know the values of a field has to read all of them.
const filesThatWrite = 3

// writtenByMore lists the structs that more files write, with the number of files. The numbers must
// not grow.
var writtenByMore = map[string]int{
	"bench/transfer.mover":            4,
	"collectives.batch":               6,
	"contention/sharing.Allocation":   4,
	"contention/solve.buffers":        5,
	"contention/solve.connection":     4,
	"contention/solve.stage":          5,
	"forwarder/job.ranks":             4,
	"forwarder/relay.Conn":            6,
	"forwarder/relay.buffer":          7,
	"forwarder/relay.entry":           4,
	"forwarder/relay.output":          5,
	"launch.Half":                     4,
	"launch/spec.Cluster":             5,
	"launch/spec.Job":                 4,
	"mmpi/engine/pt2pt.Cell":          7,
	"mmpi/engine/pt2pt.Comm":          6,
	"mmpi/engine/pt2pt.Endpoint":      11,
	"mmpi/engine/pt2pt.eagerReceive":  6,
	"mmpi/engine/pt2pt.message":       5,
	"mmpi/engine/pt2pt.peer":          5,
	"simulation.job":                  4,
	"simulation.rank":                 4,
	"simulation/kernel.Kernel":        4,
	"simulation/kernel.Process":       4,
	"simulation/play.run":             7,
	"internal/transport/verbs.writer": 4,
}

// TestCoupling checks that few files of a package write the fields of each of its structs.
func TestCoupling(t *testing.T) {
	r := newReader(t)
	used := map[string]bool{}
	for _, dir := range r.packages(t) {
		written := r.writers(dir)
		for _, name := range slices.Sorted(maps.Keys(written)) {
			files, limit, full := written[name], filesThatWrite, dir+"."+name
			if more, ok := writtenByMore[full]; ok && len(files) > limit {
				used[full], limit = len(files) == more, more
			}
			if len(files) > limit {
				t.Errorf("%s is written by %d files, more than %d: %s", full, len(files), limit, strings.Join(files, " "))
			}
		}
	}
	for full := range writtenByMore {
		if !used[full] {
			t.Errorf("%s is written by fewer files than internal/arch/coupling_test.go allows: lower that", full)
		}
	}
}

// writers returns for each struct of a package the files that assign to its fields, or to elements
// of its fields. Composite literals do not count.
func (r *reader) writers(dir string) map[string][]string {
	pkg := r.done[module+"/"+dir]
	owner := map[types.Object]string{}
	for _, name := range pkg.Scope().Names() {
		if s, ok := pkg.Scope().Lookup(name).Type().Underlying().(*types.Struct); ok {
			for i := range s.NumFields() {
				owner[s.Field(i)] = name
			}
		}
	}
	all := map[string][]string{}
	note := func(e ast.Expr) {
		field := written(e)
		if field == nil || owner[r.info[dir].Uses[field]] == "" {
			return
		}
		name, file := owner[r.info[dir].Uses[field]], filepath.Base(r.set.Position(field.Pos()).Filename)
		if !slices.Contains(all[name], file) {
			all[name] = append(all[name], file)
		}
	}
	for _, f := range r.files[dir] {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, e := range n.Lhs {
					note(e)
				}
			case *ast.IncDecStmt:
				note(n.X)
			case *ast.CallExpr:
				if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "delete" && len(n.Args) > 0 {
					note(n.Args[0])
				}
			}
			return true
		})
	}
	for _, files := range all {
		slices.Sort(files)
	}
	return all
}

// written returns the field that an assignment to e changes, or changes an element of. It returns
// nil if e is no field.
func written(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.IndexExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.SelectorExpr:
			return x.Sel
		default:
			return nil
		}
	}
}

func newReader(t *testing.T) *reader {
	return &reader{t: t, set: token.NewFileSet(), done: map[string]*types.Package{}, info: map[string]*types.Info{},
		files: map[string][]*ast.File{}}
}
