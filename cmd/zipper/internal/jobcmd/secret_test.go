package jobcmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/leidenzipper/zipper/internal/jobenv"
)

func TestSecretCommand(t *testing.T) {
	app := &cli.App{Commands: []*cli.Command{Secret()}, ExitErrHandler: func(*cli.Context, error) {}}
	file := filepath.Join(t.TempDir(), "secret")
	if err := app.Run([]string{"zipper", "secret", file}); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(file)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", st.Mode(), err)
	}
	one, err := jobenv.ReadSecret(file, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	if err := app.Run([]string{"zipper", "secret", file}); err == nil ||
		!strings.Contains(err.Error(), "exists already") {
		t.Errorf("a file that is there: %v", err)
	}
	if again, _ := jobenv.ReadSecret(file, os.Getenv); again != one {
		t.Error("the file that was there has been changed")
	}
	other := file + "2"
	if err := app.Run([]string{"zipper", "secret", other}); err != nil {
		t.Fatal(err)
	}
	if two, _ := jobenv.ReadSecret(other, os.Getenv); two == one {
		t.Error("the same secret twice")
	}
	for _, args := range [][]string{{}, {"a", "b"}, {"--passphrase", file + "3"}, {"--for", "lab", file + "3"}} {
		if app.Run(append([]string{"zipper", "secret"}, args...)) == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

// TestPassphraseGivesTheSameSecret checks that the same words and name give the same secret
// everywhere, and that no others do.
func TestPassphraseGivesTheSameSecret(t *testing.T) {
	const words = "six words that are known here"
	one, err := stretch(words, "lab")
	if err != nil || jobenv.CheckSecret(one) != nil {
		t.Fatalf("%q, %v", one, err)
	}
	// Python computes it so: hashlib.scrypt(words, salt=b"zipper secret\0lab", n=1<<17, r=8, p=1,
	// dklen=16).
	// dklen=16).
	if one != "69abd01e4fb03ffdd75cbb666a1fbdc4" {
		t.Errorf("got %s: secrets that are in use would no longer come out", one)
	}
	if again, _ := stretch(" "+strings.ReplaceAll(words, " ", "  "), "lab"); again != one {
		t.Error("white space counts")
	}
	if other, _ := stretch(words, "another lab"); other == one {
		t.Error("the name does not count")
	}
	if _, err := stretch("hush hush", "lab"); err == nil {
		t.Error("nine characters are taken")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.WriteString(words + "\nmore")
	w.Close()
	if got, err := ask(r, os.Stderr, ""); err != nil || got != words {
		t.Errorf("asked: %q, %v", got, err)
	}
}
