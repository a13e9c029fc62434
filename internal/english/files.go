package english

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/leidenzipper/zipper/internal/docpart"
)

// line is a line of a file without the marks of its comment.
type line struct {
	number int // from 1
	text   string
}

// passage is one text: a comment, or a paragraph or an item of a list in one.
type passage []line

// file has the parts of a file that the rules look at.
type file struct {
	prose  []passage // comments and documents
	texts  []passage // literals with more than one word, which users may read
	fields []passage // comments of struct fields, which are in prose, too
	docs   []doced   // doc comments of functions, which are in prose, too
	names  []line    // identifiers where they are declared
}

// doced is a function with its doc comment.
type doced struct {
	function string
	text     passage
}

// read finds the parts of a file by its name.
func read(name, src string) (file, error) {
	switch ext := filepath.Ext(name); {
	case ext == ".go":
		return readGo(src)
	case ext == ".c", ext == ".h":
		return readC(src), nil
	case ext == ".md":
		return readMarkdown(name, src), nil
	case ext == ".sh", ext == ".yaml", ext == ".yml", ext == ".py", ext == ".conf", ext == ".service", ext == ".socket",
		ext == "" && (strings.HasPrefix(src, "#!") || filepath.Base(name) == "Makefile"):
		return readHashes(src), nil
	}
	return file{}, nil
}

var item = regexp.MustCompile(`^\s*(?:[-*]|\d+\.)\s+`)

// add appends the paragraphs and items of a text to p.
func add(p []passage, lines []line) []passage {
	var now passage
	flush := func() {
		if now != nil {
			p, now = append(p, now), nil
		}
	}
	for _, l := range lines {
		mark := ""
		if t := strings.TrimLeft(l.text, " \t"); t == "" {
			flush()
			continue
		} else if t[0] == '-' || t[0] == '*' || t[0] >= '0' && t[0] <= '9' {
			mark = item.FindString(l.text)
		}
		if mark != "" {
			flush()
		}
		now = append(now, line{l.number, l.text[len(mark):]})
	}
	flush()
	return p
}

var directive = regexp.MustCompile(`^//(?:go:|nolint|export |line |lint:|\s*\+build|[a-z]+:[a-z])`)

func readGo(src string) (file, error) {
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, "", src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(syntax) {
		return file{}, err
	}
	var f file
	preamble := map[*ast.CommentGroup]bool{} // C code before import "C"
	name := func(ids ...*ast.Ident) {
		for _, id := range ids {
			f.names = append(f.names, line{set.Position(id.Pos()).Line, id.Name})
		}
	}
	ast.Inspect(syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.GenDecl:
			if len(n.Specs) == 1 {
				if s, ok := n.Specs[0].(*ast.ImportSpec); ok && s.Path.Value == `"C"` {
					preamble[n.Doc], preamble[s.Doc] = true, true
				}
			}
		case *ast.FuncDecl:
			name(n.Name)
			// The text of an example is for readers of the package, who do not see its name.
			if lines := goLines(set, n.Doc); len(lines) > 0 && !strings.HasPrefix(n.Name.Name, "Example") {
				f.docs = append(f.docs, doced{n.Name.Name, lines})
			}
		case *ast.TypeSpec:
			name(n.Name)
		case *ast.Field:
			name(n.Names...)
		case *ast.ValueSpec:
			name(n.Names...)
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				if id, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
					name(id)
				}
			}
		case *ast.StructType:
			for _, field := range n.Fields.List {
				for _, c := range []*ast.CommentGroup{field.Doc, field.Comment} {
					lines := goLines(set, c)
					for _, name := range field.Names { // which may be a word: Or, Of
						if len(lines) > 0 && strings.HasPrefix(lines[0].text, " "+name.Name+" ") {
							lines[0].text = "_" + lines[0].text[1+len(name.Name):]
						}
					}
					if len(lines) > 0 {
						f.fields = append(f.fields, lines)
					}
				}
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING && strings.Contains(n.Value, " ") {
				if s, err := strconv.Unquote(n.Value); err == nil {
					f.texts = append(f.texts, passage{{set.Position(n.Pos()).Line, s}})
				}
			}
		}
		return true
	})
	for _, c := range syntax.Comments {
		if !preamble[c] {
			f.prose = add(f.prose, goLines(set, c))
		}
	}
	return f, nil
}

// goLines returns the lines of prose in a comment, with an empty one for each that is code.
func goLines(set *token.FileSet, group *ast.CommentGroup) []line {
	if group == nil {
		return nil
	}
	var lines []line
	for _, c := range group.List {
		number := set.Position(c.Slash).Line
		if directive.MatchString(c.Text) {
			continue
		}
		if block, ok := strings.CutPrefix(c.Text, "/*"); ok {
			lines = append(lines, starred(number, strings.TrimSuffix(block, "*/"))...)
			continue
		}
		text := strings.TrimPrefix(c.Text, "//")
		if strings.HasPrefix(text, "\t") {
			text = ""
		}
		if t := strings.TrimSpace(text); t == "Output:" || t == "Unordered output:" {
			break // the rest is what an example prints
		}
		lines = append(lines, line{number, text})
	}
	return lines
}

// starred returns the lines of a comment in C, whose first line has the given number.
func starred(number int, block string) []line {
	var lines []line
	for i, text := range strings.Split(block, "\n") {
		text = strings.TrimSuffix(strings.TrimSpace(text), `\`)
		if t, ok := strings.CutPrefix(text, "*"); ok {
			if text = t; strings.HasPrefix(t, "   ") || strings.HasPrefix(t, "\t") {
				text = "" // code and columns
			}
		}
		lines = append(lines, line{number + i, text})
	}
	return lines
}

// member is the declaration of a member of a struct in C, as far as the comment behind it.
var member = regexp.MustCompile(`^\s+[A-Za-z_][\w\s*,\[\]+()]*;\s*$`)

// readC finds comments outside literals. A comment behind a declaration inside braces that open a
// struct or a union is that of a member.
func readC(src string) file {
	var f file
	var inside []bool // for each open brace, whether it is a struct's
	number, begin := 1, 0
	var head []byte // the code since the last semicolon or brace
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
		case c == '\n':
			number++
			begin = i + 1
		case c == '"' || c == '\'':
			for i++; i < len(src) && src[i] != c && src[i] != '\n'; i++ {
				if src[i] == '\\' {
					i++
				}
			}
		case c == '/' && i+1 < len(src) && (src[i+1] == '*' || src[i+1] == '/'):
			end, open := "*/", i+2
			if src[i+1] == '/' {
				end = "\n"
			}
			n := strings.Index(src[open:], end)
			if n < 0 {
				n = len(src) - open
			}
			lines := starred(number, src[open:open+n])
			f.prose = add(f.prose, lines)
			if len(inside) > 0 && inside[len(inside)-1] && member.MatchString(src[begin:i]) {
				f.fields = append(f.fields, lines)
			}
			number += strings.Count(src[open:open+n], "\n")
			if i = open + n; end == "*/" {
				i++
			} else {
				i--
			}
		case c == '{':
			inside = append(inside, (bytes.Contains(head, []byte("struct")) || bytes.Contains(head, []byte("union"))) &&
				!bytes.ContainsAny(head, "()="))
			head = head[:0]
		case c == '}':
			inside = inside[:max(len(inside)-1, 0)]
			head = head[:0]
		case c == ';':
			head = head[:0]
		default:
			head = append(head, c)
		}
	}
	return f
}

// readHashes finds comments that begin with # and have lines of their own.
func readHashes(src string) file {
	var f file
	var lines []line
	for i, text := range strings.Split(src, "\n") {
		text, ok := strings.CutPrefix(strings.TrimSpace(text), "#")
		if ok && strings.HasPrefix(text, " ") && !strings.HasPrefix(text, "   ") && !strings.HasPrefix(text, " shellcheck") {
			lines = append(lines, line{i + 1, text})
		} else {
			lines = append(lines, line{i + 1, ""})
		}
	}
	f.prose = add(nil, lines)
	return f
}

// readMarkdown finds prose outside headings, code, tables and the parts that are made from code.
// Released sections of the change log and decisions are left out: they record the past.
func readMarkdown(name, src string) file {
	changes := filepath.Base(name) == "CHANGELOG.md"
	if strings.Contains(filepath.ToSlash(name), "docs/decisions/0") {
		return file{}
	}
	var lines []line
	code, made, old := false, false, false
	for i, text := range strings.SplitAfter(src, "\n") {
		trimmed := strings.TrimSpace(text)
		switch {
		case text == docpart.Begin:
			made = true
		case text == docpart.End:
			made = false
		case strings.HasPrefix(trimmed, "```"):
			code = !code
		case strings.HasPrefix(text, "## "):
			old = changes && !strings.Contains(text, "Unreleased")
		}
		if code || made || old || strings.HasPrefix(text, "    ") || strings.HasPrefix(trimmed, "```") ||
			trimmed != "" && strings.IndexByte("#|<!", trimmed[0]) >= 0 {
			text = ""
		}
		lines = append(lines, line{i + 1, strings.TrimRight(text, "\n")})
	}
	return file{prose: add(nil, lines)}
}
