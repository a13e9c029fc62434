package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
)

// The policies of wrappers.
const (
	own    = "own"    // z_X in a process that takes part in a job, otherwise native
	inside = "inside" // as own, but z_X refuses arguments that span clusters
	always = "always" // z_X
	pass   = "pass"   // native
	skip   = "skip"   // no wrapper: the program calls the native function directly
	// native; unsupported for arguments that span clusters, and for the shim's requests; the thread
	// is marked as inside
	guarded = "guarded"
	window  = "window" // z_X for a served window, otherwise guarded
	// narrow is for the big-count form X_c of a function with a z_X: z_X if the counts fit an int.
	// For larger counts it is guarded, except that z_X gets types of many elements if an argument
	// spans clusters and the counts are of elements of types. No policy file names it.
	narrow = "narrow"
	// arrays is for the big-count form of a collective with arrays: z_X with the counts and arrays
	// narrowed if the communicator spans clusters, otherwise guarded. No policy file names it.
	arrays = "arrays"
	// persist is for a persistent collective that starts an own nonblocking one: z_X is generated.
	// No policy file names it.
	persist = "persist"
	// synced is guarded after a barrier of the communicator or file, which serves others while it
	// waits. It is for collective functions that block.
	synced = "synced"
)

// policies maps a function's name without MPI_ to its policy; of derives the policy of functions
// that are not named.
type policies map[string]string

// read adds one policy file, whose lines are "policy Function Function…"; # starts a comment.
func (p policies) read(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	for n := 1; in.Scan(); n++ {
		text, _, _ := strings.Cut(in.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		if !slices.Contains([]string{own, inside, always, pass, skip, guarded, window, synced}, words[0]) {
			return fmt.Errorf("%s:%d: unknown policy %q", file, n, words[0])
		}
		for _, w := range words[1:] {
			if was, twice := p[w]; twice {
				return fmt.Errorf("%s:%d: %s has the policy %s already", file, n, w, was)
			}
			p[w] = words[0]
		}
	}
	return in.Err()
}

// of returns the policy of a function: the named one; persist, narrow or arrays if the function has
// such a form; otherwise guarded if a communicator, group, window or file is among its arguments
// and it returns an error code, or pass. It returns an error for two kinds of functions, which must
// be named: those with a variable number of arguments, which cannot be wrapped, and those that get
// requests from the program, because native MPI takes the shim's requests for complete.
func (p policies) of(f function, all map[string]function) (string, error) {
	if named, ok := p[f.name]; ok {
		return named, nil
	}
	if _, ok := p.starts(f, all); ok {
		return persist, nil
	}
	if name, ok := strings.CutSuffix(f.name, "_c"); ok {
		short := all[name]
		_, persistent := p.starts(short, all)
		ours := p[name] == own || p[name] == inside || p[name] == window || persistent
		switch {
		case ours && narrows(f, short):
			return narrow, nil
		case ours && narrowsArrays(f, short):
			return arrays, nil
		case p[name] == pass:
			return pass, nil
		}
	}
	if len(f.requests()) > 0 {
		return "", fmt.Errorf("%s gets requests, which may be the shim's: name it in a policy file, under own "+
			"(with z_%s in C), under guarded (it refuses the shim's requests) or under pass", f.mpi(), f.name)
	}
	policy := pass
	for _, a := range f.params {
		switch a.typ {
		case "...":
			return "", fmt.Errorf("%s has a variable number of arguments: name it under skip", f.mpi())
		case "MPI_Comm", "MPI_Group", "MPI_Win", "MPI_File":
			policy = guarded
		}
	}
	if f.result != "int" {
		policy = pass
	}
	return policy, nil
}

// narrows reports whether a big-count function differs from its short form in single counts only.
func narrows(big, short function) bool {
	if len(big.params) != len(short.params) {
		return false
	}
	for i, a := range big.params {
		b := short.params[i]
		if a.suffix != b.suffix || a.typ != b.typ && (a.typ != "MPI_Count" && a.typ != "MPI_Aint" || b.typ != "int" || a.suffix != "") {
			return false
		}
	}
	return true
}

// onSpanning returns the effect of a call with an argument that spans clusters, for the list of
// functions.
func onSpanning(f function, policy string) string {
	switch policy {
	case own, always, narrow, arrays, persist, window:
		return "supported"
	case inside:
		return "unsupported"
	case guarded, synced:
		if len(f.requests()) > 0 {
			return "unsupported"
		}
		for _, a := range f.params {
			if a.typ == "MPI_Comm" || a.typ == "MPI_Group" || a.typ == "MPI_Win" {
				return "unsupported"
			}
		}
	}
	return "local"
}
