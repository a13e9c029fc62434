package arch

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// goFilesInCircle is the largest number of files of a package that may call each other in a cycle.
// They have to be read together.
const goFilesInCircle = 3

// largerCircles lists the larger cycles that exist, with the reason. They must not grow.
var largerCircles = map[string]struct {
	limit  int
	reason string
}{
	"collectives":              {4, "a reduction to one rank and one to all are parts of each other, on hosts and in a chain"},
	"simulation":               {7, "a fault may happen to all that takes part, and all of it knows the job"},
	"simulation/kernel":        {5, "threads sleep on descriptors, which wake them, on cores of hosts; a process's end closes its links"},
	"internal/transport/verbs": {6, "a completion of either queue may end the link, which gives back what all the others hold"},
}

// TestGoCircles checks that the files of a package can be ordered so that each uses functions and
// methods of itself and of later files only, except for small cycles. Calls through an interface
// may go anywhere, because that is how parts are notified of events.
func TestGoCircles(t *testing.T) {
	r := newReader(t)
	dirs := folders(t)
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		if _, err := r.Import(module + "/" + filepath.ToSlash(dir)); err != nil {
			continue // only tests
		}
		for _, circle := range circles(r.ties(filepath.ToSlash(dir))) {
			limit := max(goFilesInCircle, largerCircles[filepath.ToSlash(dir)].limit)
			if len(circle) > limit {
				t.Errorf("%s: a circle of %d files, more than %d: %s", dir, len(circle), limit,
					strings.Join(circle, " "))
			}
		}
	}
}

// reader type-checks this module's packages from their sources. It does not load other modules,
// which leaves gaps that do not matter here.
type reader struct {
	t     *testing.T
	set   *token.FileSet
	done  map[string]*types.Package
	info  map[string]*types.Info // by folder
	files map[string][]*ast.File // by folder
}

// Import implements types.Importer.
func (r *reader) Import(imported string) (*types.Package, error) {
	if p := r.done[imported]; p != nil {
		return p, nil
	}
	dir, ours := strings.CutPrefix(imported, module+"/")
	if !ours {
		p := types.NewPackage(imported, path.Base(imported))
		p.MarkComplete()
		r.done[imported] = p
		return p, nil
	}
	ctx := build.Default
	ctx.BuildTags, ctx.CgoEnabled, ctx.GOOS, ctx.GOARCH = []string{"rdma", "openmpi"}, true, "linux", "amd64"
	found, err := ctx.ImportDir(filepath.Join(root, dir), 0)
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, name := range slices.Concat(found.GoFiles, found.CgoFiles) {
		f, err := parser.ParseFile(r.set, filepath.Join(root, dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			r.t.Fatal(err)
		}
		files = append(files, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: r, FakeImportC: true, Error: func(error) {}}
	p, _ := conf.Check(imported, r.set, files, info) // names of other modules give errors, which are ignored
	r.done[imported], r.info[dir], r.files[dir] = p, info, files
	return p, nil
}

// ties returns for each file of a package the files whose functions and methods it uses.
func (r *reader) ties(dir string) map[string][]string {
	all := map[string][]string{}
	for id, o := range r.info[dir].Uses {
		fn, ok := o.(*types.Func)
		if !ok || fn.Pkg() != r.done[module+"/"+dir] {
			continue
		}
		if recv := fn.Type().(*types.Signature).Recv(); recv != nil && types.IsInterface(recv.Type()) {
			continue
		}
		from, to := filepath.Base(r.set.Position(id.Pos()).Filename), filepath.Base(r.set.Position(fn.Pos()).Filename)
		if from != to && !slices.Contains(all[from], to) {
			all[from] = append(all[from], to)
		}
	}
	for _, list := range all {
		slices.Sort(list)
	}
	return all
}
