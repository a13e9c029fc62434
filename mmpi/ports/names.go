package ports

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Names has the published names of this process's ports. A name is known at the forwarders of its
// publisher, to jobs with the same secret, as long as the publishing process runs. The zero value
// has no names. It is safe for concurrent use.
type Names struct {
	mu        sync.Mutex
	published map[string]context.CancelFunc
}

// everybody is the job of the meetings for names of all jobs with a secret. A forwarder that only
// serves some jobs has the names of each job only.
const everybody = "names"

func nameID(job, name string) string {
	sum := sha256.Sum256([]byte(name))
	return handshake.MeetingID(job, "n"+hex.EncodeToString(sum[:16]))
}

// ErrTaken means that another process has published that name.
var ErrTaken = errors.New("the name is published already")

// ErrUnknown means that no process has published that name.
var ErrUnknown = errors.New("no process of a job with this secret has published that name at this job's forwarders")

// Publish publishes a port under a name, until ctx ends or the name is withdrawn.
func (n *Names) Publish(ctx context.Context, s *Self, name, port string) error {
	ctx, cancel := context.WithCancel(ctx)
	if !n.reserve(name, cancel) {
		cancel()
		return ErrTaken
	}
	_, err := s.lookup(ctx, name, takenTime)
	if errors.Is(err, ErrUnknown) {
		go s.tell(ctx, name, port)
		return nil
	}
	_ = n.Unpublish(name) // it was reserved
	if err == nil {
		return ErrTaken
	}
	return err
}

// reserve records that this process publishes a name. It returns false if it does so already.
func (n *Names) reserve(name string, cancel context.CancelFunc) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.published[name] != nil {
		return false
	}
	if n.published == nil {
		n.published = map[string]context.CancelFunc{}
	}
	n.published[name] = cancel
	return true
}

// tell answers all lookups, until ctx ends. A failed attempt is repeated: a forwarder that has been
// restarted, or a process that has looked the name up and cannot agree, does not end the name.
func (s *Self) tell(ctx context.Context, name, port string) {
	job := everybody
	for more := true; more; {
		switch _, _, err := s.await(ctx, nameID(job, name), s.Open().Level, []byte(port)); {
		case err == nil || errors.Is(err, errGone):
			more = ctx.Err() == nil
		case unserved(err) && job == everybody:
			job = s.Job.ID
		default:
			more = sleep(ctx, tellPause)
		}
	}
}

// unserved reports whether the forwarder only serves other jobs.
func unserved(err error) bool {
	var refused *handshake.Refused
	if !errors.As(err, &refused) {
		return false
	}
	return refused.Code == wire.RefuseJob || refused.Code == wire.RefuseTicket || refused.Code == wire.RefuseSecret
}

// Unpublish withdraws a name of this process.
func (n *Names) Unpublish(name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	cancel := n.published[name]
	if cancel == nil {
		return fmt.Errorf("this process has not published the name %.80q", name)
	}
	cancel()
	delete(n.published, name)
	return nil
}

// Lookup returns the port that a process has published under a name. The error is ErrUnknown if no
// process has, and another one if a forwarder could not be asked.
func (s *Self) Lookup(ctx context.Context, name string) (string, error) {
	return s.lookup(ctx, name, lookupTime)
}

// lookup is Lookup in which the forwarders wait for the publisher for the time limit. The error is
// ErrUnknown only if all of them have answered that no such process has come.
func (s *Self) lookup(ctx context.Context, name string, limit time.Duration) (string, error) {
	short, cancel := context.WithTimeout(ctx, limit+answerTime)
	defer cancel()
	got, err := s.ask(short, nameID(everybody, name), limit)
	if unserved(err) {
		got, err = s.ask(short, nameID(s.Job.ID, name), limit)
	}
	switch {
	case err == nil:
		return string(got), nil
	case absent(err):
		return "", ErrUnknown
	case ctx.Err() == nil && short.Err() != nil:
		return "", fmt.Errorf("it is not known whether the name is published, because this job's forwarder has not "+
			"answered within %v (is its node running, and overloaded?): %w", limit+answerTime, err)
	}
	return "", fmt.Errorf("it is not known whether the name is published: %w", err)
}

// absent reports whether an error of seek says that the publisher is not there.
func absent(err error) bool {
	var refused *handshake.Refused
	return errors.Is(err, ErrUnknown) ||
		errors.As(err, &refused) && refused.Remote && refused.Code == wire.RefuseTimeout
}

// seek is dial for lookups, one of which can be at a door at a time. A publisher answers at once,
// so there is none if other processes look the name up there during the whole time limit.
func (s *Self) seek(ctx context.Context, d door, limit time.Duration) ([]byte, error) {
	d.job.Timeout = limit
	for end := time.Now().Add(limit); ; {
		got, err := s.meet(ctx, d, nil, nil)
		switch {
		case ctx.Err() != nil || !again(err):
			return got, err
		case refusedFor(err, wire.RefuseTaken) && time.Now().After(end):
			return nil, ErrUnknown
		case !sleep(ctx, pause):
			return nil, err
		}
	}
}

// ask asks all forwarders at which the publisher may be. If none has an answer, the error is that
// of a forwarder which cannot say whether there is one, before those of the others.
func (s *Self) ask(ctx context.Context, id string, limit time.Duration) (got []byte, err error) {
	doors, err := s.doors(id, s.Open().Level, dialler, -1)
	if err != nil {
		return nil, err
	}
	type answer struct {
		got []byte
		err error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan answer, len(doors))
	for _, d := range doors {
		go func() {
			got, err := s.seek(ctx, d, limit)
			answers <- answer{got, err}
		}()
	}
	for range doors {
		a := <-answers
		if a.err == nil {
			return a.got, nil
		}
		if err == nil || absent(err) {
			err = a.err
		}
	}
	return nil, err
}
