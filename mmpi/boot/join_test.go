package boot

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/forwarder/forwardertest"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine"
)

// TestOtherSize checks the advice for worlds that srun starts by mistake. The place of a process in
// the job follows from the job's description and its native rank alone.
func TestOtherSize(t *testing.T) {
	job := &jobenv.Job{Layout: []jobenv.Cluster{{Name: "a", Size: 2}, {Name: "b", Size: 3}}}
	for _, tc := range []struct {
		size          int
		library, step string
		want          string
	}{
		{1, "Open MPI 4.1.4", "0", "srun --mpi=pmix"},
		{1, "MPICH 4.0.2", "0", "srun --mpi=pmi2"},
		{5, "MPICH 4.0.2", "0", "not by one with a colon"},
		{4, "MPICH 4.0.2", "0", ""},
		{1, "MPICH 4.0.2", "", ""},
	} {
		got := otherSize(job, &Local{Size: tc.size, Library: tc.library}, func(string) string { return tc.step })
		if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%+v: %q", tc, got)
		}
	}
}

func TestWorldOf(t *testing.T) {
	job := jobenv.Job{Cluster: "b", Layout: []jobenv.Cluster{{Name: "a", Size: 2}, {Name: "b", Size: 3},
		{Name: "c", Size: 1}}}
	w, err := worldOf(&job, &Local{Rank: 1, Size: 3, TagUB: 9})
	if err != nil || w.Rank != 3 || w.Size() != 6 || w.TagUB != 9 || w.Order != nil {
		t.Errorf("%+v, %v", w, err)
	}
	_, err = worldOf(&job, &Local{Rank: 1, Size: 2})
	var e *engine.Error
	if !errors.As(err, &e) || e.Code != engine.ErrArg || !strings.Contains(err.Error(), "a=2,b=3,c=1") {
		t.Errorf("another size: %v", err)
	}
}

// TestJoinAlone checks that one cluster alone needs no forwarder: there is a world and no engine,
// for any other settings of the job.
func TestJoinAlone(t *testing.T) {
	job := jobenv.Job{Cluster: "a", Layout: []jobenv.Cluster{{Name: "a", Size: 2}}}
	e, w, err := Join(t.Context(), job, Local{Rank: 1, Size: 2}, nil)
	if e != nil || err != nil || w.Rank != 1 || w.Size() != 2 {
		t.Errorf("%v, %+v, %v", e, w, err)
	}
	// A job that could be connected to others by a forwarder has an engine, which does not need the
	// forwarder.
	job.Forwarders = []string{"nowhere:1"}
	e, w, err = Join(t.Context(), job, Local{Rank: 1, Size: 2}, engine.Alone{})
	if err != nil || w.Rank != 1 || e.Progress(0) != 0 || e.Err() != nil {
		t.Fatalf("%+v, %v", w, err)
	}
	if err := e.Finish(); err != nil {
		t.Error(err)
	}
}

// TestJoinSpawned checks that the engine of a spawned world has no links, whatever the job's
// clusters, and that there is no engine if the job has none.
func TestJoinSpawned(t *testing.T) {
	job := jobenv.Job{ID: "j", Cluster: "b", Layout: []jobenv.Cluster{{Name: "a", Size: 2}, {Name: "b", Size: 1}},
		Forwarders: []string{"nowhere:1"}, Order: []jobenv.Cluster{{Name: "b", Size: 1}, {Name: "a", Size: 2}}}
	e, w, err := Join(t.Context(), job, Local{Rank: 2, Size: 3, Spawned: true}, engine.Alone{})
	if err != nil || e == nil || w.Rank != 2 || w.Size() != 3 || len(w.Clusters) != 1 || w.Order != nil {
		t.Fatalf("%v, %+v, %v", e, w, err)
	}
	if err := e.Finish(); err != nil {
		t.Error(err)
	}
	job = jobenv.Job{ID: "j", Cluster: "b", Layout: []jobenv.Cluster{{Name: "b", Size: 1}}}
	if e, _, err := Join(t.Context(), job, Local{Rank: 2, Size: 3, Spawned: true}, engine.Alone{}); e != nil || err != nil {
		t.Errorf("beside a job without engines: %v, %v", e, err)
	}
	job = jobenv.Job{ID: "j"} // everything that the environment had
	if e, w, err = Join(t.Context(), job, Local{Rank: 0, Size: 1, Spawned: true}, engine.Alone{}); e == nil || err != nil || w.Size() != 1 {
		t.Fatalf("knowing little: %v, %+v, %v", e, w, err)
	}
	if err := e.Finish(); err != nil {
		t.Error(err)
	}
}

// TestSettings checks that the settings in a Join have the order of ranks, which may be long, as a
// digest.
func TestSettings(t *testing.T) {
	job := jobenv.Job{Order: []jobenv.Cluster{{Name: "b", Size: 1}, {Name: "a", Size: 1}}}
	plain, ordered := settings(&job, collectives.Tuning{}, false), settings(&job, collectives.Tuning{}, true)
	if strings.Contains(plain, jobenv.VarOrder) || !strings.HasPrefix(ordered, plain+" "+jobenv.VarOrder+"=#") {
		t.Errorf("%q, %q", plain, ordered)
	}
	job.Order = job.Order[:1]
	if again := settings(&job, collectives.Tuning{}, true); again == ordered || len(again) != len(ordered) {
		t.Errorf("another order: %q, %q", again, ordered)
	}
}

// TestLossSettings checks that forwarders find in the Join's settings what a job does when a
// cluster is lost, and that the settings of a job with the defaults have no such word.
func TestLossSettings(t *testing.T) {
	for _, c := range []struct {
		onLoss, quorum string
		outlives, both bool
	}{
		{"", "", false, false}, {jobenv.LossEnds, jobenv.QuorumRank0, false, false},
		{jobenv.LossContinues, "", true, false}, {jobenv.LossContinues, jobenv.QuorumBoth, true, true},
	} {
		s := settings(&jobenv.Job{OnLoss: c.onLoss, Quorum: c.quorum}, collectives.Tuning{}, false)
		g := handshake.NewGather(&wire.Join{Settings: s})
		if g.OutlivesClusters() != c.outlives || g.BothSidesGoOn() != c.both {
			t.Errorf("%+v: %q", c, s)
		}
		if plain := settings(&jobenv.Job{}, collectives.Tuning{}, false); !c.outlives && s != plain {
			t.Errorf("%+v: %q, want %q", c, s, plain)
		}
	}
}

// TestTargets checks which links a process needs, and which cluster each of them leads to.
func TestTargets(t *testing.T) {
	port := func(cluster, at string) jobenv.Port { return jobenv.Port{Network: cluster, Address: at} }
	chain := jobenv.Job{ID: "j", Cluster: "b",
		Layout: []jobenv.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: 1}, {Name: "c", Size: 1}},
		Zippers: []jobenv.Zipper{{Ports: []jobenv.Port{port("a", "x:1"), port("b", "x:2")}},
			{Ports: []jobenv.Port{port("b", "y:1"), port("c", "y:2")}}}}
	chain.WithZippers(chain.Zippers)
	links, paths, err := targetsOf(chain, handshake.Identity{Job: "j"}, nil)
	if err != nil || len(links) != 2 || links[0].Address != "x:2" || links[1].Address != "y:1" {
		t.Fatalf("%+v, %v", links, err)
	}
	if links[0].ID.Here != 0 || links[1].ID.Here != 1 || links[1].ID.Rails != 1 || len(links[0].ID.Zippers) != 2 {
		t.Errorf("identities %+v and %+v", links[0].ID, links[1].ID)
	}
	if len(paths) != 3 || !slices.Equal(paths[0], []int{0}) || !slices.Equal(paths[2], []int{1}) {
		t.Errorf("paths %v", paths)
	}
	if links, paths, err := targetsOf(jobenv.Job{Forwarders: []string{"h:1", "h:2"}},
		handshake.Identity{}, nil); err != nil ||
		len(links) != 2 || links[1].Row != 1 || paths != nil {
		t.Errorf("two forwarders: %+v, %v, %v", links, paths, err)
	}
	for _, f := range [][]string{nil, make([]string, engine.MaxRails+1)} {
		if _, _, err := targetsOf(jobenv.Job{Forwarders: f}, handshake.Identity{}, nil); err == nil {
			t.Errorf("%d forwarders are taken", len(f))
		}
	}
}

// targetsAt returns forwarders to join as the only rank of a job.
func targetsAt(addrs ...string) (all []dial.Target) {
	for row, a := range addrs {
		all = append(all, dial.Target{Address: a, Row: row, ID: handshake.Identity{Job: "j", Secret: "s", Cluster: "a",
			Rails:  len(addrs),
			Layout: []wire.Cluster{{Name: "a", Size: 1}}, TimeoutMS: 20_000, Instance: 1}})
	}
	return all
}

// TestJoinFirst checks that joining ends with the first forwarder, that redial returns the link of
// one that joins late, and that a lost one is joined again.
func TestJoinFirst(t *testing.T) {
	late, err := dial.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, addr := forwardertest.Serve(t, forwarder.Config{Loops: 1, Linger: 100 * time.Millisecond})
	a, err := joinFirst(t.Context(), &dial.Dialer{}, targetsAt(late.Addr(), addr))
	if err != nil || a.links[0] != nil || a.links[1] == nil || a.layout.Ranks() != 1 {
		t.Fatalf("%+v, %v", a, err)
	}
	forwardertest.Serve(t, forwarder.Config{Listeners: []transport.Listener{late}, Loops: 1,
		Linger: 100 * time.Millisecond})
	first, err := a.redial(t.Context(), 0, engine.Attempt{})
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	a.links[1].Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if l, err := a.redial(ctx, 1, engine.Attempt{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", l, err)
	}
}

// TestJoinFirstRefused checks that a final refusal ends all attempts at once, and that a forwarder
// that cannot be reached does not.
func TestJoinFirstRefused(t *testing.T) {
	_, addr := forwardertest.Serve(t, forwarder.Config{Loops: 1, Linger: 100 * time.Millisecond, Secret: "another"})
	silent, err := dial.Listen("127.0.0.1:0") // joins there wait
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	a, err := joinFirst(t.Context(), &dial.Dialer{}, targetsAt(silent.Addr(), addr))
	var refused *handshake.Refused
	if a != nil || !errors.As(err, &refused) || refused.Code != wire.RefuseSecret {
		t.Errorf("%v, %v", a, err)
	}
	all := targetsAt("no-port", "no-port-either")
	if a, err := joinFirst(t.Context(), &dial.Dialer{}, all); a != nil || err == nil ||
		!strings.Contains(err.Error(), "no-port-either") {
		t.Errorf("%v, %v", a, err)
	}
}
