package engine

import (
	"fmt"

	"github.com/leidenzipper/zipper/collectives/collectivestest"
)

// Coll starts a native collective: it is carried out when the last local process has come. The
// operator is addition modulo 256.
func (n *fakeNative) Coll(c *Comm, a *Coll) (uint64, error) {
	if n.refuses != nil {
		return 0, n.refuses
	}
	n.board.Lock()
	defer n.board.Unlock()
	return n.board.colls.Start(c.User, c.LocalSize(), n.rank, a.Args)
}

func (n *fakeNative) CollTest(token uint64) (bool, error) {
	n.board.Lock()
	defer n.board.Unlock()
	return n.board.colls.Test(token)
}

// Compute adds bytes, whatever the function.
func (n *fakeNative) Compute(_, _ uint8, inout, in []byte) error {
	collectivestest.Add(inout, in)
	return nil
}

func (n *fakeNative) ReduceLocal(in, inout []byte, count int, typ, op uint64) error {
	if typ != 7 || op != 8 || len(in) != count || len(inout) != count {
		return fmt.Errorf("reduction of %d with %d and %d bytes, type %d, operator %d", count, len(in), len(inout), typ,
			op)
	}
	collectivestest.Add(inout, in)
	return nil
}

// Recode implements engine.Native. It changes nothing, because formats are equal.
func (n *fakeNative) Recode([]byte, int, uint64, bool) error { return nil }

// RecodeNumbers implements engine.Native.
func (n *fakeNative) RecodeNumbers(uint8, []byte, bool) {}
