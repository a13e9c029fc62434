package stat

// Confidence is that of all intervals.
const Confidence = 0.95

// significance is the P below which two samples differ.
const significance = 1 - Confidence

// MinPairs is the least number of values for an interval of a median by ranks: that all n lie on
// one side of the true median has the probability 2·0.5^n, which is below 5 % from 6 on.
const MinPairs = 6

// DefaultRule ends a benchmark when the interval is within ±2.5 % of the mean, after 10 to 200
// repetitions. The time for a narrower interval grows by the square.
var DefaultRule = Rule{Min: 10, Max: 200, Width: 0.025}
