package launch

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/launch/spec"
)

// fake makes an mpirun that says it is Open MPI and then runs the script with its own arguments.
func fake(t *testing.T, script string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "mpirun")
	text := "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'mpirun (Open MPI) 4.1.4'; exit; fi\n" + script + "\n"
	if err := os.WriteFile(p, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return p
}

func testHalf(t *testing.T, script string) *Half {
	return &Half{RunDir: t.TempDir(), Share: jobenv.Job{ID: "j", Secret: "hush", Cluster: "a",
		Layout: []jobenv.Cluster{{Name: "a", Size: 2}}, Timeout: time.Minute},
		Cluster: spec.Cluster{Name: "a", Ranks: 2, MPI: spec.OpenMPI, Mpirun: fake(t, script),
			Program: []string{"/bin/true", "x y"}}}
}

// TestTicketIsThatOfTheJob checks that the ranks do not get a ticket from the launcher's
// environment, where it may be that of another job, or a file that their hosts do not have.
func TestTicketIsThatOfTheJob(t *testing.T) {
	t.Setenv(jobenv.VarTicket, "another job's")
	t.Setenv(jobenv.VarTicketFile, "/no/such/file")
	h := testHalf(t, "")
	for _, ticket := range []string{"", "mine"} {
		h.Share.Ticket = ticket
		if env := h.variables("mark"); env[jobenv.VarTicket] != ticket || env[jobenv.VarTicketFile] != "" {
			t.Errorf("with ticket %q: %q, file %q", ticket, env[jobenv.VarTicket], env[jobenv.VarTicketFile])
		}
	}
}

func TestHalfRun(t *testing.T) {
	t.Setenv("ZIPPER_SHARED_FS", "/scratch")
	t.Setenv(jobenv.VarProtocol, jobenv.Classic) // other than the share's
	t.Setenv(jobenv.VarNetworks, "wan")
	h := testHalf(t, `echo "$ZIPPER_CLUSTER $ZIPPER_LAYOUT $ZIPPER_MPI$ZIPPER_PROTOCOL$ZIPPER_NETWORKS"; ls -d "$OMPI_MCA_orte_tmpdir_base" >/dev/null || exit 9; for w; do echo "<$w>"; done; cat; exit 3`)
	var out, errs bytes.Buffer
	status, err := h.Run(context.Background(), strings.NewReader("input\n"), &out, &errs)
	if err != nil || status != 3 {
		t.Fatalf("status %d, %v\n%s%s", status, err, &out, &errs)
	}
	if !strings.HasPrefix(out.String(), "a a=2 openmpi\n") ||
		!strings.HasSuffix(out.String(), "<exec>\n<-->\n</bin/true>\n<x y>\ninput\n") {
		t.Errorf("output:\n%s", &out)
	}
	if !strings.Contains(out.String(), "<-x>\n<ZIPPER_SHARED_FS>\n") {
		t.Errorf("a variable of the user's does not reach other hosts:\n%s", &out)
	}
	if strings.Contains(out.String(), "hush") {
		t.Errorf("the secret is on the command line:\n%s", &out)
	}
	if left, _ := os.ReadDir(h.RunDir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestHalfLeavesNothing checks that processes that outlive their launcher, in other sessions, are
// found and killed.
func TestHalfLeavesNothing(t *testing.T) {
	h := testHalf(t, `setsid sleep 1000 >/dev/null 2>&1 & echo $!`)
	var out bytes.Buffer
	if status, err := h.Run(context.Background(), nil, &out, io.Discard); status != 0 || err != nil {
		t.Fatal(status, err)
	}
	pid := strings.TrimSpace(out.String())
	if b, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && !strings.Contains(string(b), ") Z ") {
		t.Errorf("process %s is left: %s", pid, b)
	}
}

func TestHalfEndsWithContext(t *testing.T) {
	for _, script := range []string{"echo ready; exec sleep 1000",
		"trap '' TERM; echo ready; while :; do sleep 0.1; done"} {
		h := testHalf(t, script)
		ctx, cancel := context.WithCancel(context.Background())
		r, w := io.Pipe()
		go func() {
			b := make([]byte, 6)
			_, _ = io.ReadFull(r, b)
			cancel()
			_, _ = io.Copy(io.Discard, r)
		}()
		begin := time.Now()
		status, err := h.Run(ctx, nil, w, io.Discard)
		if status < 128 || err != nil || time.Since(begin) > 3*Grace {
			t.Errorf("%s: status %d, %v after %v", script, status, err, time.Since(begin))
		}
		cancel()
	}
}

// TestDirectoriesOfAKilledLauncherAreRemoved checks that the directories of a launcher that was
// killed are removed without another launcher.
func TestDirectoriesOfAKilledLauncherAreRemoved(t *testing.T) {
	if base := os.Getenv("ZIPPER_TEST_KILLED_LAUNCHER"); base != "" {
		r, err := newRundir(base, "j")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%s\n%s\n", r.dir, r.shared)
		select {} // until it is killed
	}
	base := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestDirectoriesOfAKilledLauncherAreRemoved$")
	cmd.Env = append(os.Environ(), "ZIPPER_TEST_KILLED_LAUNCHER="+base)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var dirs []string
	for s := bufio.NewScanner(out); len(dirs) < 2 && s.Scan(); {
		dirs = append(dirs, s.Text())
	}
	if len(dirs) < 2 {
		t.Fatalf("it has made %q", dirs)
	}
	if _, err := os.Stat(dirs[0]); err != nil {
		t.Errorf("while it lives: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		var left []string
		for _, d := range dirs {
			if _, err := os.Stat(d); d != "" && err == nil {
				left = append(left, d)
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("left: %q", left)
		}
	}
}

func TestIncompleteFrameIsRefused(t *testing.T) {
	var b bytes.Buffer
	if err := writePipe(&b, pipeData, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if want := "D\x05\x00\x00\x00hello"; b.String() != want {
		t.Errorf("frame %q, want %q", b.String(), want)
	}
	whole := b.Bytes()
	for i := range whole {
		if _, _, err := readPipe(bytes.NewReader(whole[:i])); err == nil {
			t.Errorf("%d of %d bytes are taken for a frame", i, len(whole))
		}
	}
	if _, _, err := readPipe(strings.NewReader("D\xff\xff\xff\xff")); err == nil {
		t.Error("a frame of 4 GiB is accepted")
	}
	if status, err := RunPiped(context.Background(), strings.NewReader("hello, this is a person"), io.Discard,
		io.Discard); status != 2 || err == nil {
		t.Errorf("typed input: status %d, %v", status, err)
	}
}

func TestQuote(t *testing.T) {
	for _, s := range []string{"", "plain", "two words", "it's", `"$HOME" \ * ;`, "a\nb"} {
		out, err := exec.Command("/bin/sh", "-c", "printf %s "+Quote(s)).Output()
		if err != nil || string(out) != s {
			t.Errorf("%q comes back as %q, %v", s, out, err)
		}
	}
}
