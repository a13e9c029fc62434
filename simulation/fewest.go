package simulation

import "slices"

// Fewest reduces a failing plan: it removes faults, and then rounds, as long as the plan still
// fails. It returns the smallest plan found.
func Fewest(p Plan) Plan {
	fails := func(p Plan) bool { return Run(p, false).Err != nil }
	for size := len(p.Faults); size > 0; size /= 2 {
		for from := 0; from < len(p.Faults); {
			q := p
			q.Faults = slices.Delete(slices.Clone(p.Faults), from, min(from+size, len(p.Faults)))
			if fails(q) {
				p = q
			} else {
				from += size
			}
		}
	}
	for p.Rounds > 0 {
		q := p
		if q.Rounds--; !fails(q) {
			break
		}
		p = q
	}
	return p
}
