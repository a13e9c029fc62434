package main

import (
	"os"
	"regexp"
	"strings"
)

// What a limits.h is made of: comments, enums of named numbers, and macros that are numbers.
var cPart = regexp.MustCompile(`(?s)/\*(.*?)\*/|(\benum\s*\w*\s*\{)|(\};)|(\w+)\s*=\s*([^,};]*?)\s*(?:,|(?:/\*.*?\*/\s*)?\})|(?m:^#define\s+(\w+)[ \t]+([^/\n]+?)[ \t]*$)`)

// cStar begins the lines of a comment after its first.
var cStar = regexp.MustCompile(`\n\s*\*`)

// cNumbers reads a header. A comment is that of what follows it, or, behind a number in its line,
// of that number; one before an enum is the whole enum's.
func cNumbers(path string) ([]group, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	text := string(b)
	if _, after, ok := strings.Cut(text, "#ifndef"); ok { // the comment before it is about the file
		text = after
	}
	var all []group
	var pending string // a comment whose number is to come
	lineOf := func(at int) int { return strings.Count(text[:at], "\n") }
	numbered := -1 // the line of the last number
	open := false  // an enum, or what stands outside of one
	add := func(name, value string, at int) {
		if !open {
			all, open = append(all, group{}), true
		}
		g := &all[len(all)-1]
		g.numbers = append(g.numbers, number{name: name, value: oneLine(value), text: pending})
		pending, numbered = "", lineOf(at)
	}
	for at := 0; ; {
		m := cPart.FindStringSubmatchIndex(text[at:])
		if m == nil {
			break
		}
		part := func(i int) string {
			if m[2*i] < 0 {
				return ""
			}
			return text[at+m[2*i] : at+m[2*i+1]]
		}
		next := at + m[1]
		switch {
		case m[2] >= 0:
			comment := oneLine(cStar.ReplaceAllString(part(1), "\n"))
			if g := len(all) - 1; g >= 0 && len(all[g].numbers) > 0 && lineOf(at+m[0]) == numbered {
				n := &all[g].numbers[len(all[g].numbers)-1]
				n.text = strings.TrimSpace(n.text + " " + comment)
			} else {
				pending = comment
			}
		case m[4] >= 0:
			all, open = append(all, group{text: pending}), true
			pending = ""
		case m[6] >= 0:
			open = false
		case m[8] >= 0:
			add(part(4), part(5), at+m[8])
			next = at + m[11] // a comment that follows in the line is read next
		case m[12] >= 0:
			add(part(6), part(7), at+m[12])
		}
		at = next
	}
	return merged(all), nil
}

// merged puts enums of one number each, whose comment is that number's, into one table.
func merged(list []group) (all []group) {
	for _, g := range list {
		if len(g.numbers) == 0 {
			continue
		}
		if len(g.numbers) == 1 {
			n := g.numbers[0]
			n.text = strings.TrimSpace(g.text + " " + n.text)
			if last := len(all) - 1; last >= 0 && all[last].text == "" {
				all[last].numbers = append(all[last].numbers, n)
				continue
			}
			g = group{numbers: []number{n}}
		}
		all = append(all, g)
	}
	return all
}
