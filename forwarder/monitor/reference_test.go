package monitor

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/internal/docpart"
)

//go:generate env ZIPPER_GENERATE=1 go test -count=1 -run ^TestReference$ .

// TestReference checks that docs/reference/metrics.md has all metrics of this package.
func TestReference(t *testing.T) {
	s := sample.s
	s.Jobs = slices.Clone(s.Jobs)
	s.Jobs[0].Trunks = []forwarder.TrunkStatus{{Forwarder: "zip2:7475"}}
	families, err := NewMetrics("").of(fixed{s}).Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| metric | kind | labels | |\n|---|---|---|---|\n")
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "zipper_") {
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.GetName(), strings.ToLower(f.GetType().String()),
			strings.Join(labels, ", "), docpart.Cell(f.GetHelp()))
	}
	b.WriteString("\nAlso: `go_*` and `process_*`, which every program in Go has.\n")
	docpart.Test(t, "../../docs/reference/metrics.md", b.String())
}
