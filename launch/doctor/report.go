package doctor

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/launch"
	"github.com/leidenzipper/zipper/launch/native"
	"github.com/leidenzipper/zipper/launch/spec"
)

// Level is the level of a finding.
type Level string

// Levels of findings.
const (
	OK   Level = "ok"
	Warn Level = "warning"
	Fail Level = "problem"
)

// Finding is a fact about a host or a path.
type Finding struct {
	Level   Level  `json:"level"`
	Subject string `json:"subject"`
	Detail  string `json:"detail"`
	Advice  string `json:"advice,omitempty"`
}

// Report holds all findings.
type Report struct {
	Findings []Finding `json:"findings"`
}

func (r *Report) add(l Level, subject, detail, advice string) {
	r.Findings = append(r.Findings, Finding{l, subject, trim(detail), trim(advice)})
}

// Problems counts the findings that will keep a job from running.
func (r *Report) Problems() int {
	n := 0
	for _, f := range r.Findings {
		if f.Level == Fail {
			n++
		}
	}
	return n
}

// Write prints the report for users.
func (r *Report) Write(w io.Writer) error {
	for _, f := range r.Findings {
		if _, err := fmt.Fprintf(w, "%-8s %s: %s\n", f.Level, f.Subject, f.Detail); err != nil {
			return err
		}
		if f.Advice != "" {
			if _, err := fmt.Fprintf(w, "%-8s -> %s\n", "", f.Advice); err != nil {
				return err
			}
		}
	}
	problems := "problems"
	if r.Problems() == 1 {
		problems = "a problem"
	}
	_, err := fmt.Fprintf(w, "%d findings, %d of them %s\n", len(r.Findings), r.Problems(), problems)
	return err
}

// libraries judges a host's MPI libraries. want names the library that is needed; if it is empty,
// any library will do.
func (r *Report) libraries(host string, libs []Library, want spec.MPI) {
	usable := 0
	for _, l := range libs {
		if want != "" && l.MPI != want {
			continue
		}
		subject := host + ", " + l.MPI.String()
		if l.Missing == "" {
			usable++
			r.add(OK, subject, fmt.Sprintf("version %s (%s), joined by %s", l.Version, l.Mpirun, l.Shim), "")
			continue
		}
		level := Warn
		if want != "" {
			level = Fail
		}
		r.add(level, subject, l.Missing, "")
	}
	if usable == 0 && want == "" {
		r.add(Fail, host, "no MPI library can be used here",
			"install Open MPI or MPICH with their development files, then run scripts/build")
	}
}

// cluster judges the host where a cluster is started. It returns the cluster's half if the half can
// be started from this host, else nil.
func (r *Report) cluster(ctx context.Context, p *patient, c spec.Cluster) *launch.Half {
	subject := "cluster " + c.Name + " on " + p.Host
	if p.Version != int(wire.Version) {
		r.add(Fail, subject, fmt.Sprintf("zipper there speaks version %d of the protocol, here %d", p.Version,
			wire.Version), "install the same version of zipper on all hosts")
	}
	r.add(OK, subject, "architecture "+p.Arch, "")
	r.libraries(subject, p.MPI, c.MPI)
	r.obstacles(subject, p.Hello)
	if c.Launcher != "mpirun" { // the files are on another host
		return nil
	}
	h := &launch.Half{Cluster: c}
	if err := h.Prepare(ctx); err != nil {
		detail := trim(strings.TrimPrefix(err.Error(), "cluster "+c.Name+": "))
		// The report names a missing library once.
		if !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Detail == detail }) {
			r.add(Fail, "cluster "+c.Name, detail, "")
		}
		return nil
	}
	return h
}

// room judges whether the halves that start together on this host have room for their files.
func (r *Report) room(halves []*launch.Half) {
	switch note, err := launch.FindRoom(halves...); {
	case err != nil:
		r.add(Fail, "this host", err.Error(), "")
	case note != "":
		r.add(Warn, "this host", note, "")
	}
}

// host judges the remaining properties of this host.
func (r *Report) host(h Hello) {
	for _, dir := range []string{os.TempDir(), "/dev/shm"} {
		f, err := os.CreateTemp(dir, "zipper-doctor-")
		if err != nil {
			r.add(Fail, h.Host, fmt.Sprintf("cannot write to %s: %v", dir, err),
				"give yourself access, or choose another directory with TMPDIR or --run-dir")
			continue
		}
		f.Close()
		os.Remove(f.Name())
	}
	level, advice := OK, ""
	if h.Cores < enoughCores {
		level, advice = Warn, "ranks that wait share a core: keep MPICH (which never yields) at 2 ranks here, and expect latencies to suffer"
	}
	r.add(level, h.Host, fmt.Sprintf("%d cores, %s", h.Cores, h.Arch), advice)
	for _, a := range h.Addresses {
		r.add(OK, h.Host, fmt.Sprintf("address %s on %s", a.CIDR, a.Interface), "")
	}
	for _, f := range h.Fabrics {
		r.add(OK, h.Host, fmt.Sprintf("adapter %s: %s, %s, subnet prefix %s", f.Device, f.Link, f.State, f.Prefix), "")
	}
	r.obstacles(h.Host, h)
}

// obstacles warns of obstacles to links over a host's adapters, which a job may not want to use.
func (r *Report) obstacles(subject string, h Hello) {
	for _, o := range h.Obstacles {
		what, advice, _ := strings.Cut(o, ": ")
		r.add(Warn, subject, "adapters: "+what, advice)
	}
}

// program judges whether a program can be run zipped; {mpi} stands for each of the libraries that
// are installed, and {arch} for this host's architecture.
func (r *Report) program(name string, libs []Library) {
	if strings.Contains(name, "{mpi}") {
		for _, l := range libs {
			if l.Mpirun != "" {
				r.program(strings.ReplaceAll(name, "{mpi}", string(l.MPI)), nil)
			}
		}
		return
	}
	name = strings.ReplaceAll(name, spec.Arch, wire.Architecture())
	dir, _ := os.Getwd()
	p, err := native.InspectProgram(name, dir)
	if err == nil {
		err = cmp.Or(p.Fits(), p.Preloadable())
	}
	switch {
	case err != nil:
		r.add(Fail, name, err.Error(), "")
	case p.MMPI:
		of := p.MPI.String()
		if p.ABI {
			of = "MPI 5's standard ABI"
		}
		r.add(OK, name, "linked with MMPI for "+of, "")
	case p.ABI:
		r.standardABI(name, libs)
	case p.MPI != "":
		r.add(OK, name, "linked to "+p.MPI.String()+" ("+p.Needs+"), dynamically: MMPI can be preloaded"+after(p), "")
	case p.ELF:
		r.add(Warn, name, "not linked to an MPI library itself",
			"fine if it loads one later, as an interpreter does; otherwise it is not an MPI program and will not join")
	default:
		r.add(OK, name, "a script: the programs that it starts decide", "")
	}
}

// after returns the sanitizers' libraries that are preloaded before MMPI.
func after(p native.Program) string {
	if len(p.First) == 0 {
		return ""
	}
	return ", after " + strings.Join(p.First, " and ") + ", which is preloaded first"
}

// trim joins the output of a program into one line.
func trim(s string) string { return strings.Join(strings.Fields(s), " ") }

// standardABI judges a program of MPI 5's standard ABI: one build of it serves all clusters whose
// library has that ABI.
func (r *Report) standardABI(name string, libs []Library) {
	const linked = "linked to MPI 5's standard ABI, dynamically"
	shim, err := native.ABIShimPath()
	if err != nil {
		r.add(Fail, name, linked+"; "+err.Error(), "")
		return
	}
	var over []string
	for _, l := range libs {
		if l.Mpirun == "" {
			continue
		}
		lib, err := native.FindABI(l.MPI, "")
		if err != nil {
			r.add(Warn, name, "not over "+l.MPI.String()+": "+err.Error(), "")
			continue
		}
		over = append(over, fmt.Sprintf("%s (%s)", l.MPI, lib))
	}
	if len(over) == 0 {
		r.add(Fail, name, linked+", and no MPI library here has that", "")
		return
	}
	r.add(OK, name, fmt.Sprintf("%s: one build for every cluster; MMPI (%s) can be preloaded over %s", linked, shim,
		strings.Join(over, " and ")), "")
}
