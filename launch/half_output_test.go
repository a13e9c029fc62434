package launch

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/launch/spec"
)

func TestSameComplaintOfRanksIsPrintedOnce(t *testing.T) {
	h := testHalf(t, `exec >&2
for r in 0 1 2 3; do echo "MMPI: virtual rank $r: the forwarder is lost"; done
echo "MMPI: native rank 0 on n1: no forwarder"
echo "MMPI: native rank 1 on n1: no forwarder"
echo "MMPI: virtual rank 4: something else"
echo "a line"; echo "a line"; exit 1`)
	var errs bytes.Buffer
	if status, err := h.Run(context.Background(), nil, io.Discard, &errs); status != 1 || err != nil {
		t.Fatal(status, err)
	}
	const want = "MMPI: virtual rank 0: the forwarder is lost\nMMPI: native rank 0 on n1: no forwarder\nMMPI: virtual rank 4: something else\na line\na line\n" +
		"MMPI: and 3 more ranks of cluster a: the forwarder is lost\nMMPI: and 1 more rank of cluster a: no forwarder\n"
	if errs.String() != want {
		t.Errorf("got\n%swant\n%s", &errs, want)
	}
}

// TestHydraStatusTellsSignalsFromExits has MPICH's launcher exit with 9 for kill -9, for exit(9)
// and for MPI_Abort(9). Its banner and the output of the process tell them apart.
func TestHydraStatusTellsSignalsFromExits(t *testing.T) {
	const banner = `echo 'YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)'`
	const aborted = `; echo 'Abort(9) on node 0 (rank 0 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 9) - process 0' >&2`
	for _, c := range []struct {
		mpi    spec.MPI
		script string
		want   int
	}{
		{spec.MPICH, banner + "; exit 9", 128 + 9},
		{spec.MPICH, banner + "; exit 11", 128 + 9}, // beside another process, which ended with 2
		{spec.MPICH, banner + "; exit 3", 3},
		{spec.MPICH, banner + aborted + "; exit 9", 9},
		{spec.MPICH, banner + strings.ReplaceAll(aborted, "9", "3") + "; exit 11", 128 + 9},
		{spec.MPICH, "exit 9", 9},
		{spec.OpenMPI, banner + "; exit 9", 9},
	} {
		h := testHalf(t, c.script)
		h.Cluster.MPI = c.mpi
		var out, errs bytes.Buffer
		if status, err := h.Run(context.Background(), nil, &out, &errs); status != c.want || err != nil {
			t.Errorf("%s, %s: status %d (%v), want %d", c.mpi, c.script, status, err, c.want)
		}
		if strings.Contains(c.script, "echo") != strings.HasPrefix(out.String(), "YOUR APPLICATION") {
			t.Errorf("%s: printed %q", c.script, &out)
		}
	}
}
