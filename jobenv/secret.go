package jobenv

import (
	"fmt"
	"os"
	"strings"
)

// ReadSecret reads a secret from a file. A file that everybody on the host can read is refused, as
// ssh refuses such keys: who has the secret can join the job, or run jobs on a forwarder that
// demands it.
func ReadSecret(name string) (string, error) {
	if err := CheckPrivate(name); err != nil {
		return "", err
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(b))
	if secret == "" {
		return "", fmt.Errorf("%s is empty", name)
	}
	return secret, nil
}

// CheckPrivate refuses a file that others than its owner and group can read.
func CheckPrivate(name string) error {
	st, err := os.Stat(name)
	if err == nil && st.Mode().Perm()&0o004 != 0 {
		err = fmt.Errorf("everybody on this host can read the secret in %s: chmod o-r %[1]s", name)
	}
	return err
}
