package ports

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/boot"
	"github.com/leidenzipper/zipper/mmpi/engine"
)

// These are the ends of a meeting, which are the clusters of its job.
const (
	acceptor = "~accept"
	dialler  = "~connect"
)

// Accept waits at a port of this process for a process of another job. members are the processes
// that are to be connected, in order.
func (s *Self) Accept(ctx context.Context, port Port, members []int32) (*Plan, error) {
	p := &Plan{ID: handshake.ConnectionID(port.ID, fresh()), Accept: s.side(members)}
	got, apart, err := s.await(ctx, port.ID, port.Level, p.Bytes())
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(got, &p.Dial); err != nil {
		return nil, fmt.Errorf("invalid message from the other job that connects: %w", err)
	}
	p.Apart = apart
	return p, p.check()
}

// door is one of the paths by which a process comes to a meeting.
type door struct {
	job jobenv.Job
	via map[string]string // value of boot.Local.Via
}

// await waits at all doors of one meeting at once, without a time limit. It sends tell to the other
// end and returns the other end's description. apart says that the other end has its own
// forwarders.
func (s *Self) await(ctx context.Context, id, level string, tell []byte) (got []byte, apart bool, err error) {
	doors, err := s.doors(id, level, acceptor, -1)
	if err != nil {
		return nil, false, err
	}
	type answer struct {
		got   []byte
		apart bool
		err   error
	}
	var taken atomic.Bool // set by the first end that arrives
	answers := make(chan answer, len(doors))
	inner, cancel := context.WithCancel(ctx)
	for _, d := range doors {
		go func() {
			got, apart, err := s.awaitAt(inner, d, tell, &taken)
			answers <- answer{got, apart, err}
		}()
	}
	best := answer{err: errGone}
	for range doors {
		if a := <-answers; a.err == nil || best.got == nil && inner.Err() == nil {
			best = a
		}
		if best.err == nil {
			cancel()
		}
	}
	cancel()
	return best.got, best.apart, errors.Join(best.err, ctx.Err())
}

func (s *Self) awaitAt(ctx context.Context, d door, tell []byte, taken *atomic.Bool) (got []byte, apart bool,
	err error) {
	own := handshake.JobID(d.job.ID) == s.Job.ID // whether the forwarder serves that job
	at := d
	for {
		got, err = s.meet(ctx, at, tell, taken)
		var refused *handshake.Refused
		switch {
		case err == nil || ctx.Err() != nil:
			return got, len(at.job.Zippers) > len(d.job.Zippers), err
		case errors.As(err, &refused) && refused.Code == wire.RefuseMeeting:
			w, err := handshake.ParseWay(refused.Reason)
			if err == nil {
				err = checkPath(d.job, w)
			}
			if err != nil {
				return nil, false, err
			}
			at.job = by(d.job, w)
			continue
		case passes(err), own && errors.As(err, &refused) &&
			refused.Code == wire.RefuseJob: // the attempt before has failed
			at = d
		default:
			return nil, false, err
		}
		if !sleep(ctx, pause) {
			return nil, false, ctx.Err()
		}
	}
}

// passes reports whether a retry may help: another process is there, no process has come, or the
// forwarder is full at the moment.
func passes(err error) bool {
	var refused *handshake.Refused
	if !errors.As(err, &refused) {
		return errors.Is(err, errGone)
	}
	switch refused.Code {
	case wire.RefuseTaken, wire.RefuseTimeout, wire.RefuseFull, wire.RefuseLayout:
		// Another process may come over another path.
		return true
	}
	return false
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// Connect goes to a port of another job, or of another process of this one, and waits until that
// process accepts, or ctx ends.
func (s *Self) Connect(ctx context.Context, port Port, members []int32) (*Plan, error) {
	if s.print(port.ID) != port.Print {
		return nil, errors.New("the port's job has another secret: give both jobs the same (--secret-file)")
	}
	mine := s.side(members)
	tell, _ := json.Marshal(mine) // strings and numbers, so it cannot fail
	got, apart, err := s.reach(ctx, port, tell)
	if err != nil {
		return nil, err
	}
	p, err := taken(got, mine)
	if err != nil {
		return nil, err
	}
	p.Apart = apart
	return p, nil
}

// reach goes to one meeting as the dialling end.
func (s *Self) reach(ctx context.Context, port Port, tell []byte) (got []byte, apart bool, err error) {
	if len(s.Job.Zippers) > 0 {
		there := s.at(port.Addresses[0])
		if there < 0 {
			return nil, false, fmt.Errorf("the port's forwarder %s is none of those that this job names: "+
				"give both jobs the same --zipper addresses", port.Addresses[0])
		}
		doors, err := s.doors(port.ID, port.Level, dialler, there)
		if err != nil {
			return nil, false, err
		}
		got, err = s.dial(ctx, doors[0], tell)
		return got, false, err
	}
	d := s.plain(port.ID, port.Level, dialler)
	mine := d.job.Forwarders[0]
	if mine == port.Addresses[0] {
		got, err = s.dial(ctx, d, tell)
		return got, false, err
	}
	// By another address it may be the same forwarder.
	first, cancel := context.WithTimeout(ctx, sameTime)
	defer cancel()
	if got, err = s.dial(first, d, tell); err == nil || first.Err() == nil {
		return got, false, err
	}
	d.job = by(d.job, handshake.Way{
		Layout: ends, Networks: []string{link},
		Zippers: []wire.Zipper{
			{Ports: []wire.Port{{Network: 0, Address: port.Addresses[0]}, {Network: 2, Address: port.Addresses[0]}}},
			{Ports: []wire.Port{{Network: 1, Address: mine}, {Network: 2}}, HostKey: parsedKey(d.job.HostKeys[mine])},
		}})
	got, err = s.dial(ctx, d, tell)
	return got, true, err
}

func parsedKey(s string) (key [wire.PublicKeyLen]byte) {
	if s != "" {
		key, _ = wire.ParseHostKey(s) // it was parsed before
	}
	return key
}

// refusedFor reports whether an error is a refusal for that reason.
func refusedFor(err error, code wire.RefuseCode) bool {
	var refused *handshake.Refused
	return errors.As(err, &refused) && refused.Code == code
}

// again reports whether the dialling end retries after an error of meet.
func again(err error) bool {
	return passes(err) && !refusedFor(err, wire.RefuseTimeout) && !refusedFor(err, wire.RefuseFull)
}

// dial meets the waiting end. It retries until ctx ends.
func (s *Self) dial(ctx context.Context, d door, tell []byte) ([]byte, error) {
	for {
		got, err := s.meet(ctx, d, tell, nil)
		if ctx.Err() != nil || !again(err) {
			return got, err
		}
		if !sleep(ctx, pause) {
			return nil, err
		}
	}
}

var ends = []wire.Cluster{{Name: acceptor, Size: 1}, {Name: dialler, Size: 1}}

// meeting returns the job of a meeting, for one of its ends.
func (s *Self) meeting(id, level, end string) jobenv.Job {
	j := s.Job
	return jobenv.Job{ID: id, Secret: j.Secret, Ticket: j.Ticket, Cluster: end,
		Layout:     []jobenv.Cluster{{Name: acceptor, Size: 1}, {Name: dialler, Size: 1}},
		Forwarders: j.Forwarders, HostKeys: j.HostKeys, Timeout: j.Timeout, Log: j.Log, Poll: j.Poll,
		Protocol: j.Protocol, Level: level, DirectAllow: j.DirectAllow}
}

// checkPath returns the reason for which this process does not take a path that a forwarder names,
// or nil if it does. A path has to begin at one of the job's own forwarders, because a dishonest
// forwarder could otherwise make the process probe ports inside its cluster.
func checkPath(job jobenv.Job, w handshake.Way) error {
	for _, z := range w.Zippers {
		for _, p := range z.Ports {
			if int(p.Network) == acceptorNetwork && p.Address != "" && !slices.Contains(job.Forwarders, p.Address) {
				return fmt.Errorf("a forwarder sends this process to %.60q, which is not dialled because it is "+
					"none of the job's forwarders", p.Address)
			}
		}
	}
	return nil
}

// acceptorNetwork is the index of the acceptor's network in a path.
const acceptorNetwork = 0

// by returns the job of a meeting over a path.
func by(job jobenv.Job, w handshake.Way) jobenv.Job {
	job.Networks = w.Networks
	names := append([]string{acceptor, dialler}, w.Networks...)
	var zippers []jobenv.Zipper
	for _, z := range w.Zippers {
		var out jobenv.Zipper
		for _, p := range z.Ports {
			out.Ports = append(out.Ports, jobenv.Port{Network: names[p.Network], Address: p.Address})
		}
		if z.HostKey != [wire.PublicKeyLen]byte{} {
			out.HostKey = wire.FormatHostKey(z.HostKey)
		}
		zippers = append(zippers, out)
	}
	job.WithZippers(zippers)
	return job
}

// plain returns the door of a job in which all forwarders are equivalent: the first of them.
func (s *Self) plain(id, level, end string) door {
	d := door{job: s.meeting(id, level, end)}
	d.job.Forwarders = d.job.Forwarders[:1]
	return d
}

// doors returns the doors of a process to a meeting. In a job of several hops the other end may be
// at any of the forwarders, which both name. So each pair of forwarders, the acceptor's and the
// dialler's, has a meeting of its own. With there ≥ 0 only those doors are returned for which the
// other end is at that forwarder.
func (s *Self) doors(id, level, end string, there int) (doors []door, err error) {
	if len(s.Job.Zippers) == 0 {
		return []door{s.plain(id, level, end)}, nil
	}
	row, err := s.row()
	if err != nil {
		return nil, err
	}
	mine := slices.IndexFunc(row, func(z jobenv.Zipper) bool { return z.Address(s.Job.Cluster) != "" })
	if mine < 0 {
		return nil, errors.New("no forwarder is on this cluster's network")
	}
	for other := range row {
		if there >= 0 && other != there {
			continue
		}
		acc, con := mine, other
		if end == dialler {
			acc, con = other, mine
		}
		d := door{job: s.across(s.meeting(fmt.Sprintf("%s.%d.%d", id, acc, con), level, end), row, acc, con),
			via: map[string]string{canonical(row[mine]): row[mine].Address(s.Job.Cluster)}}
		doors = append(doors, d)
	}
	return doors, nil
}

// row returns the first row of the forwarders of a job of several hops.
func (s *Self) row() (row []jobenv.Zipper, err error) {
	rows, _, err := s.Job.Net().Rows(s.Job.Zippers)
	if err != nil {
		return nil, err
	}
	for _, i := range rows[0] {
		row = append(row, s.Job.Zippers[i])
	}
	return row, nil
}

// at returns the index in the row of the forwarder with an address, or -1.
func (s *Self) at(address string) int {
	row, _ := s.row() // it was made before
	return slices.IndexFunc(row, func(z jobenv.Zipper) bool {
		return slices.ContainsFunc(z.Ports, func(p jobenv.Port) bool { return p.Address == address })
	})
}

// canonical returns one of a forwarder's addresses, the same in all processes.
func canonical(z jobenv.Zipper) string {
	for _, p := range z.Ports {
		if p.Address != "" {
			return p.Address
		}
	}
	return ""
}

// across makes a meeting take the forwarders of a row, which both jobs name: their networks have no
// ranks in the meeting, and its two ends are on networks of their own.
func (s *Self) across(job jobenv.Job, row []jobenv.Zipper, acc, con int) jobenv.Job {
	zippers := slices.Clone(row)
	for i := range zippers {
		zippers[i].Ports = slices.Clone(zippers[i].Ports)
	}
	zippers[acc].Ports = append(zippers[acc].Ports, jobenv.Port{Network: acceptor, Address: canonical(row[acc])})
	zippers[con].Ports = append(zippers[con].Ports, jobenv.Port{Network: dialler, Address: canonical(row[con])})
	var networks []string
	for _, c := range s.Job.Layout {
		networks = append(networks, c.Name)
	}
	zippers, job.Networks = prune(zippers, append(networks, s.Job.Networks...))
	job.WithZippers(zippers)
	return job
}

var errGone = errors.New("the other process of the meeting has left")

// meet joins a meeting's job, sends tell to the other end and returns the other end's description.
// taken, if not nil, is set by the first call that gets that far; later ends are sent away to
// retry.
func (s *Self) meet(ctx context.Context, d door, tell []byte, taken *atomic.Bool) ([]byte, error) {
	me := 0
	if d.job.Cluster == dialler {
		me = 1
	}
	loc := s.Local
	loc.Rank, loc.Size, loc.Hosts, loc.Warn, loc.Embedded, loc.Via = 0, 1, nil, nil, false, d.via
	e, _, err := boot.Join(ctx, d.job, loc, engine.Alone{})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	if taken != nil && !taken.CompareAndSwap(false, true) {
		err = errGone
	}
	var got []byte
	if err == nil {
		if got, err = exchange(ctx, e, me, tell); err != nil && taken != nil {
			taken.Store(false)
		}
	}
	if err != nil {
		e.Abort(1, "the meeting has failed")
		return nil, errors.Join(errGone, err, e.Finish())
	}
	if err = e.Finish(); err != nil && taken != nil { // the dialling end has left after the exchange
		taken.Store(false)
		err = errors.Join(errGone, err)
	}
	return got, err
}

func exchange(ctx context.Context, e *engine.Engine, me int, tell []byte) ([]byte, error) {
	native := []int32{engine.Remote, engine.Remote}
	native[me] = 0
	c, err := e.AddComm(0, engine.WorldContext, me, []int32{0, 1}, native)
	if err != nil {
		return nil, err
	}
	var sent, came engine.Cell
	if err := e.Isend(c, engine.KindP2P, tell, 1-me, 0, false, &sent); err != nil {
		return nil, err
	}
	got := make([]byte, longestTold)
	if err := e.Irecv(c, engine.KindP2P, got, 1-me, 0, &came); err != nil {
		return nil, err
	}
	for !sent.Done() || !came.Done() {
		if err := errors.Join(ctx.Err(), e.Err()); err != nil {
			return nil, err
		}
		e.Progress(time.Millisecond)
	}
	return got[:came.Bytes], errors.Join(sent.Err(), came.Err(), e.DropComm(c))
}
