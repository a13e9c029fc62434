package simulation

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/seeds"
)

// mutant is a fault that is planted into the product: in a file, old is replaced by new. The word
// MUTANT in new becomes the condition that this mutant is switched on.
type mutant struct{ file, old, new, what string }

// mutants lists all planted faults. Some seed has to find each of them.
var mutants = []mutant{
	{"mmpi/engine/pt2pt/eager.go", "m.peer.consumed(len(m.buf))", "if !MUTANT || len(m.buf) < 300 {\n m.peer.consumed(len(m.buf))\n }", "credit of an unexpected message is lost"},
	{"mmpi/engine/pt2pt/eager.go", "r.peer.consumed(n)", "r.peer.consumed(n)\n if MUTANT {\n r.received(0)\n return nil\n }", "a receive ends with no bytes"},
	{"mmpi/engine/flow/credit.go", "b.used += n\n", "if !MUTANT {\n b.used += n\n }\n", "credit is not used up"},
	{"mmpi/engine/flow/credit.go", "g.granted = max(g.granted, g.consumed+g.window)", "g.granted = max(g.granted, g.consumed+g.window)\n if MUTANT {\n return g.granted + g.window\n }", "a grant says too much"},
	{"mmpi/engine/flow/sequence.go", "o.acked = o.taken\n", "o.acked = o.taken\n if MUTANT && o.taken%16 == 7 {\n return o.taken + 1\n }\n", "a frame is acknowledged before it has come"},
	{"mmpi/engine/flow/sequence.go", "case seq <= o.taken:\n", "case seq <= o.taken && MUTANT:\n return Next, nil\n case seq <= o.taken:\n", "a frame that comes twice is taken twice"},
	{"mmpi/engine/flow/sequence.go", "return Early, nil\n", "if MUTANT {\n return Next, nil\n }\n return Early, nil\n", "frames that overtake each other are not put in order"},
	{"mmpi/engine/link/set.go", "l := r.link\n\t\tif r.Reads() {\n", "l := r.link\nif r.Reads() || MUTANT && r.Linked() {\n", "a thread sleeps on a link that has ended"},
	{"forwarder/job/loss.go", "r.sendState(e.Conn, wire.RailState{Rank: out, Reason: why.reason, Cut: why.cut})", "if !MUTANT {\n r.sendState(e.Conn, wire.RailState{Rank: out, Reason: why.reason, Cut: why.cut})\n }", "a rank that comes back is not told of ranks out of reach"},
	{"mmpi/engine/link/frame.go", "r.bytes = 0\n", "if !MUTANT {\n r.bytes = 0\n }\n", "a peer that has left keeps memory"},
	{"mmpi/engine/link/peer.go", "if p.order.Unacknowledged() > 0 {", "if p.order.Unacknowledged() > 0 && !MUTANT {", "a tick sends no acknowledgements"},
	{"mmpi/engine/link/redial.go", "p.resend(nobody)\n", "if !MUTANT {\n p.resend(nobody)\n }\n", "nothing is sent again over a link that was opened again"},
	{"mmpi/engine/link/failover.go", "p.resetLane(r)\n", "if !MUTANT {\n p.resetLane(r)\n }\n", "segments on a link that is lost are not sent again"},
	{"mmpi/engine/link/reorder.go", "copy(dst, b[n:])\n", "if !MUTANT {\n copy(dst, b[n:])\n }\n", "a frame that was early loses its payload"},
	{"mmpi/engine/pt2pt/rendezvous.go", "r.peer.sendFin(r.remote)\n", "if !MUTANT || r.remote%8 != 3 {\n r.peer.sendFin(r.remote)\n }\n", "now and then a Fin is not sent"},
	{"mmpi/engine/pt2pt/rendezvous.go", "cleared := min(r.size, int64(len(r.buf)))\n", "cleared := min(r.size, int64(len(r.buf)))\n if MUTANT && cleared > 2 {\n cleared--\n }\n", "a CTS asks for one byte less"},
	{"mmpi/engine/wait/thread.go", "w.d.Tick(w.t.ticked)\n", "if !MUTANT {\n w.d.Tick(w.t.ticked)\n }\n", "the progress thread does not tick"},
	{"internal/rma/target.go", "n.send(g.rank, &message{verb: ack, id: g.id})\n", "if !MUTANT {\n n.send(g.rank, &message{verb: ack, id: g.id})\n }\n", "a lock that is passed on is not granted"},
	{"forwarder/relay/queue.go", "case h.Type == wire.TypeData:\n", "case MUTANT && h.Type.Sequenced() && o.bulk.n > 0:\n case h.Type == wire.TypeData:\n", "a queue loses frames"},
	{"forwarder/relay/queue.go", "from.charge(int(e.memory))\n", "if !MUTANT {\n from.charge(int(e.memory))\n }\n", "memory is given back that was not taken"},
}

// mutantVariable is the environment variable with the number of the mutant that is switched on,
// from 1. With it TestMutants looks for that mutant only.
const mutantVariable = "ZIPPER_MUTANT"

// TestMutants plants all faults into one program, switches them on one at a time, and checks that a
// seed finds each.
func TestMutants(t *testing.T) {
	if os.Getenv("ZIPPER_LONG") == "" {
		t.Skip("in the long form only: ZIPPER_LONG=1")
	}
	program := plant(t)
	found := 0
	only, _ := strconv.Atoi(os.Getenv(mutantVariable))
	for i, m := range mutants {
		if only != 0 && only != i+1 {
			continue
		}
		cmd := exec.CommandContext(t.Context(), program, "-test.run", "^TestSeeds$", "-test.timeout", "5m")
		cmd.Env = append(os.Environ(), mutantVariable+"="+strconv.Itoa(i+1), seeds.Variable+"=0-1900")
		out, err := cmd.CombinedOutput()
		how := firstFinding(string(out))
		if err == nil || how == "" {
			t.Errorf("%2d %s (%s): not found", i+1, m.what, m.file)
			continue
		}
		found++
		t.Logf("%2d %s (%s): %s", i+1, m.what, m.file, how)
	}
	t.Logf("%d found", found)
}

// TestMutantsFit checks that the text which each mutant replaces is in the source.
func TestMutantsFit(t *testing.T) {
	for i, m := range mutants {
		b, err := os.ReadFile(filepath.Join("..", m.file))
		if err != nil || !strings.Contains(string(b), m.old) {
			t.Errorf("%2d %s: %s has no %q", i+1, m.what, m.file, m.old)
		}
	}
}

// firstFinding returns the seed that found a mutant, or the line with which the program crashed. It
// returns "" if nothing was found.
func firstFinding(out string) string {
	for line := range strings.SplitSeq(out, "\n") {
		if _, after, ok := strings.Cut(line, seeds.Variable+"="); ok {
			seed, _, _ := strings.Cut(after, " ")
			return "seed " + seed
		}
		if strings.HasPrefix(line, "panic:") && !strings.Contains(line, "test timed out") ||
			strings.HasPrefix(line, "fatal error:") {
			return line
		}
	}
	return ""
}

// plant builds this test with all mutants and returns the path of the program.
func plant(t *testing.T) string {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	replace := map[string]string{}
	put := func(file, text string) {
		at := filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(root, file)] = at
	}
	texts := map[string]string{}
	for i, m := range mutants {
		if _, ok := texts[m.file]; !ok {
			b, err := os.ReadFile(filepath.Join(root, m.file))
			if err != nil {
				t.Fatal(err)
			}
			texts[m.file] = string(b)
		}
		texts[m.file] = strings.Replace(texts[m.file], m.old, strings.ReplaceAll(m.new, "MUTANT",
			"(mutantOn == "+strconv.Itoa(i+1)+")"), 1)
	}
	for file, text := range texts {
		put(file, text)
		pkg := filepath.Base(filepath.Dir(file))
		beside := filepath.Join(filepath.Dir(file), "mutant_on.go")
		if replace[filepath.Join(root, beside)] == "" {
			put(beside, "package "+pkg+"\n\nimport (\n\"os\"\n\"strconv\"\n)\n\nvar mutantOn, _ = strconv.Atoi(os.Getenv(\""+mutantVariable+"\"))\n")
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "mutants.test")
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", overlay, "-o", program, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}
