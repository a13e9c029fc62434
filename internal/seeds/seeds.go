// Package seeds is for tests that run the same procedure with one seed after the other.
package seeds

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Variable is the environment variable with the seeds to run: FROM-TO without TO, or one seed.
const Variable = "ZIPPER_SEEDS"

// Asked returns the range of seeds that the variable asks for. from and to are 0 if it is not set.
func Asked() (from, to uint64, err error) {
	s := os.Getenv(Variable)
	if s == "" {
		return 0, 0, nil
	}
	a, b, several := strings.Cut(s, "-")
	from, err = strconv.ParseUint(a, 10, 64)
	if to = from + 1; several && err == nil {
		to, err = strconv.ParseUint(b, 10, 64)
	}
	if err != nil || to <= from {
		return 0, 0, fmt.Errorf("%s=%q: want FROM-TO, or one", Variable, s)
	}
	return from, to, nil
}
