package stat

// Confidence of all intervals.
const Confidence = 0.95

// significance is the P below which two samples differ.
const significance = 1 - Confidence

// MinPairs is how many values an interval of a median by ranks needs at least: that all n lie on
// one side of the true median has the chance 2·0.5^n, which is below 5 % from 6 on.
const MinPairs = 6

// DefaultRule is when a benchmark has enough: the interval within ±2.5 % of the mean, after 10 to
// 200 repetitions. A narrower one costs the square of that in time.
var DefaultRule = Rule{Min: 10, Max: 200, Width: 0.025}
