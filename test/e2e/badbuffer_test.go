package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// blamed matches messages that give another cause than a bad buffer, and stack traces of Go.
var blamed = regexp.MustCompile(`bad address|it is reopened|times in a row|cannot be registered|goroutine |runtime\.|fatal error|survived`)

// TestBadBuffer lets the last rank pass MPI a buffer that is not mapped, in messages that a copy, a
// read, a pipe and a collective transfer. The rank ends by the signal that it gets natively, with a
// line that names the buffer. Natively large messages inside a host fail in another way
// (process_vm_readv), so small ones are compared.
func TestBadBuffer(t *testing.T) {
	ways := []string{"recv", "irecv", "polled", "persistent", "probed", "send", "isend", "bcast", "gather", "typed",
		"put", "get", "target", "unmapped", "cut", "file", "late", "later"}
	unnamed := []string{"typed"} // native MPI unpacks the message, and gets the signal
	// Open MPI's mpirun takes 2 s to end a job in which a rank got a signal. The short form
	// therefore has few cases on Open MPI, and all of them on MPICH.
	few := map[string][]string{
		oneOne.name:    {"recv", "polled", "bcast", "put", "cut", "later"},
		mixedPair.name: {"recv", "file"},
	}
	for _, s := range []split{oneOne, mixedPair, mpichPair} {
		last := s.clusters[len(s.clusters)-1].MPI
		here := ways
		if w := few[s.name]; w != nil && !long() {
			here = w
		}
		for i, way := range here {
			sizes := []int{8, 1024, 200_000, 16 << 20}
			if !long() {
				sizes = []int{8, 200_000}[i%2:][:1]
			}
			t.Run(s.name+" "+way, func(t *testing.T) {
				b := New(t)
				path := compileFor(b, s.clusters, "c/bad_buffer.c")
				want := 139
				if way == "file" {
					want = 135
				}
				// natively no message arrives while the program is outside of MPI
				if !strings.HasPrefix(way, "late") {
					native := b.Native(last, 2, b.Compile(last, "test/programs/c/bad_buffer.c"), way, "8")
					if native.Status&127 != want-128 { // MPICH's mpirun ends with the signal's number
						t.Errorf("natively it ends otherwise: %v", native)
					}
				}
				for _, bytes := range sizes {
					r := b.Zipped(Job{Clusters: s.clusters}, path, way, strconv.Itoa(bytes))
					named := strings.Contains(r.Stderr, "MMPI: virtual rank 1: ") &&
						strings.Contains(r.Stderr, "check the buffer's address and length")
					if r.Status != want || blamed.MatchString(r.Stderr) || named == slices.Contains(unnamed, way) {
						t.Errorf("%d bytes: %v", bytes, r)
					}
				}
			})
		}
	}
}

// TestBadBufferNamed checks that the line names the message for a receive buffer of which only a
// part is mapped, in a program that does not handle the signal.
func TestBadBufferNamed(t *testing.T) {
	overSplits(t, "", []split{oneOne, mpichPair}, func(b *Bed, s split) {
		r := b.Zipped(Job{Clusters: s.clusters}, compileFor(b, s.clusters, "c/bad_buffer.c"), "cut", "200000")
		want := "for a message of 200000 bytes from rank 0 with tag 7 in MPI_COMM_WORLD"
		if !strings.Contains(r.Stderr, want) {
			b.T.Errorf("%q is not there: %v", want, r)
		}
	})
}

// TestBadBufferRepaired checks that a message of any size arrives if a signal handler of the
// program's makes the buffer writable, as a garbage collector that tracks writes does.
func TestBadBufferRepaired(t *testing.T) {
	overSplits(t, "", []split{oneOne, mixedPair, mpichPair}, func(b *Bed, s split) {
		path := compileFor(b, s.clusters, "c/bad_buffer.c")
		for _, bytes := range []int{8, 1024, 200_000, 16 << 20} {
			r := b.OK(b.Zipped(Job{Clusters: s.clusters}, path, "repaired", fmt.Sprint(bytes)))
			if strings.Contains(r.Stderr, "cannot be written") {
				b.T.Errorf("the program handles it, and it is told: %v", r)
			}
		}
	})
}
