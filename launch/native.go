package launch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/leidenzipper/zipper/jobenv"
)

// launchers are the usual names of each library's mpirun, the surest first.
var launchers = map[MPI][]string{
	OpenMPI: {"mpirun.openmpi", "mpirun", "mpiexec", "orterun"},
	MPICH:   {"mpirun.mpich", "mpiexec.hydra", "mpiexec.mpich", "mpirun", "mpiexec"},
}

var packages = map[MPI]string{OpenMPI: "openmpi-bin libopenmpi-dev", MPICH: "mpich libmpich-dev"}

// FindMpirun finds the launcher of an MPI library on PATH and asks each candidate which MPI it is, and its version.
func FindMpirun(ctx context.Context, m MPI) (path, version string, err error) {
	for _, name := range launchers[m] {
		p, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if got, version := IdentifyMpirun(ctx, p); got == m {
			return p, version, nil
		}
	}
	return "", "", fmt.Errorf("%s is not installed here: no mpirun of it on PATH; load its module, install it (on Debian: apt-get install %s), or name it in the job file (mpirun: PATH)", m, packages[m])
}

// IdentifyMpirun asks an mpirun which library it belongs to and its version.
func IdentifyMpirun(ctx context.Context, path string) (m MPI, version string) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	out, _ := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	text := string(out)
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	switch {
	case strings.Contains(text, "Open MPI"), strings.Contains(text, "OpenRTE"):
		f := strings.Fields(first)
		return OpenMPI, f[len(f)-1]
	case strings.Contains(text, "HYDRA"):
		for _, line := range strings.Split(text, "\n") {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "Version" {
				return MPICH, strings.TrimSpace(v)
			}
		}
		return MPICH, "unknown version"
	}
	return "", first
}

// byPRRTE reports whether the launcher is Open MPI's since version 5, PRRTE: some of its settings have other names.
func byPRRTE(m MPI, version string) bool {
	major, _, _ := strings.Cut(version, ".")
	n, _ := strconv.Atoi(major)
	return m == OpenMPI && n >= 5
}

// native is one cluster's native command.
type native struct {
	mpi     MPI
	mpirun  string
	prrte   bool
	ranks   int
	hosts   string   // host file, "" = this host, or those of the batch system
	inOrder bool     // which has a host for each rank
	here    bool     // all ranks are on this host
	extra   []string // the user's arguments
	tag     bool
	// Directories of this host for what the MPI library would strew about, on disk and in memory; "" = leave it.
	session, shared string
	env             map[string]string // job's variables by name: the processes on other nodes need them too
	words           []string          // program and arguments
}

// args is the command line after mpirun's own name.
func (n native) args() []string {
	var a []string
	switch n.mpi {
	case OpenMPI:
		if os.Geteuid() == 0 {
			a = append(a, "--allow-run-as-root")
		}
		if n.hosts != "" {
			a = append(a, "--hostfile", n.hosts)
			if n.inOrder {
				a = append(a, "--map-by", "seq") // MPICH takes them so anyway
			}
		}
		if n.here {
			// Several clusters on this host do not know of each other: bound to cores they would sit on the same ones.
			a = append(a, "--oversubscribe", "--bind-to", "none")
		}
		if n.tag {
			a = append(a, "--tag-output")
		}
		for k := range n.env {
			a = append(a, "-x", k) // by name: values do not belong on a command line that everybody can read
		}
	case MPICH:
		if n.hosts != "" {
			a = append(a, "-f", n.hosts)
		}
		if n.tag {
			a = append(a, "-prepend-rank")
		}
	}
	a = append(a, n.extra...)
	a = append(a, "-n", strconv.Itoa(n.ranks))
	return append(a, n.words...)
}

// environ is what mpirun itself needs, on top of what the user has set (get).
func (n native) environ(get func(string) string) []string {
	var e []string
	set := func(k, v string) {
		if get(k) == "" {
			e = append(e, k+"="+v)
		}
	}
	switch n.mpi {
	case OpenMPI:
		if n.here && n.ranks > 1 {
			// Waiting ranks must give way to those that share their core, here and in the other clusters.
			set("OMPI_MCA_mpi_yield_when_idle", "1")
		}
		single, off, agent, session := "OMPI_MCA_btl_vader_single_copy_mechanism", "none", "OMPI_MCA_plm_rsh_agent", "OMPI_MCA_orte_tmpdir_base"
		if n.prrte {
			single, off, agent, session = "OMPI_MCA_smsc", "^cma", "PRTE_MCA_plm_ssh_agent", "PRTE_MCA_prte_tmpdir_base"
		}
		if !crossMemoryAttach() {
			set(single, off)
			if n.here && !n.prrte { // the other components for windows need single copy: they make none, or crash
				set("OMPI_MCA_osc", "^rdma,ucx")
			}
		}
		if _, err := exec.LookPath("ssh"); err != nil && n.here {
			set(agent, "true") // it looks for one even when all ranks are here
		}
		if n.session != "" {
			set(session, n.session)
		}
		if n.shared != "" {
			set("OMPI_MCA_btl_vader_backing_directory", n.shared) // version 5 knows the old name, too
		}
	case MPICH:
		if n.here {
			set("UCX_TLS", "self,posix,sysv,tcp")
			set("HYDRA_IFACE", "lo")
		}
	}
	return e
}

// crossMemoryAttach tells whether a process may read another one of the same user (process_vm_readv): not in
// most containers, nor with a restricted ptrace; Open MPI then prints warnings and slows down.
func crossMemoryAttach() bool {
	if runtime.GOOS != "linux" {
		return false
	}
	if b, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil && strings.TrimSpace(string(b)) != "0" {
		return false
	}
	for _, f := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(f); err == nil {
			return false
		}
	}
	return os.Getenv("container") == ""
}

// firstHost reads the first host of a host file of either MPI ("a1 slots=2", "a1:2").
func firstHost(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("host file: %w", err)
	}
	for _, line := range strings.Split(string(b), "\n") {
		line, _, _ = strings.Cut(line, "#")
		if f := strings.Fields(line); len(f) > 0 {
			host, _, _ := strings.Cut(f[0], ":")
			return host, nil
		}
	}
	return "", fmt.Errorf("host file %s names no host", file)
}

// ShimPath is where the library to preload lies, next to the zipper command: ../lib/libmmpi-MPI.so.
func ShimPath(m MPI) (string, error) {
	p, err := libraryPath("libmmpi-" + string(m) + ".so")
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("the library for %s is not there (%s): install %s and run scripts/build; whoever copies bin/ copies lib/, too", m, p, packages[m])
	}
	return p, err
}

// unmapsPath is where the library lies that watches the program's memory.
func unmapsPath() (string, error) {
	p, err := libraryPath(unmaps)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s=1 needs %s, which is not there: run scripts/build", jobenv.VarCache, p)
	}
	return p, err
}

const unmaps = "libmmpi-unmaps.so"

// libraryPath is where a library of ours lies, and whether it is there.
func libraryPath(name string) (string, error) {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return "", err
	}
	p := filepath.Join(filepath.Dir(filepath.Dir(self)), "lib", name)
	if strings.ContainsAny(p, " :") {
		return p, fmt.Errorf("%s cannot be preloaded, because of the space or colon in its path: install zipper elsewhere", p)
	}
	_, err = os.Stat(p)
	return p, err
}
