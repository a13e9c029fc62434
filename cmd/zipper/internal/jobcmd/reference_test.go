package jobcmd

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/docpart"
)

// TestReference checks that docs/reference/configuration.md tells which keys take effect when.
func TestReference(t *testing.T) {
	var again, atStart []string
	for _, f := range forwarderFlags() {
		name := f.Names()[0]
		if slices.Contains(reloadable, name) {
			again = append(again, "`"+name+"`")
		} else {
			atStart = append(atStart, "`"+name+"`")
		}
	}
	if len(again) != len(reloadable) {
		t.Errorf("%d options count again, %d are named", len(again), len(reloadable))
	}
	docpart.Test(t, "../../../../docs/reference/configuration.md", fmt.Sprintf(
		"| a change takes effect | keys |\n|---|---|\n| at `zipper reload` | %s |\n| at the next start | %s |\n",
		strings.Join(again, ", "), strings.Join(atStart, ", ")))
}
