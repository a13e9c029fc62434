// Command cover adds up what gcc's gcov says of several builds of the C library and prints which
// lines have been run, for each file and chapter. scripts/coverage runs it.
//
//	cover [-wanted core,type -least 70] [-missed FILE] DIRECTORY...
//
// The directories hold the .gcno and .gcda files of the builds. A line counts as run if any build
// has run it. The exit status is 1 if of a wanted chapter less than `least` percent of the lines
// have been run.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// library is the folder of the chapters. Its folder test is left out.
const library = "cgo/libmmpi/"

func main() {
	wanted := flag.String("wanted", "", "chapters, separated by commas, whose lines are to be run")
	least := flag.Float64("least", 0, "percent of the lines of each of them")
	missed := flag.String("missed", "", "file for the table and the lines that were not run")
	flag.Parse()
	if err := run(flag.Args(), strings.Split(*wanted, ","), *least, *missed); err != nil {
		fmt.Fprintln(os.Stderr, "cover:", err)
		os.Exit(1)
	}
}

func run(dirs, wanted []string, least float64, missed string) error {
	all := lines{}
	for _, dir := range dirs {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			continue // the library was not built this time
		}
		if err := read(dir, all); err != nil {
			return err
		}
	}
	table := all.table(wanted)
	fmt.Print(table)
	if missed != "" {
		if err := os.WriteFile(missed, []byte(table+"\n"+all.missed()), 0o644); err != nil {
			return err
		}
	}
	return all.short(wanted, least)
}

// read adds gcov's results for all objects below dir, including those that have never run.
func read(dir string, into lines) error {
	var notes []string
	err := filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(p, ".gcno") {
			notes = append(notes, p)
		}
		return err
	})
	if err != nil || len(notes) == 0 {
		return errors.Join(err, fmt.Errorf("no .gcno files in %s", dir))
	}
	out, err := exec.Command("gcov", append([]string{"--json-format", "--stdout"}, notes...)...).Output()
	if err != nil {
		return fmt.Errorf("gcov: %w", err)
	}
	return into.add(strings.NewReader(string(out)))
}

// lines maps every file of a chapter to its lines with code and whether they have been run.
type lines map[string]map[int]bool

// add reads gcov's JSON, a document for each object.
func (l lines) add(r io.Reader) error {
	for d := json.NewDecoder(r); ; {
		var object struct {
			Files []struct {
				File  string
				Lines []struct {
					Number int   `json:"line_number"`
					Count  int64 `json:"count"`
				}
			}
		}
		if err := d.Decode(&object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("gcov's output: %w", err)
		}
		for _, f := range object.Files {
			name, ok := strings.CutPrefix(f.File, library)
			if !ok || strings.HasPrefix(name, "test/") {
				continue
			}
			if l[name] == nil {
				l[name] = map[int]bool{}
			}
			for _, line := range f.Lines {
				l[name][line.Number] = l[name][line.Number] || line.Count > 0
			}
		}
	}
}

// part counts the lines of a file or chapter that have been run, and all of them.
type part struct{ run, all int }

func (p part) percent() float64 {
	if p.all == 0 {
		return 0
	}
	return 100 * float64(p.run) / float64(p.all)
}

func (p part) String() string { return fmt.Sprintf("%5d of %5d  %5.1f %%", p.run, p.all, p.percent()) }

func (l lines) part(file string) (p part) {
	for _, run := range l[file] {
		p.all++
		if run {
			p.run++
		}
	}
	return p
}

// of adds up the files whose names satisfy a condition.
func (l lines) of(in func(file string) bool) (p part) {
	for file := range l {
		if in(file) {
			q := l.part(file)
			p = part{p.run + q.run, p.all + q.all}
		}
	}
	return p
}

func (l lines) chapter(name string) part {
	return l.of(func(f string) bool { return path.Dir(f) == name })
}

func (l lines) files() []string {
	var files []string
	for f := range l {
		files = append(files, f)
	}
	slices.Sort(files)
	return files
}

func (l lines) table(wanted []string) string {
	var b strings.Builder
	chapter := ""
	for _, file := range l.files() {
		if c := path.Dir(file); c != chapter {
			chapter = c
			fmt.Fprintf(&b, "%-24s %v\n", chapter, l.chapter(chapter))
		}
		fmt.Fprintf(&b, "  %-22s %v\n", path.Base(file), l.part(file))
	}
	fmt.Fprintf(&b, "%-24s %v\n", strings.Join(wanted, " "), l.of(func(f string) bool { return slices.Contains(wanted, path.Dir(f)) }))
	fmt.Fprintf(&b, "%-24s %v\n", "all", l.of(func(string) bool { return true }))
	return b.String()
}

// missed lists the lines that have never run, as ranges for each file. Lines without code between
// two of them do not end a range.
func (l lines) missed() string {
	var b strings.Builder
	for _, file := range l.files() {
		var numbers []int
		for n := range l[file] {
			numbers = append(numbers, n)
		}
		slices.Sort(numbers)
		from, to := 0, 0
		end := func() {
			if from > 0 {
				fmt.Fprintf(&b, "%s%s:%d-%d\n", library, file, from, to)
			}
			from = 0
		}
		for _, n := range numbers {
			if l[file][n] {
				end()
				continue
			}
			if from == 0 {
				from = n
			}
			to = n
		}
		end()
	}
	return b.String()
}

// short returns an error that names the wanted chapters with too little coverage, or nil.
func (l lines) short(wanted []string, least float64) error {
	var errs []error
	for _, c := range wanted {
		if p := l.chapter(c); p.percent() < least {
			errs = append(errs, fmt.Errorf("chapter %s: %.1f %% of the lines have been run, want %g %%", c, p.percent(), least))
		}
	}
	return errors.Join(errs...)
}
