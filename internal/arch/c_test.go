package arch

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// chapters are the folders of cgo/libmmpi. Each may use itself and those before it.
// docs/design/c-library.md lists them, too.
var chapters = []string{"signal", "entry", "core", "device", "type", "request", "p2p", "coll", "comm", "failure", "topo", "rma", "io", "wrap", "start"}

const (
	filesInChapter = 14 // largest number of files that a reader takes in at a glance
	filesInCircle  = 3  // largest number of files that call each other
)

// TestChapters checks the C library: which files include and call which others, cycles of files,
// and the size of folders.
func TestChapters(t *testing.T) {
	root := "../../cgo/libmmpi"
	files := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path == filepath.Join(root, "test") {
			return fs.SkipDir
		}
		if ext := filepath.Ext(path); ext == ".c" || ext == ".h" {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files[filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))] = string(text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 40 {
		t.Fatalf("only %d files of C", len(files))
	}
	for _, fault := range faults(files) {
		t.Error(fault)
	}
	overview, err := os.ReadFile("../../docs/design/c-library.md")
	if err != nil {
		t.Fatal(err)
	}
	row := "`" + strings.Join(chapters, "` ← `") + "`"
	if !strings.Contains(strings.Join(strings.Fields(string(overview)), " "), row) {
		t.Errorf("docs/design/c-library.md lacks the chapters of cgo/libmmpi in their order:\n%s", row)
	}
}

// TestChapterFaults checks that faults finds each kind of breach.
func TestChapterFaults(t *testing.T) {
	good := map[string]string{
		"core/map.h": "void zmap_put(int key);\nstatic inline void zmap_twice(int key) { zmap_put(key), zmap_put(key); }\n",
		"core/map.c": "#include \"core/map.h\"\nstatic int n;\nint z_on, z_threads;\nvoid zmap_put(int key) { n += key; }\n",
		"p2p/a.c":    "#include \"core/map.h\"\n#define SEND(X) int z_##X(void) { zmap_put(1); return z_b(); }\nint z_b(void);\nSEND(Send)\nint z_a(void) { return z_on; }\n",
		"p2p/b.c":    "int z_b(void) { return z_a(); } /* z_c() */\n",
		"rma/win.c":  "#include \"core/map.h\"\n__attribute__((constructor)) static void z_load(void) { zmap_twice(2); }\nint zwin_get(void) { z_load(); return real.zwin_x(); }\n",
	}
	if f := faults(good); len(f) > 0 {
		t.Errorf("found in a correct file: %q", f)
	}
	for _, c := range []struct{ name, path, text, want string }{
		{"call", "core/x.c", "int z_x(void) { return zwin_get(); }", "core/x.c uses zwin_get of rma/win.c"},
		{"variable", "rma/v.c", "int z_windows = 3;", ""},
		{"call in a header", "core/x.h", "static inline int z_x(void) { return z_a(); }", "core/x.h uses z_a of p2p/a.c"},
		{"call by way of a header", "rma/x.h", "static inline int z_x(void) { return zwin_get(); }", ""},
		{"macro", "coll/x.c", "#define GET(n) \\\n  zwin_get()\nstatic int y(void) { return GET(1); }", "coll/x.c uses zwin_get of rma/win.c"},
		{"initial value", "coll/x.c", "static int (*hook)(void) = zwin_get;", "coll/x.c uses zwin_get of rma/win.c"},
		{"include", "type/x.c", "#include \"rma/win.h\"\n", "type/x.c includes rma/win.h"},
		{"include without a chapter", "type/x.c", "#include \"type.h\"\n", "type/x.c includes type.h"},
		{"no such chapter", "misc/x.c", "int z_x;", "misc is no chapter"},
		{"engine", "rma/x.c", "static int y(void) { return Z_ENGINE(ze_progress(0)); }", ""},
		{"engine without a mark", "rma/x.c", "static int y(void) { return z_eng.ze_progress(0); }",
			"rma/x.c calls the engine without Z_ENGINE"},
		{"undefined function", "rma/x.c", "static int y(void) { return zwin_lost(); }", "rma/x.c calls zwin_lost, which is not defined"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := maps.Clone(good)
			files[c.path] = c.text
			expect(t, faults(files), c.want)
		})
	}
	t.Run("circle", func(t *testing.T) {
		files := maps.Clone(good)
		for i, name := range []string{"c", "d", "e", "f"} {
			files["comm/"+name+".c"] = fmt.Sprintf("int zcomm_%d(void) { return zcomm_%d(); }", i, (i+1)%4)
		}
		expect(t, faults(files), "a circle of 4 files: comm/c.c comm/d.c comm/e.c comm/f.c")
	})
	t.Run("crowd", func(t *testing.T) {
		files := maps.Clone(good)
		for i := range filesInChapter + 1 {
			files[fmt.Sprintf("io/%d.c", i)] = ""
		}
		expect(t, faults(files), "io has 15 files")
	})
}

func expect(t *testing.T, found []string, want string) {
	t.Helper()
	if want == "" && len(found) == 0 {
		return
	}
	if len(found) != 1 || want == "" || !strings.HasPrefix(found[0], want) {
		t.Errorf("found %q, want %q", found, want)
	}
}

// ofShim matches names that only the library's files may define. z_Send and similar names are left
// out, because macros make many of them.
var ofShim = regexp.MustCompile(`^(z_[a-z]|z[a-z0-9]+_|p2p_)`)

// ofEngine begins the names of the engine's functions. The library calls them by Z_ENGINE alone,
// which marks the thread as inside the engine (entry/entry.h).
const ofEngine = "ze_"

// faults returns all breaches of the rules in the files. The keys of files are paths below
// cgo/libmmpi.
func faults(files map[string]string) []string {
	var list []string
	sources, definer, shared := map[string]*csource{}, map[string]string{}, map[string][]string{}
	count := map[string]int{}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		chapter, _, _ := strings.Cut(path, "/")
		if count[chapter]++; count[chapter] == 1 && !slices.Contains(chapters, chapter) {
			list = append(list, chapter+" is no chapter (internal/arch/c_test.go)")
		}
		if strings.Contains(files[path], "z_eng."+ofEngine) {
			list = append(list, path+" calls the engine without Z_ENGINE (entry/entry.h)")
		}
		s := scan(path, files[path])
		sources[path] = s
		for name := range s.defines {
			definer[name] = path
		}
		if strings.HasSuffix(path, ".h") {
			maps.Copy(shared, s.inline)
		}
	}
	for chapter, n := range count {
		if n > filesInChapter {
			list = append(list, fmt.Sprintf("%s has %d files, more than %d", chapter, n, filesInChapter))
		}
	}
	ties := map[string][]string{}
	for _, path := range slices.Sorted(maps.Keys(sources)) {
		s := sources[path]
		for _, h := range s.includes {
			if strings.Contains(h, "/") && !slices.Contains(chapters, strings.Split(h, "/")[0]) || above(h, path) ||
				!strings.Contains(h, "/") && h != "natives.h" && h != "abi.h" {
				list = append(list, fmt.Sprintf("%s includes %s: not of its chapter or a lower one", path, h))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(s.closure(shared))) {
			switch where, ok := definer[name]; {
			case !ok && s.calls[name] && ofShim.MatchString(name) && !strings.HasPrefix(name, ofEngine) &&
				!s.own[name] && s.inline[name] == nil && shared[name] == nil:
				list = append(list, fmt.Sprintf("%s calls %s, which is not defined", path, name))
			case !ok || s.own[name] || where == path:
			case above(where, path):
				list = append(list, fmt.Sprintf("%s uses %s of %s, a higher chapter", path, name, where))
			case strings.HasSuffix(path, ".c") && !slices.Contains(ties[path], where):
				ties[path] = append(ties[path], where)
			}
		}
	}
	for _, circle := range circles(ties) {
		if len(circle) > filesInCircle {
			list = append(list, fmt.Sprintf("a circle of %d files: %s", len(circle), strings.Join(circle, " ")))
		}
	}
	return list
}

// above reports whether file a is in a higher chapter than file b.
func above(a, b string) bool {
	return slices.Index(chapters, strings.Split(a, "/")[0]) > slices.Index(chapters, strings.Split(b, "/")[0])
}

// closure returns the names that the file uses, also through macros and inline functions of
// headers.
func (s *csource) closure(shared map[string][]string) map[string]bool {
	all := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		if all[name] {
			return
		}
		all[name] = true
		for _, n := range s.inline[name] {
			add(n)
		}
		for _, n := range shared[name] {
			add(n)
		}
	}
	for name := range s.uses {
		add(name)
	}
	if strings.HasSuffix(s.path, ".h") { // functions that a header defines count as used by it
		for name := range s.inline {
			add(name)
		}
	}
	return all
}

// circles returns the strongly connected components of more than one file (Tarjan).
func circles(ties map[string][]string) [][]string {
	var found [][]string
	var stack []string
	number, low, on := map[string]int{}, map[string]int{}, map[string]bool{}
	var visit func(v string)
	visit = func(v string) {
		number[v] = len(number) + 1
		low[v] = number[v]
		stack, on[v] = append(stack, v), true
		for _, w := range ties[v] {
			if number[w] == 0 {
				visit(w)
				low[v] = min(low[v], low[w])
			} else if on[w] {
				low[v] = min(low[v], number[w])
			}
		}
		if low[v] != number[v] {
			return
		}
		at := slices.Index(stack, v)
		circle := slices.Clone(stack[at:])
		stack = stack[:at]
		for _, w := range circle {
			on[w] = false
		}
		if len(circle) > 1 {
			slices.Sort(circle)
			found = append(found, circle)
		}
	}
	for _, v := range slices.Sorted(maps.Keys(ties)) {
		if number[v] == 0 {
			visit(v)
		}
	}
	return found
}

// TestSameNumbers compares numbers that C and Go both define and that no compiler compares.
// cgo/abi/agree.go compares those that cgo sees.
func TestSameNumbers(t *testing.T) {
	for _, c := range []struct{ name, c, file, goes string }{
		{"Z_CROWDED_US", `Z_CROWDED_US = (\d+),`, "forwarder/loop/limits.go", `crowded = (\d+) \* time\.Microsecond`},
	} {
		inC, inGo := number(t, "../../cgo/libmmpi/core/limits.h", c.c), number(t, "../../"+c.file, c.goes)
		if inC != inGo {
			t.Errorf("%s is %s in C, %s in %s", c.name, inC, inGo, c.file)
		}
	}
}

func number(t *testing.T, file, pattern string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(pattern).FindSubmatch(text)
	if m == nil {
		t.Fatalf("%s has nothing like %s", file, pattern)
	}
	return string(m[1])
}
