package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/launch/batch"
)

// A half that ends reports that to the job's forwarders, so that the other halves end at once and
// can name the reason:
//
//  1. after a signal to this process the half asks the batch system for its meaning while the
//     processes of the half are still ending (ending);
//  2. after the processes have ended with another status than 0, or never began (ended);
//  3. after SIGTSTP, which Slurm sends before it stops a job, the job's patience begins (pauses).

// word makes a half's reports to the forwarders. It is safe for concurrent use.
type word struct {
	share jobenv.Job
	batch batch.Job
	// began is when the half began.
	began time.Time
	// once makes the half report its end once.
	once sync.Once
	// why is the batch system's reason for the end. It is set when once is done.
	why string
}

func newWord(share jobenv.Job) *word {
	w := &word{share: share, began: time.Now()}
	w.batch, _ = batch.Here()
	return w
}

// ReportEnded reports to the forwarders of a job that a half has ended, or that it will never
// begin. why is the reason, as a clause without its subject ("has no program"). began is when the
// half began, so that the report does not concern a later job of the same id. Halves that no report
// reaches wait until their time is over.
func ReportEnded(ctx context.Context, share jobenv.Job, began time.Time, why string) {
	w := word{share: share, began: began}
	w.tell(ctx, wire.HalfEnded, "cluster "+share.Cluster+" "+why)
}

// clause returns a sentence about the half, without a full stop.
func (w *word) clause(why string) string {
	return fmt.Sprintf("cluster %s %s, %v after it began", w.share.Cluster, why,
		time.Since(w.began).Round(100*time.Millisecond))
}

// watch reports signals to this process until the half has ended; stop waits for reports in
// progress. The cause of ctx has the signal's name.
func (w *word) watch(ctx context.Context) (stop func()) {
	var telling sync.WaitGroup
	telling.Add(1)
	unwatch := context.AfterFunc(ctx, func() {
		defer telling.Done()
		w.ending(context.Cause(ctx))
	})
	pauses := w.pauses()
	return func() {
		pauses()
		if unwatch() {
			telling.Done()
		}
		telling.Wait()
	}
}

// ending reports that the half is being ended, by a signal or because its launcher is gone. It
// returns the reason as a sentence, or an empty string if another half has failed and reported
// that.
func (w *word) ending(cause error) string {
	if causedByOther(cause) {
		return ""
	}
	w.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), tellTime)
		defer cancel()
		why := w.batch.Ending(ctx)
		if why == "" {
			why = "lost its launcher"
			var s interface{ SignalName() string }
			if errors.As(cause, &s) {
				why = w.batch.Signalled(s.SignalName())
			}
		}
		w.why = w.clause(why)
		w.tell(ctx, wire.HalfEnded, w.why)
	})
	return w.why
}

// otherFailed is the cause that ends a half when another one has failed.
type otherFailed struct{ cluster string }

func (e *otherFailed) Error() string { return fmt.Sprintf("cluster %s failed", e.cluster) }

func causedByOther(cause error) bool {
	var e *otherFailed
	return errors.As(cause, &e)
}

// ended reports that the half has ended with a status, or could not be started. complaint is the
// first error of its ranks. It returns the batch system's reason as a sentence, or an empty string.
func (w *word) ended(status int, err error, complaint string) string {
	w.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), tellTime)
		defer cancel()
		why := w.batch.Cause(ctx)
		switch {
		case why != "":
			w.why = w.clause(why)
		case err != nil:
			why = fmt.Sprintf("could not be started (%v)", err)
		default:
			if why = "ended with " + DescribeStatus(status); complaint != "" {
				why += ": " + complaint
			}
		}
		w.tell(ctx, wire.HalfEnded, w.clause(why))
	})
	return w.why
}

// pauses reports the signals by which a batch system stops a job and continues it. This process
// runs on until it gets SIGSTOP.
func (w *word) pauses() (stop func()) {
	if w.batch.ID == "" {
		return func() {}
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTSTP, syscall.SIGCONT)
	over := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		stopped := false
		for {
			select {
			case <-over:
				return
			case s := <-signals:
				if stopped == (s == syscall.SIGTSTP) {
					continue // SIGCONT also comes before other signals
				}
				stopped = s == syscall.SIGTSTP
				state, why := wire.HalfResumed, "goes on"
				if stopped {
					state, why = wire.HalfSuspended, w.batch.Suspended()
				}
				ctx, cancel := context.WithTimeout(context.Background(), tellTime)
				w.tell(ctx, state, "cluster "+w.share.Cluster+" "+why)
				cancel()
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(over)
		<-done
	}
}

// tell reports to all forwarders that the cluster reaches, at the same time. Failures are ignored,
// because the others notice the end later by themselves.
func (w *word) tell(ctx context.Context, state wire.HalfState, reason string) {
	half := wire.Half{State: state, Code: 1, Job: w.share.ID, Cluster: w.share.Cluster, Reason: reason,
		Ticket:    w.share.Ticket,
		TimeoutMS: uint32(w.share.Timeout.Milliseconds()), RanMS: uint32(time.Since(w.began).Milliseconds())}
	var all sync.WaitGroup
	for _, at := range w.share.Forwarders {
		all.Go(func() { _, _ = dial.Tell(ctx, at, half, w.share.Secret, tellTime) })
	}
	all.Wait()
}
