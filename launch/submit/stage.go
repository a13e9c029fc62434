package submit

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/leidenzipper/zipper/launch/spec"
)

// Stager copies the files under stage: between the current directory and those of the halves, by
// rsync over the remote shell. A half whose directory is the current one, because the clusters
// share a file system, needs no copies.
type Stager struct {
	files  spec.Stage
	halves []*Half
	// shared tells which halves see the current directory as theirs.
	shared []bool
}

// NewStager returns a stager for the files of a job. The error names an input that is missing.
func NewStager(files spec.Stage, halves []*Half) (*Stager, error) {
	for _, f := range files.In {
		if _, err := os.Lstat(f); err != nil {
			at, _ := os.Getwd()
			if errors.Is(err, fs.ErrNotExist) {
				err = errors.New("no such file")
			}
			return nil, fmt.Errorf("stage: in: %s: %w (paths are relative to the current directory, %s)", f, err, at)
		}
	}
	s := &Stager{files: files, halves: halves, shared: make([]bool, len(halves))}
	if len(files.In)+len(files.Out) == 0 {
		return s, nil
	}
	if _, err := exec.LookPath("rsync"); err != nil {
		return nil, errors.New("stage: needs rsync, here and at the clusters: install it")
	}
	return s, nil
}

// In copies the inputs to all clusters.
func (s *Stager) In(ctx context.Context) error {
	if len(s.files.In)+len(s.files.Out) == 0 {
		return nil
	}
	if err := s.findShared(ctx); err != nil {
		return err
	}
	var from []string
	for _, f := range s.files.In {
		from = append(from, "./"+f)
	}
	return s.each(func(h *Half) error { return h.rsync(ctx, from, h.place("")) })
}

// Out copies the outputs of all clusters to a directory for each, with the cluster's name.
func (s *Stager) Out(ctx context.Context) error {
	if len(s.files.Out) == 0 {
		return nil
	}
	return s.each(func(h *Half) error {
		var from []string
		for _, f := range s.files.Out {
			from = append(from, h.place("/./"+f))
		}
		if err := os.MkdirAll(h.Cluster.Name, 0o777); err != nil { //nolint:gosec // as the user's umask says
			return fmt.Errorf("stage: out: %w", err)
		}
		return h.rsync(ctx, from, h.Cluster.Name)
	})
}

// each copies for the halves that need copies, one after the other.
func (s *Stager) each(copies func(h *Half) error) (err error) {
	for i, h := range s.halves {
		if !s.shared[i] {
			err = errors.Join(err, copies(h))
		}
	}
	return err
}

// findShared looks from each cluster for a file that it makes in the current directory for that.
func (s *Stager) findShared(ctx context.Context) error {
	name := ".zipper-stage-" + rand.Text()
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		return fmt.Errorf("stage: the current directory: %w", err)
	}
	defer os.Remove(name)
	for i, h := range s.halves {
		out, err := h.here(ctx, fmt.Sprintf("cd\nmkdir -p %s && cd %[1]s || exit\n[ -e %s ] && echo shared\n:\n", quote(h.folder()), name))
		if err != nil {
			return fmt.Errorf("stage: directory %s: %w", h.folder(), err)
		}
		s.shared[i] = strings.TrimSpace(out) == "shared"
	}
	return nil
}

// folder returns the half's directory at its cluster, which may be relative to the user's home.
func (h *Half) folder() string {
	if h.Cluster.Dir == "" {
		return "."
	}
	return h.Cluster.Dir
}

// place returns the half's directory, and a path below it, in rsync's form.
func (h *Half) place(below string) string {
	dir := h.folder()
	if h.Where() != "" {
		return h.Where() + ":" + dir + below
	}
	if home, err := os.UserHomeDir(); err == nil && !filepath.IsAbs(dir) {
		dir = filepath.Join(home, dir)
	}
	return dir + below
}

// rsync copies files with their paths, and names the file that cannot be copied.
func (h *Half) rsync(ctx context.Context, from []string, to string) error {
	if len(from) == 0 {
		return nil
	}
	words := []string{"--archive", "--relative", "--no-implied-dirs", "--protect-args"}
	if h.Where() != "" {
		words = append(words, "--rsh="+rshWord(h.shell[:len(h.shell)-2]))
	}
	cmd := exec.CommandContext(ctx, "rsync", append(append(append(words, "--"), from...), to)...)
	cmd.WaitDelay = shellDelay
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("cluster %s: stage: cannot copy to %s: %s (%w); correct the paths in the job file", h.Cluster.Name, to,
			firstLine(errs.String()), err)
	}
	return nil
}

// firstLine returns the first line of rsync's errors, which names the file.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// rshWord quotes the words of the remote shell for rsync, which knows quotes but no backslashes.
func rshWord(words []string) string {
	var list []string
	for _, w := range words {
		if strings.ContainsAny(w, " \t\"'") {
			w = `"` + strings.ReplaceAll(w, `"`, `""`) + `"`
		}
		list = append(list, w)
	}
	return strings.Join(list, " ")
}
