package optional

import (
	"os"
	"os/exec"
	"testing"
)

// NeedsVariable is the environment variable that scripts/test sets once it has installed the
// packages of its stages.
const NeedsVariable = "ZIPPER_NEEDS"

// EmulatedVariable is the environment variable that scripts/system sets, to the architecture, where
// programs are emulated (qemu-user).
const EmulatedVariable = "ZIPPER_EMULATED"

// Emulated reports whether programs are emulated.
func Emulated() bool { return os.Getenv(EmulatedVariable) != "" }

// Processor skips the test under user emulation, which lacks a function of the kernel.
func Processor(t testing.TB, function string) {
	t.Helper()
	if arch := os.Getenv(EmulatedVariable); arch != "" {
		t.Skipf("user emulation of %s lacks %s", arch, function)
	}
}

// Program returns the path of a program, by its name or path, that a test needs. If it is missing
// the test is skipped, or fails if NeedsVariable is set: then the list in scripts/prerequisites
// lacks its package.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if os.Getenv(NeedsVariable) != "" {
		t.Fatalf("%v: its package is missing in the lists of scripts/prerequisites", err)
	}
	t.Skipf("%v", err)
	return ""
}

// Unshare returns the words of a command that runs the words after it in new namespaces, by
// unshare(1) with these flags. For a user other than root these include a user namespace with the
// given mapping, such as --map-root-user. Without namespaces the test is skipped, or fails if
// NeedsVariable is set and the user is root: scripts/test as root must run all tests.
func Unshare(t testing.TB, mapping string, flags ...string) []string {
	t.Helper()
	words := append([]string{"unshare"}, flags...)
	root := os.Getuid() == 0
	if !root {
		words = append(words, "--user", mapping)
	}
	out, err := exec.Command(words[0], append(words[1:], "true")...).CombinedOutput()
	if err == nil {
		return words
	}
	if root && os.Getenv(NeedsVariable) != "" {
		t.Fatalf("%q: %v: %sroot has no namespaces here: give the container the privilege (docker run --privileged)",
			words, err, out)
	}
	t.Skipf("needs namespaces: %q: %v: %s", words, err, out)
	return nil
}
