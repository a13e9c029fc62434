package submit

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/launch/spec"
)

// TestWatchCancelsUntilTheBatchSystemTakesIt checks that a cancellation that fails is repeated, and
// that the job's status is that of the half that failed, not of the half that was cancelled. Two
// scripts stand for the commands of Slurm: job 1 has failed, and job 2 waits until it is cancelled.
func TestWatchCancelsUntilTheBatchSystemTakesIt(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for name, script := range map[string]string{
		"scontrol": `case "$4$(cat "$HOME/taken" 2>/dev/null)" in
1*) echo "JobId=1 JobState=FAILED ExitCode=1:0" ;;
2yes) echo "JobId=2 JobState=CANCELLED ExitCode=0:15" ;;
*) echo "JobId=2 JobState=PENDING Reason=Resources ExitCode=0:0" ;;
esac`,
		"scancel": `[ -e "$HOME/asked" ] && echo yes >"$HOME/taken" && exit
touch "$HOME/asked"
echo "scancel: error: Unable to contact slurm controller" >&2
exit 1`,
	} {
		script = "#!/bin/sh\n" + script + "\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil { //nolint:gosec // a script
			t.Fatal(err)
		}
	}
	var halves []*Half
	for _, c := range []struct{ name, id string }{{"a", "1"}, {"b", "2"}} {
		halves = append(halves, &Half{Cluster: spec.Cluster{Name: c.name}, ID: c.id, shell: []string{"sh"},
			system: slurm{}, dir: "job"})
	}
	var status int
	ended := make(chan error, 1)
	go func() {
		var err error
		status, err = Watch(t.Context(), halves, io.Discard, func(string, string) {})
		ended <- err
	}()
	select {
	case err := <-ended:
		if status != 1 || err == nil || err.Error() != "cluster a: Slurm job 1: FAILED" {
			t.Errorf("status %d, %v", status, err)
		}
	case <-time.After(shellTime):
		t.Error("the cancellation that failed is not repeated")
	}
}
