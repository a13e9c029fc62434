// Package docpart puts parts that are generated from code into documents.
package docpart

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The generated part of a document stands between these lines.
const (
	Begin = "<!-- Made by make generate: changes here are overwritten. -->\n"
	End   = "<!-- End of the part made by make generate. -->\n"
)

// Variable is the environment variable with which Test writes documents.
const Variable = "ZIPPER_GENERATE"

// Document returns the current text of a document, and the text with the new generated part.
func Document(path, made string) (is, want string, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", "", err
	}
	is = string(b)
	before, rest, ok := strings.Cut(is, Begin)
	_, after, ok2 := strings.Cut(rest, End)
	if !ok || !ok2 {
		return "", "", fmt.Errorf("%s lacks the two lines that enclose the generated part", path)
	}
	return is, before + Begin + "\n" + strings.TrimRight(made, "\n") + "\n\n" + End + after, nil
}

// Write writes the generated part into the document.
func Write(path, made string) error {
	is, want, err := Document(path, made)
	if err != nil || is == want {
		return err
	}
	return os.WriteFile(path, []byte(want), 0o644)
}

// Test fails if the document is not up to date. With Variable it writes the document instead. It is
// for packages that docgen cannot import.
func Test(t testing.TB, path, made string) {
	t.Helper()
	if os.Getenv(Variable) != "" {
		if err := Write(path, made); err != nil {
			t.Fatal(err)
		}
	}
	if is, want, err := Document(path, made); err != nil {
		t.Fatal(err)
	} else if is != want {
		t.Errorf("%s is not up to date: run make generate", path)
	}
}

// Cell returns a text as a cell of a table: in one line, without characters that end a cell.
func Cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "\\|")
}
