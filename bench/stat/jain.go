package stat

// Jain returns Jain's fairness index of shares (Jain, Chiu, Hawe: A Quantitative Measure of
// Fairness and Discrimination, DEC-TR-301, 1984), (Σx)² / (n Σx²): 1 if all are equal, 1/n if one
// of n has everything, and 0 if there is nothing to share.
func Jain(x []float64) float64 {
	var sum, squares float64
	for _, v := range x {
		sum += v
		squares += v * v
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(x)) * squares)
}
