package predict

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/leidenzipper/zipper/contention/quantity"
)

// Table writes the report to w as text for people: at most rows messages and as many resources (0
// for all), the resources with the most waiting time first.
func (r *Report) Table(w io.Writer, rows int) error {
	exact := "floats"
	if r.Exact {
		exact = "exact"
	}
	if r.Grain > 0 {
		exact += fmt.Sprintf(", durations within about %g %%", 100*r.Grain)
	}
	fmt.Fprintf(w, "platform %s, rule %s (%s): %d messages in %s; bottleneck %s\n\n", r.Platform, r.Rule, exact,
		len(r.Messages),
		quantity.FormatTime(r.Makespan), r.Bottleneck)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "message\tfrom\tto\tsize\tstart\tfinish\tmean rate\tlimited by")
	for i, m := range r.Messages {
		if rows > 0 && i == rows {
			fmt.Fprintf(t, "... and %d more\n", len(r.Messages)-rows)
			break
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", m.Name, m.From, m.To, quantity.FormatSize(m.Bytes),
			quantity.FormatTime(m.Start),
			quantity.FormatTime(m.Finish), quantity.FormatRate(m.Rate), m.limits())
	}
	fmt.Fprintln(t)
	fmt.Fprintln(t, "resource\tkind\tcapacity\tutilisation\twaited for")
	busiest := slices.Clone(r.Resources)
	slices.SortStableFunc(busiest, func(a, b Resource) int {
		return cmp.Or(cmp.Compare(b.Limiting, a.Limiting), cmp.Compare(b.Utilisation, a.Utilisation))
	})
	for i, x := range busiest {
		if rows > 0 && i == rows {
			fmt.Fprintf(t, "... and %d more\n", len(busiest)-rows)
			break
		}
		capacity := quantity.FormatRate(x.Capacity)
		if x.Kind == "thread" {
			capacity = fmt.Sprintf("%g threads", x.Capacity)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%.1f %%\t%.1f %%\n", x.Name, x.Kind, capacity, 100*x.Utilisation, 100*x.Limiting)
	}
	if len(r.Gains) > 0 {
		fmt.Fprintln(t)
		fmt.Fprintln(t, "doubling\twould save of the whole time")
		for _, g := range r.Gains {
			fmt.Fprintf(t, "%s\t%.1f %%\n", strings.Join(g.Resources, " and "), 100*g.Makespan)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, x := range r.Warnings {
		fmt.Fprintf(w, "warning: %s\n", x)
	}
	return nil
}

func (m *Message) limits() string {
	var s []string
	for _, l := range m.Limits {
		name := l.Resource
		if l.Contra {
			name += " (reverse traffic)"
		}
		if l.Share < 0.995 {
			name += fmt.Sprintf(" %.0f %%", 100*l.Share)
		}
		s = append(s, name)
		if len(s) == 3 {
			break
		}
	}
	return strings.Join(s, ", ")
}
