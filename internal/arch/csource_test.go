package arch

import (
	"regexp"
	"strings"
)

// csource has the names that one C file in this project's style defines and uses. There is no
// preprocessor: both sides of an #if are read, and a macro counts as its body. That is enough to
// find callers, also on machines without MPI.
type csource struct {
	path     string
	includes []string            // included files, those in quotes
	defines  map[string]bool     // functions and variables that other files can see
	own      map[string]bool     // functions and variables that other files cannot see
	inline   map[string][]string // static inline functions of headers, and macros: the names in their bodies
	uses     map[string]bool     // names in function bodies and initial values, fields left out
	calls    map[string]bool     // names in uses that "(" follows
}

var (
	cNoise   = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'`)
	cInclude = regexp.MustCompile(`(?m)^#include "([^"]+)"`)
	cMacro   = regexp.MustCompile(`^#\s*define\s+(\w+)(\([^)]*\))?(.*)`)
	cToken   = regexp.MustCompile(`[A-Za-z_]\w*|->|##|[^\s\w]|\d\w*`)
	cName    = regexp.MustCompile(`^[A-Za-z_]\w*$`)
)

func scan(path, text string) *csource {
	s := &csource{path: path, defines: map[string]bool{}, own: map[string]bool{}, inline: map[string][]string{},
		uses: map[string]bool{}, calls: map[string]bool{}}
	for _, m := range cInclude.FindAllStringSubmatch(text, -1) {
		s.includes = append(s.includes, m[1])
	}
	text = cNoise.ReplaceAllStringFunc(text, func(noise string) string {
		if noise[0] == '/' {
			return " "
		}
		return "0"
	})
	text = strings.ReplaceAll(text, "\\\n", " ")
	var code strings.Builder
	simple := map[string]string{} // macros without arguments, such as UNHURRIED for "static …"
	calling := map[string]bool{}  // macros with arguments
	for line := range strings.Lines(text) {
		if m := cMacro.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			s.inline[m[1]] = names(cToken.FindAllString(m[3], -1))
			if m[2] == "" {
				simple[m[1]] = m[3]
			} else {
				calling[m[1]] = true
			}
		}
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			code.WriteString(line)
		}
	}
	s.declarations(cToken.FindAllString(code.String(), -1), simple, calling)
	return s
}

// declarations reads the declarations outside of functions.
func (s *csource) declarations(tokens []string, simple map[string]string, calling map[string]bool) {
	var head []string
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		switch {
		case t == ";":
			s.variable(head)
			head = nil
		case len(head) == 0 && i+1 < len(tokens) && tokens[i+1] == "(" &&
			(calling[t] || t == strings.ToUpper(t) && len(t) > 2):
			end := closing(tokens, i+1) // a macro that defines functions
			s.use(tokens[i : end+1])
			i = end
		case t == "__attribute__" || t == "_Alignas":
			i = closing(tokens, i+1)
		case t == "{":
			end := closing(tokens, i)
			if s.block(head, tokens[i:end+1], simple) {
				head = nil
			}
			i = end
		default:
			head = append(head, t)
		}
	}
}

// block reads the braces behind head. It returns true if they end the declaration.
func (s *csource) block(head, body []string, simple map[string]string) bool {
	open := index(head, "(")
	if open < 1 || index(head, "=") >= 0 { // a type or an initial value
		if index(head, "=") >= 0 {
			s.use(body)
		}
		return false
	}
	name, static := head[open-1], false
	for _, t := range head[:open] {
		static = static || t == "static" || strings.Contains(simple[t], "static")
	}
	switch {
	case static && strings.HasSuffix(s.path, ".h"):
		s.inline[name] = names(body)
		return true
	case static:
		s.own[name] = true
	default:
		s.defines[name] = true
	}
	s.use(body)
	return true
}

// variable reads a declaration without a body.
func (s *csource) variable(head []string) {
	if len(head) < 2 || head[0] == "typedef" || head[0] == "extern" || head[0] == "return" {
		return
	}
	value, static := index(head, "="), head[0] == "static"
	if open := index(head, "("); open >= 0 && (value < 0 || open < value) &&
		!(open+1 < len(head) && head[open+1] == "*") {
		return // a prototype
	}
	s.use(head[value+1:])
	for i, t := range head {
		next := ";"
		if i+1 < len(head) {
			next = head[i+1]
		}
		if i > 0 && cName.MatchString(t) && strings.Contains(";,=[", next) &&
			(value < 0 || i < value || head[i-1] == ",") {
			if static || strings.HasSuffix(s.path, ".h") {
				s.own[t] = true
			} else {
				s.defines[t] = true
			}
		}
	}
}

func (s *csource) use(tokens []string) {
	for _, n := range names(tokens) {
		s.uses[n] = true
	}
	for i, t := range tokens[:max(len(tokens)-1, 0)] {
		if tokens[i+1] == "(" && cName.MatchString(t) && (i == 0 || tokens[i-1] != "." && tokens[i-1] != "->") {
			s.calls[t] = true
		}
	}
}

// names returns the identifiers among tokens that are not fields.
func names(tokens []string) []string {
	var list []string
	for i, t := range tokens {
		if cName.MatchString(t) && (i == 0 || tokens[i-1] != "." && tokens[i-1] != "->") &&
			(i+1 == len(tokens) || tokens[i+1] != "##") && (i == 0 || tokens[i-1] != "##") {
			list = append(list, t)
		}
	}
	return list
}

func index(tokens []string, want string) int {
	for i, t := range tokens {
		if t == want {
			return i
		}
	}
	return -1
}

// closing returns the index at which the bracket at tokens[open] ends.
func closing(tokens []string, open int) int {
	depth := 0
	for i := open; i < len(tokens); i++ {
		switch tokens[i] {
		case "(", "{", "[":
			depth++
		case ")", "}", "]":
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(tokens) - 1
}
