package jobenv

import (
	"fmt"
	"os"
	"strings"
)

// ReadSecret reads a secret from a file. exposed: others than the owner and the group may read it too, which the user should know.
func ReadSecret(name string) (secret string, exposed bool, err error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return "", false, err
	}
	if secret = strings.TrimSpace(string(b)); secret == "" {
		return "", false, fmt.Errorf("%s is empty", name)
	}
	st, err := os.Stat(name)
	return secret, err == nil && st.Mode().Perm()&0o004 != 0, nil
}
