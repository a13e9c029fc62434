package jobcmd

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/scrypt"

	"github.com/leidenzipper/zipper/internal/jobenv"
)

// shortestPassphrase is the least number of characters of a passphrase.
const shortestPassphrase = 16

// scryptN, scryptR and scryptP are scrypt's cost: 128 MiB and a third of a second for each guess
// (Percival: Stronger Key Derivation via Sequential Memory-Hard Functions, 2009). An attacker who
// guesses from an overheard Join pays that for every passphrase; zipper secret pays it once, and
// the ranks never.
const (
	scryptN = 1 << 17
	scryptR = 8
	scryptP = 1
)

// stretch derives a secret from a passphrase: the same everywhere for the same words and name.
// White space between words counts once. A secret is as hard to guess as the passphrase, times the
// cost of each guess.
func stretch(passphrase, name string) (string, error) {
	words := strings.Join(strings.Fields(passphrase), " ")
	if n := utf8.RuneCountInString(words); n < shortestPassphrase {
		return "", fmt.Errorf("the passphrase has %d characters, want at least %d: five words or more that do not belong together", n, shortestPassphrase)
	}
	key, err := scrypt.Key([]byte(words), []byte("zipper secret\x00"+name), scryptN, scryptR, scryptP,
		jobenv.SecretBits/8)
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(key), nil
}
