package penalty

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/leidenzipper/zipper/contention/num"
)

// Extract derives the penalties of the first step from measured finish times of transfers that
// start together and have the same number of bytes. later returns the penalties of a smaller set of
// transfers (indices into times, ascending), known from the model or from an earlier extraction; a
// lone transfer has 1. bytes and alpha (seconds per byte) must be positive.
//
// Transfer i sends t_ij/(alpha*rho_ij) bytes in step j, where t_ij is the length T_j-T_(j-1) of
// that step. The bytes that it did not send in the later steps it sent in the first, in T_1: rho_i1
// = T_1/(alpha*sent_i1).
func Extract[T num.Number[T]](times []T, bytes, alpha T, later func(alive []int) ([]T, error)) ([]T, error) {
	if len(times) == 0 {
		return nil, errors.New("no finish times to extract penalties from")
	}
	if bytes.Sign() <= 0 || alpha.Sign() <= 0 {
		return nil, errors.New("message size and time per byte must be positive")
	}
	order := make([]int, len(times))
	for i := range order {
		order[i] = i
		if times[i].Sign() <= 0 {
			return nil, fmt.Errorf("finish time %d is %v: must be positive", i, times[i])
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return times[a].Cmp(times[b]) })
	first := times[order[0]]
	sent := make([]T, len(times)) // bytes sent after the first step
	for from := 0; from < len(order); {
		t := times[order[from]]
		to := from
		for to < len(order) && times[order[to]].Cmp(t) == 0 {
			to++
		}
		if from > 0 {
			alive := slices.Clone(order[from:])
			slices.SortFunc(alive, cmp.Compare[int])
			rho, err := later(alive)
			if err != nil {
				return nil, err
			}
			if len(rho) != len(alive) {
				return nil, fmt.Errorf("%d penalties for %d transfers", len(rho), len(alive))
			}
			length := t.Sub(times[order[from-1]])
			for i, a := range alive {
				if rho[i].Sign() <= 0 {
					return nil, fmt.Errorf("penalty %v of a later step: must be positive", rho[i])
				}
				sent[a] = sent[a].Add(length.Div(alpha.Mul(rho[i])))
			}
		}
		from = to
	}
	rho := make([]T, len(times))
	for i := range rho {
		left := bytes.Sub(sent[i])
		if left.Sign() <= 0 {
			return nil, fmt.Errorf("transfer %d would have sent everything after the first step: the times do not fit the penalties",
				i)
		}
		rho[i] = first.Div(alpha.Mul(left))
	}
	return rho, nil
}
