package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// A param is one parameter of a function: its type and name as text, and the text after the name
// ("[]", "[][3]").
type param struct{ typ, name, suffix string }

// A function is one MPI function of an mpi.h, without its prefix MPI_ or PMPI_ (but with MPIX_'s
// X_).
type function struct {
	result string
	name   string
	params []param
}

// mpi returns the name that programs use: MPI_Send, MPIX_Query_cuda_support.
func (f function) mpi() string { return "MPI" + sep(f.name) + f.name }

// pmpi returns the name in the profiling interface: PMPI_Send.
func (f function) pmpi() string { return "P" + f.mpi() }

// sep returns "_", or "" before the X_ of an extension: MPI + X_Name.
func sep(name string) string {
	if strings.HasPrefix(name, "X_") {
		return ""
	}
	return "_"
}

var (
	attribute   = regexp.MustCompile(`__attribute__\s*\(\(`)
	lineMark    = regexp.MustCompile(`(?m)^#.*$`)
	declaration = regexp.MustCompile(`(?:^|[;}\s])((?:const\s+)?[A-Za-z_]\w*\s*\**)\s*\bPMPI(X?)_([A-Za-z]\w*)\s*\(`)
	declarator  = regexp.MustCompile(`^(.*?)\b([A-Za-z_]\w*)\s*((?:\[[^\]]*\]\s*)*)$`)
)

// parse returns the functions whose PMPI names a preprocessed mpi.h declares.
func parse(text string) ([]function, error) {
	text = removeAttributes(lineMark.ReplaceAllString(text, ""))
	var out []function
	seen := map[string]bool{}
	for _, m := range declaration.FindAllStringSubmatchIndex(text, -1) {
		f := function{result: strings.TrimSpace(text[m[2]:m[3]]), name: text[m[6]:m[7]]}
		if m[4] != m[5] {
			f.name = "X_" + f.name
		}
		if f.result == "return" || f.result == "typedef" || seen[f.name] {
			continue
		}
		seen[f.name] = true
		end := closing(text, m[1])
		if end < 0 {
			return nil, fmt.Errorf("%s: no closing parenthesis", f.pmpi())
		}
		var err error
		if f.params, err = parseParams(text[m[1]:end]); err != nil {
			return nil, fmt.Errorf("%s: %w", f.pmpi(), err)
		}
		out = append(out, f)
	}
	return out, nil
}

// closing returns the index of the parenthesis that closes the one opened just before from, or -1.
func closing(text string, from int) int {
	depth := 1
	for i := from; i < len(text); i++ {
		switch text[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

func removeAttributes(text string) string {
	var b strings.Builder
	for {
		m := attribute.FindStringIndex(text)
		if m == nil {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:m[0]])
		inner := closing(text, m[1])
		if inner < 0 {
			return b.String()
		}
		end := closing(text, inner+1)
		if end < 0 {
			return b.String()
		}
		text = text[end+1:]
	}
}

func parseParams(list string) ([]param, error) {
	list = strings.Join(strings.Fields(list), " ")
	if list == "" || list == "void" {
		return nil, nil
	}
	if strings.Contains(list, "(") {
		return nil, errors.New("a parameter of function type without a name for it")
	}
	var out []param
	for _, s := range strings.Split(list, ",") {
		s = strings.TrimSpace(s)
		if s == "..." {
			out = append(out, param{typ: "..."})
			continue
		}
		if m := declarator.FindStringSubmatch(s); m != nil && strings.TrimSpace(m[1]) != "" {
			out = append(out, param{strings.TrimSpace(m[1]), m[2], strings.ReplaceAll(m[3], " ", "")})
			continue
		}
		bracket := strings.IndexByte(s+"[", '[') // a type without a name
		out = append(out, param{strings.TrimSpace(s[:bracket]), nameless(len(out)), s[bracket:]})
	}
	return out, nil
}

// nameless returns the name of parameter i if the header has none for it.
func nameless(i int) string { return fmt.Sprintf("arg%d", i) }

// prototype returns the function's declaration under a name.
func (f function) prototype(name string) string {
	var list []string
	for _, a := range f.params {
		if a.typ == "..." {
			list = append(list, "...")
			continue
		}
		list = append(list, strings.TrimSpace(a.typ+" "+a.name+a.suffix))
	}
	if list == nil {
		list = []string{"void"}
	}
	return fmt.Sprintf("%s %s(%s)", f.result, name, strings.Join(list, ", "))
}

// arguments returns the names of the function's parameters, with those in but replaced.
func (f function) arguments(but map[string]string) string {
	var list []string
	for _, a := range f.params {
		name := a.name
		if other, ok := but[name]; ok {
			name = other
		}
		list = append(list, name)
	}
	return strings.Join(list, ", ")
}

// handle returns the name of the first argument of the type, or "" if there is none.
func (f function) handle(typ string) string {
	for _, a := range f.params {
		if a.typ == typ && a.suffix == "" {
			return a.name
		}
	}
	return ""
}

// requests returns the parameters by which the function gets requests from the program: handles,
// arrays of them, and addresses of them. An address that is the last parameter of several is that
// of the function's result.
func (f function) requests() []param {
	var out []param
	for i, a := range f.params {
		typ := strings.ReplaceAll(strings.TrimPrefix(a.typ, "const "), " ", "")
		result := typ == "MPI_Request*" && a.suffix == "" && i > 0 && i == len(f.params)-1
		if strings.TrimSuffix(typ, "*") == "MPI_Request" && !result {
			out = append(out, a)
		}
	}
	return out
}

// makesComm returns the name of the argument by which the function returns a communicator, or "" if
// there is none.
func (f function) makesComm() string {
	for _, a := range f.params {
		if a.is("MPI_Comm*") {
			return a.name
		}
	}
	return ""
}
