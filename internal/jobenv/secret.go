package jobenv

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/leidenzipper/zipper/internal/wire"
)

// SecretBits is the smallest entropy of a secret, in bits. An attacker who sees one Join can try
// secrets against it offline, tens of thousands per second on each core.
const SecretBits = 128

// NewSecret returns a random secret of SecretBits.
func NewSecret() string {
	b := make([]byte, SecretBits/8)
	_, _ = rand.Read(b) // it never fails: it ends the process instead
	return hex.EncodeToString(b)
}

// CheckSecret returns an error for a secret that can be guessed: a passphrase, or a word that is
// too short. No program can tell how a word was made, so this is only a bound for random words.
func CheckSecret(secret string) error {
	const advice = "make one with zipper secret FILE (from a passphrase that people type: with --passphrase)"
	if strings.ContainsFunc(secret, unicode.IsSpace) {
		return errors.New("the secret has white space in it, as a passphrase has: " + advice)
	}
	if bits := secretBits(secret); bits < SecretBits {
		return fmt.Errorf("the secret has %.0f bits at most, want %d: %s", bits, SecretBits, advice)
	}
	return nil
}

// secretBits returns the entropy of a word in bits if each of its characters was chosen among all
// of its kind. A word of letters of one case alone counts as language, also if it has a few random
// letters.
func secretBits(s string) float64 {
	var lower, upper, digit, hex, other bool
	different := map[rune]bool{}
	n := 0
	for _, c := range s {
		n++
		different[c] = true
		switch {
		case c >= '0' && c <= '9':
			digit = true
		case c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F':
			hex = true
			lower, upper = lower || c >= 'a', upper || c <= 'F'
		case c >= 'a' && c <= 'z':
			lower, other = true, true
		case c >= 'A' && c <= 'Z':
			upper, other = true, true
		default:
			other = true
		}
	}
	kinds := 0
	for _, k := range []struct {
		has bool
		of  int
	}{{digit, 10}, {lower, 26}, {upper, 26}} {
		if k.has {
			kinds += k.of
		}
	}
	each := math.Log2(float64(max(kinds, 1)))
	switch {
	case !digit && lower != upper:
		each = bitsOfLanguage
	case digit && hex && !other:
		each = 4
	}
	return float64(n) * min(each, float64(len(different)-1)) // repetitions add nothing
}

// ReadSecret reads a secret from a file and checks it. A file that other users can read or write is
// an error, as for ssh's keys: anyone with the secret can join the job, or run jobs on a forwarder
// that demands it. get returns an environment variable, as for From.
func ReadSecret(name string, get func(string) string) (string, error) {
	b, err := ReadPrivate(name, get)
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(b))
	if secret == "" {
		return "", fmt.Errorf("%s is empty", name)
	}
	if err := CheckSecret(secret); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return secret, nil
}

// Ticket returns the job's ticket, from the variable VarTicket or the file that VarTicketFile
// names, or "" if neither is set. get returns a variable, as for From.
func Ticket(get func(string) string) (string, error) {
	t := get(VarTicket)
	if f := get(VarTicketFile); t == "" && f != "" {
		var err error
		if t, err = ReadTicket(f); err != nil {
			return "", fmt.Errorf("%s: %w", VarTicketFile, err)
		}
	}
	return t, nil
}

// ReadTicket reads a ticket from a file. A ticket is not secret, because it is only useful together
// with the job's secret.
func ReadTicket(name string) (string, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	t := strings.TrimSpace(string(b))
	if t == "" || len(t) > wire.MaxTicket {
		return "", fmt.Errorf("%s holds %d bytes: a ticket has 1 to %d", name, len(t), wire.MaxTicket)
	}
	return t, nil
}

// ReadPrivate reads a file that only its owner may read or write. get returns an environment
// variable, as for From.
func ReadPrivate(name string, get func(string) string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := checkPrivate(f, name, get); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, longestPrivate))
}

// CheckPrivate returns an error for a file that users other than its owner can read or write.
func CheckPrivate(name string, get func(string) string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return checkPrivate(f, name, get)
}

func checkPrivate(f *os.File, name string, get func(string) string) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	// systemd gives a service its credentials by an access list, which shows as the group's
	// permissions.
	if dir := get("CREDENTIALS_DIRECTORY"); dir != "" && filepath.Dir(name) == filepath.Clean(dir) {
		return nil
	}
	if p := st.Mode().Perm(); st.Mode().IsRegular() && p&0o077 != 0 {
		return fmt.Errorf("others on this host can use the secret in %s (mode %03o): chmod 600 %[1]s", name, p)
	}
	return nil
}
