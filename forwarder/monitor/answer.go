package monitor

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"slices"

	"github.com/leidenzipper/zipper/forwarder"
)

// The answer at /status is a forwarder.Status as JSON, with one job a line. Strangers decide how
// many jobs there are and how long their names are, so an answer lists jobs only while it stays
// within maxAnswer bytes, which is less than Fetch reads, and counts the others.

// writeStatus writes a forwarder's status as JSON. Its lists of jobs end where the answer would
// exceed maxAnswer bytes; with brief it lists no jobs.
func writeStatus(out io.Writer, s forwarder.Status, brief bool) error {
	most := maxAnswer
	if brief {
		most = 0
	}
	past := newest(s.Past, most/pastShare)
	head, err := json.Marshal(withoutLists{Status: s})
	if err != nil {
		return err
	}
	head = bytes.TrimSuffix(head, []byte("}"))
	w := &answer{out: out}
	w.write(head, []byte(`,"past":[`))
	for i, text := range past {
		w.element(i, text)
	}
	w.write([]byte(`],"jobs":[`))
	listed := 0
	for _, j := range foremost(s.Jobs) {
		text, err := json.Marshal(j)
		if err != nil {
			return err
		}
		if w.err != nil || w.written+len(text) > most {
			break
		}
		w.element(listed, text)
		listed++
	}
	more, err := json.Marshal(left{MoreJobs: len(s.Jobs) - listed, MorePast: len(s.Past) - len(past)})
	if err != nil {
		return err
	}
	w.write([]byte("],"), more[1:], []byte("\n"))
	return w.err
}

// withoutLists is a status without its lists: its own fields hide those of the same JSON name.
type withoutLists struct {
	forwarder.Status
	Jobs *struct{} `json:"jobs,omitempty"`
	Past *struct{} `json:"past,omitempty"`
}

// left has the counts of jobs that an answer does not list, as forwarder.Status has them.
type left struct {
	MoreJobs int `json:"more_jobs"`
	MorePast int `json:"more_past"`
}

// answer writes to out, counts the bytes written, and keeps the first error.
type answer struct {
	out     io.Writer
	written int
	err     error
}

func (w *answer) write(parts ...[]byte) {
	for _, p := range parts {
		if w.err == nil {
			_, w.err = w.out.Write(p)
			w.written += len(p)
		}
	}
}

// element writes the JSON text of the i-th element of a list, counted from 0, on a line of its own.
func (w *answer) element(i int, text []byte) {
	if i > 0 {
		w.write([]byte(","))
	}
	w.write([]byte("\n"), text)
}

// newest returns the JSON texts of the last elements of a list: as many as fit into most bytes
// together.
func newest[T any](list []T, most int) (texts [][]byte) {
	for i := range slices.Backward(list) {
		text, err := json.Marshal(&list[i])
		if most -= len(text); err != nil || most < 0 {
			break
		}
		texts = append(texts, bytes.Clone(text))
	}
	slices.Reverse(texts)
	return texts
}

// foremost returns the jobs in the order in which they get room: running ones before gathering ones
// before failed ones, and in each state the oldest first.
func foremost(jobs []forwarder.JobStatus) []*forwarder.JobStatus {
	list := make([]*forwarder.JobStatus, len(jobs))
	for i := range jobs {
		list[i] = &jobs[i]
	}
	slices.SortStableFunc(list, func(a, b *forwarder.JobStatus) int {
		return cmp.Or(cmp.Compare(b.State, a.State), // "running", "gathering", "failed"
			a.Started.Compare(b.Started), a.Created.Compare(b.Created))
	})
	return list
}
