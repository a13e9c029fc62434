package jobcmd

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/scrypt"

	"github.com/leidenzipper/zipper/internal/jobenv"
)

// shortestPassphrase is how many characters a passphrase has to have.
const shortestPassphrase = 16

// scrypt's cost: 128 MiB and a third of a second for each guess (Percival: Stronger Key Derivation
// via Sequential Memory-Hard Functions, 2009). Who guesses from a Join that was seen pays it for
// every passphrase; we pay it once, here, and not in each rank.
const (
	scryptN = 1 << 17
	scryptR = 8
	scryptP = 1
)

// stretch makes a secret from a passphrase: the same everywhere for the same words and name. White
// space between words counts once. The secret is no harder to guess than the passphrase is, times
// the cost of each guess.
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
