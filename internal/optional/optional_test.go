package optional

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// If TestSkipIsReported runs this program again, its tests are optional ones.
var (
	again = os.Getenv("OPTIONAL_AGAIN") != ""
	inner = Tests{"OPTIONAL_INNER", "these are for the test"}
)

func TestMain(m *testing.M) {
	if again {
		inner.Main(m)
	}
	os.Exit(m.Run())
}

func TestInner(t *testing.T) {
	if again {
		inner.Skip(t)
	}
}

// TestSkipIsReported checks that go test ./... shows for such a package that nothing has run, and
// with -v the reason.
func TestSkipIsReported(t *testing.T) {
	for _, tc := range []struct {
		flag, asked string
		want, not   string
	}{
		{"-run=TestInner", "", "[no tests to run]", "FAIL"},
		{"-v", "", "--- SKIP: TestInner", "FAIL"},
		{"-v", "", "these are for the test", "FAIL"},
		{"-v", "1", "--- PASS: TestInner", "no tests to run"},
	} {
		cmd := exec.Command("go", "test", "-count=1", "-run=TestInner", tc.flag, ".")
		cmd.Env = append(os.Environ(), "OPTIONAL_AGAIN=1", inner.Variable+"="+tc.asked)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), tc.want) || strings.Contains(string(out), tc.not) {
			t.Errorf("%v: %v\n%s", tc, err, out)
		}
	}
}
