// Package seeds is for tests that run the same thing from one seed after the other.
package seeds

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Variable is the environment's variable for which seeds to run: FROM-TO, without TO, or one.
const Variable = "ZIPPER_SEEDS"

// Asked returns which ones it asks for; without it none: from and to are 0.
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
