package launch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/leidenzipper/zipper/internal/traffic/trace"
	"github.com/leidenzipper/zipper/internal/wholefile"
	"github.com/leidenzipper/zipper/launch/spec"
)

// record collects the traffic that the ranks record: each writes its part, a file, to a private
// directory of the user's beside the resulting file.
type record struct {
	job *spec.Job
	// path is the absolute path of the resulting file.
	path string
	// parts is the directory of the ranks' parts.
	parts string
	ranks int
	// stop stops the janitor, which removes the directory if the launcher is killed.
	stop func()
}

// prefix returns the beginning of the names of the ranks' parts; their rank in the job follows.
func (r *record) prefix() string { return filepath.Join(r.parts, "rank") }

// newRecord makes the checks that are possible before the job runs. It returns nil if path is
// empty.
func newRecord(job *spec.Job, path string) (*record, error) {
	if path == "" {
		return nil, nil
	}
	if len(job.Clusters) < 2 {
		return nil, errors.New("recording traffic needs a job of two clusters or more: in one alone the program's MPI is left alone")
	}
	if len(job.Order) > 0 {
		return nil, errors.New("a recorded job must have its ranks cluster by cluster, because zipper plan reads records in that order: record it without a plan or an order")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	r := &record{job: job, path: abs}
	for _, c := range job.Clusters {
		r.ranks += c.Ranks
	}
	// An error now is better than one after hours.
	err = wholefile.Check(abs)
	if err == nil {
		r.parts, err = os.MkdirTemp(filepath.Dir(abs), filepath.Base(abs)+".parts-")
	}
	if err != nil {
		return nil, fmt.Errorf("recording traffic: %w", err)
	}
	r.stop = clean(r.parts)
	return r, nil
}

// merge joins the ranks' parts to the file and returns the number of messages without times.
func (r *record) merge() (untimed int, err error) {
	var clusters []trace.Cluster
	for _, c := range r.job.Clusters {
		clusters = append(clusters, trace.Cluster{Name: c.Name, Ranks: c.Ranks})
	}
	var parts []io.Reader
	var missing []string
	for i := range r.ranks {
		f, err := os.Open(r.prefix() + strconv.Itoa(i))
		if errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, strconv.Itoa(i))
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("recording traffic: %w", err)
		}
		defer f.Close()
		parts = append(parts, f)
	}
	if missing != nil {
		return 0, fmt.Errorf("recording traffic: virtual ranks %s left no record beside %s: that directory must be one that all nodes share, and the program must end with MPI_Finalize",
			strings.Join(missing, ", "), r.path)
	}
	t, untimed, err := trace.Merge(r.job.ID, clusters, parts)
	if err != nil {
		return 0, fmt.Errorf("recording traffic: %w", err)
	}
	if err := wholefile.Write(r.path, 0o666, func(w io.Writer) error { return t.Write(w) }); err != nil {
		return 0, fmt.Errorf("recording traffic: %w", err)
	}
	return untimed, nil
}

// clear removes the ranks' parts. It does nothing for a nil record.
func (r *record) clear() {
	if r != nil {
		os.RemoveAll(r.parts)
		r.stop()
	}
}
