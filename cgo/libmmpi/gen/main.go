// Command gen makes the wrappers of the shim (cgo/libmmpi) from one MPI library's own mpi.h.
//
//	mpicc -E mpi.h | gen -out DIR policy/shim.txt policy/comms.txt
//
// It writes three files to DIR: natives.h (the table of the native functions), wrap.c (PMPI_X and
// MPI_X for every function) and functions.tsv (the effect of each function on a communicator that
// spans clusters). A file whose contents would not change is not written, so that make does not
// compile again. MPI_T is not wrapped, because its functions take no communicator.
//
//	gen -table build/openmpi/functions.tsv build/mpich/functions.tsv build/mpi5/abi/functions.tsv
//
// prints the conformance table (docs/reference/conformance.md). The last file is made like the
// others, from mpi5.txt, which lists the functions of every library with MPI 5's standard ABI.
package main

//go:generate sh -euc "cd ../../..; mkdir -p build/mpi5/abi; go run ./cgo/libmmpi/gen -out build/mpi5/abi cgo/libmmpi/policy/shim.txt cgo/libmmpi/policy/comms.txt cgo/libmmpi/policy/windows.txt < cgo/libmmpi/gen/mpi5.txt; go run ./cgo/libmmpi/gen -table build/openmpi/functions.tsv build/mpich/functions.tsv build/mpi5/abi/functions.tsv > build/conformance.md; mv build/conformance.md docs/reference/conformance.md"

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	out := flag.String("out", ".", "`directory` to write to")
	asTable := flag.Bool("table", false, "print the conformance table of the functions.tsv files given")
	flag.Parse()
	var err error
	if *asTable {
		var text string
		text, err = table(flag.Args())
		fmt.Print(text)
	} else {
		err = run(os.Stdin, *out, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out string, policyFiles []string) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	all, err := parse(string(text))
	if err != nil {
		return err
	}
	if len(all) < 300 {
		return fmt.Errorf("only %d functions found: is this a preprocessed mpi.h?", len(all))
	}
	named := policies{}
	for _, file := range policyFiles {
		if err := named.read(file); err != nil {
			return err
		}
	}
	var functions []function
	chosen := map[string]string{}
	byName := map[string]function{}
	for _, f := range all {
		if strings.HasPrefix(f.name, "T_") {
			continue
		}
		functions = append(functions, f)
		byName[f.name] = f
	}
	for _, f := range functions {
		if chosen[f.name], err = named.of(f, byName); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{"natives.h": header(functions, chosen), "wrap.c": wrappers(functions, chosen), "functions.tsv": list(functions, chosen)} {
		if err := write(filepath.Join(out, name), []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

func write(path string, data []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return nil
	}
	return os.WriteFile(path, data, 0o644)
}
