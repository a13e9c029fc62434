package stat_test

import (
	"fmt"

	"github.com/leidenzipper/zipper/bench/stat"
)

// Two builds are measured in turn. The ratio is of pairs, so a drift of both cancels.
func ExampleCompare() {
	before := []float64{10.0, 12.0, 11.0, 14.0, 10.5, 13.0, 12.5}
	after := []float64{5.0, 6.0, 5.5, 7.0, 5.25, 6.5, 6.25}
	c := stat.Compare(after, before)
	fmt.Printf("%.2f (%.2f - %.2f) ×, differs: %v\n", c.Ratio, c.RatioLo, c.RatioHi, c.Differs)
	// Output: 0.50 (0.50 - 0.50) ×, differs: true
}
