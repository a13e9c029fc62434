package coll

import (
	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
	"github.com/leidenzipper/zipper/mmpi/engine/pt2pt"
)

// This file has the messages of an algorithm between clusters. Their tag is the number of the
// collective and the stage.

// message is a send or receive of an algorithm.
type message struct {
	cell pt2pt.Cell
	size int64 // size of a receive; -1 for a send, or for any size that fits
}

func (m *message) Done() (bool, error) {
	if !m.cell.Done() {
		return false, nil
	}
	err := m.cell.Err()
	if err == nil && m.size >= 0 && m.cell.Bytes != m.size {
		e := fault.New(fault.Truncate, "collective: received %d bytes, and the counts say %d", m.cell.Bytes, m.size)
		e.Sent, e.Room = m.cell.Bytes, m.size
		err = e
	}
	return true, err
}

// Layout implements collectives.Comm, as do the other methods.
func (x *collective) Layout() *collectives.Layout { return x.q.layout }

func (x *collective) Send(to, stage int, b []byte) (collectives.Request, error) {
	m := &message{size: -1}
	if err := x.set.ep.Isend(x.q.c, pt2pt.KindCollective, b, to, x.tag|stage, false, &m.cell); err != nil {
		return nil, err
	}
	if x.set.onLoss {
		x.keepMessage(m)
	}
	return m, nil
}

func (x *collective) Recv(from, stage int, b []byte) (collectives.Request, error) {
	return x.receive(from, stage, b, int64(len(b)))
}

func (x *collective) RecvAtMost(from, stage int, b []byte) (collectives.Request, error) {
	return x.receive(from, stage, b, -1)
}

func (x *collective) receive(from, stage int, b []byte, size int64) (collectives.Request, error) {
	m := &message{size: size}
	if _, err := x.set.ep.Irecv(x.q.c, pt2pt.KindCollective, b, from, x.tag|stage, &m.cell); err != nil {
		return nil, err
	}
	if x.set.onLoss {
		x.keepMessage(m)
	}
	return m, nil
}

func (x *collective) Reduce(in, inout []byte, count int) error {
	if err := x.set.native.ReduceLocal(in, inout, count, x.what.Type, x.what.Operator); err != nil {
		return fault.New(fault.Op, "%v", err)
	}
	return nil
}

func (x *collective) Recode(b []byte, count int, in bool) error {
	if err := x.set.native.Recode(b, count, x.what.Type, in); err != nil {
		return fault.New(fault.Op, "%v", err)
	}
	return nil
}

func (x *collective) Scratch(n int) []byte {
	b := x.set.ep.Links().Pool.Get(n)
	if cap(b) > 0 {
		x.pins.Pin(&b[:1][0])
	}
	x.scratch = append(x.scratch, b)
	return b
}

func (x *collective) Local() collectives.Local { return local{x} }
