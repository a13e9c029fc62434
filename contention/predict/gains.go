package predict

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/leidenzipper/zipper/contention/num"
	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/contention/sharing"
	"github.com/leidenzipper/zipper/contention/solve"
)

// gains repeats the prediction with doubled capacities, in parallel: of each of at most limit
// single resources, those with the most waiting time; of each of at most limit sets that limited a
// transfer together; and, if no gain reaches 1 %, of the critical set. The function adds the gains
// of at least 1 % to the report. waiting has the waiting time in seconds of each resource, by
// index. Each set costs as much time as the prediction itself.
func gains[T num.Number[T]](g *platform.Graph[T], r *solve.Result[T], rule sharing.Rule[T], o solve.Options, limit int,
	waiting []float64, report *Report) error {
	candidates := solve.Candidates(g.Network, r)
	slices.SortStableFunc(candidates, func(a, b int) int { return cmp.Compare(waiting[b], waiting[a]) })
	var sets [][]int
	for _, c := range candidates {
		sets = append(sets, []int{c})
	}
	if len(sets) > limit {
		report.Warnings = append(report.Warnings,
			fmt.Sprintf("of %d resources that could be doubled only the %d most waited for were tried", len(sets),
				limit))
		sets = sets[:limit]
	}
	tied := solve.TiedSets(r)
	sets = append(sets, tied[:min(len(tied), limit)]...)
	try := func(sets ...[]int) error {
		saved := make([]float64, len(sets))
		err := inParallel(len(sets), func(i int) error {
			x, err := solve.Double(g.Network, g.Transfers, rule, o, r, g.Replan, sets[i]...)
			saved[i] = x.Makespan.Float64()
			return err
		})
		if err != nil {
			return err
		}
		for i, set := range sets {
			if saved[i] < 0.01 {
				continue
			}
			var list []string
			for _, k := range set {
				list = append(list, g.Network.Resources[k].Name)
			}
			report.Gains = append(report.Gains, Gain{list, saved[i]})
		}
		return nil
	}
	if err := try(sets...); err != nil {
		return err
	}
	if set := critical(r); len(report.Gains) == 0 && len(set) > 1 {
		if err := try(set); err != nil {
			return err
		}
	}
	slices.SortStableFunc(report.Gains, func(a, b Gain) int {
		if c := cmp.Compare(b.Makespan, a.Makespan); c != 0 {
			return c
		}
		return cmp.Compare(len(a.Resources), len(b.Resources))
	})
	return nil
}

// inParallel calls f with each number from 0 to n-1, on all processors at once. It returns the
// error of the lowest number that fails.
func inParallel(n int, f func(int) error) error {
	var (
		wg   sync.WaitGroup
		next = make(chan int)
		errs = make([]error, n)
	)
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := range next {
				errs[i] = f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	return cmp.Or(errs...)
}

// critical returns the indices of the resources that limited the transfers which finish last. If
// several transfers finish last, all their limits must be doubled to save time.
func critical[T num.Number[T]](r *solve.Result[T]) (set []int) {
	for i, f := range r.Finish {
		if f.Cmp(r.Makespan) != 0 {
			continue
		}
		for _, s := range r.Limited[i] {
			if !slices.Contains(set, s.Limit.Resource) {
				set = append(set, s.Limit.Resource)
			}
		}
	}
	slices.Sort(set)
	return set
}
