package engine

import (
	"sync"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/jobenv"
)

// TestJobGoesOnAfterLoss loses clusters of a job over a forwarder and real sockets: those that are
// left learn of it, agree, shrink and finish. It logs the times that this takes, which no machine
// promises.
func TestJobGoesOnAfterLoss(t *testing.T) {
	_, addr := serve(t)
	job := jobenv.Job{ID: "test", Secret: "s", Forwarders: []string{addr}, Timeout: 20 * time.Second,
		OnLoss: jobenv.LossContinues}
	engines := joinJob(t, job, 2, 1, 1, 2)
	comms := make([]*Comm, len(engines))
	for r, e := range engines {
		comms[r] = spanAll(t, e)
	}
	kill := func(ranks ...int) {
		for _, r := range ranks {
			engines[r].close() // its links end without Bye
			engines[r] = nil
		}
	}
	each := func(f func(r int, e *Engine)) {
		t.Helper()
		begin := time.Now()
		var all sync.WaitGroup
		for r, e := range engines {
			if e != nil {
				all.Go(func() { f(r, e) })
			}
		}
		all.Wait()
		t.Log(time.Since(begin))
	}
	var posted [6]Cell
	for r, e := range engines {
		if r < 3 {
			must(t, e.Irecv(comms[r], KindP2P, make([]byte, 8), 3, 1, &posted[r]))
		}
	}
	kill(3)
	each(func(r int, e *Engine) {
		if r < 3 {
			await(e, &posted[r])
			wantCode(t, "receive from a lost rank", &posted[r], ErrProcFailed)
		}
	})
	each(func(r int, e *Engine) {
		var cell Cell
		if err := e.Agree(comms[r], 1, &cell); err != nil {
			t.Error(err)
			return
		}
		await(e, &cell)
		wantCode(t, "agree", &cell, ErrProcFailed)
	})
	kill(0, 1) // with the coordinator
	each(func(r int, e *Engine) {
		var cell Cell
		if err := e.Shrink(comms[r], -1, &cell); err != nil {
			t.Error(err)
			return
		}
		await(e, &cell)
		if _, ranks, err := e.Shrunk(comms[r], &cell); err != nil || len(ranks) != 3 {
			t.Errorf("rank %d: %v, %v", r, ranks, err)
		}
	})
	each(func(r int, e *Engine) {
		if err := e.Finish(); err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	})
}
