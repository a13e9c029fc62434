package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/lab"
	"github.com/leidenzipper/zipper/bench/lab/delayline"
	"github.com/leidenzipper/zipper/bench/longhaul"
	"github.com/leidenzipper/zipper/bench/stat"
)

// measurement is what goes on over one link.
type measurement struct {
	lab           *lab.Lab
	report        *longhaul.Report
	self, program string // this program, and the MPI one
	warm, seconds time.Duration
	window        int // bytes under way in a stream
	count         int // blocking sends
	times         int // collectives
	cut           time.Duration
	only, on      *regexp.Regexp // rows and targets; nil: all
	round         int
	alone         bool // the trunk alone is measured, without outages
}

const onTrunk = "trunk" // the target that aims are for

// place is where MPI jobs run: a pairs' target for each number of ranks in a cluster.
type place struct {
	name string
	job  func(a, b int) drive.Target
	miss string // why nothing runs there
}

// places are in the order in which they have their turns. What runs nowhere today says so.
func (m *measurement) places(ctx context.Context) []*place {
	trunk := &place{name: onTrunk, job: m.lab.Trunk}
	if _, err := m.mpi(ctx, m.lab.Trunk(1, 1), time.Minute, "block", "8", "1"); err != nil {
		trunk.miss = drive.OneLine(err.Error())
	}
	return []*place{{name: "zipped", job: m.lab.Far}, trunk, {name: "routed", job: m.lab.Routed},
		{name: "MPWide", miss: "not installed"}}
}

// watched does something, with the long link's statistics of the time that it took.
func (m *measurement) watched(ctx context.Context, do func() error) (ways []delayline.Stats, err error) {
	if err := m.lab.Line(ctx, "reset"); err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	return m.lab.LineStats(ctx)
}

// all measures every row once on every target. Only the end of ctx is an error; what a target
// cannot do is noted.
func (m *measurement) all(ctx context.Context, places []*place) error {
	for _, s := range []struct {
		row  longhaul.Row
		loss string
	}{{longhaul.Stream1M, "0"}, {longhaul.Loss001, "0.01%"}, {longhaul.Loss01, "0.1%"}} {
		if err := m.lab.Line(ctx, "set", "loss="+s.loss); err != nil {
			return err
		}
		for _, n := range []int{1, 4, 16} {
			m.plain(ctx, s.row, n)
		}
		for _, p := range places {
			m.stream(ctx, p, 1, "stream", 1<<20, s.row, nil)
		}
	}
	if err := m.lab.Line(ctx, "set", "loss=0"); err != nil {
		return err
	}
	for _, p := range places {
		m.stream(ctx, p, 1, "stream", 64<<10, longhaul.Stream64K, nil)
	}
	for _, p := range places {
		m.stream(ctx, p, 1, "both", 1<<20, longhaul.Both, nil)
	}
	for _, s := range []struct {
		row   longhaul.Row
		pairs int
	}{{longhaul.Pairs2, 2}, {longhaul.Pairs8, 8}} {
		fair := longhaul.Fairness(s.row)
		for _, p := range places {
			m.stream(ctx, p, s.pairs, "stream", 1<<20, s.row, &fair)
		}
	}
	fair := longhaul.Fairness(longhaul.Pairs32)
	for _, p := range places {
		m.memory(ctx, p, func() { m.stream(ctx, p, 32, "stream", 1<<20, longhaul.Pairs32, &fair) })
	}
	for _, p := range places {
		m.blocking(ctx, p)
	}
	for _, name := range longhaul.Collectives() {
		for _, size := range []struct {
			bytes int
			name  string
		}{{8, "8 B"}, {4096, "4 KiB"}} {
			if name == "barrier" && size.bytes != 8 {
				continue
			}
			for _, p := range places {
				m.collective(ctx, p, name, size.bytes, longhaul.Collective(name, size.name))
			}
		}
	}
	for _, p := range places {
		m.outage(ctx, p)
	}
	for _, p := range places {
		if p.name == onTrunk {
			m.restart(ctx, p)
		}
	}
	return context.Cause(ctx)
}

// note prints why there is no value, and has it in the report.
func (m *measurement) note(ctx context.Context, row longhaul.Row, target string, err error) {
	if ctx.Err() != nil {
		return
	}
	m.report.Miss(row, target, drive.OneLine(err.Error()))
	fmt.Fprintf(os.Stderr, "%s, %s: %v\n", row.Name, target, err)
}

func (m *measurement) wanted(row longhaul.Row, target string) bool {
	if m.alone && (target != onTrunk || row.Name == longhaul.Outage.Name) {
		return false
	}
	return (m.only == nil || m.only.MatchString(row.Name)) && (m.on == nil || m.on.MatchString(target))
}

// goes tells whether the row is wanted and anything runs there, and what is under way.
func (m *measurement) goes(ctx context.Context, p *place, row longhaul.Row) bool {
	if !m.wanted(row, p.name) {
		return false
	}
	if p.miss != "" {
		m.report.Miss(row, p.name, p.miss)
		return false
	}
	if ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "round %d: %s, %s\n", m.round+1, row.Name, p.name)
	}
	return ctx.Err() == nil
}

func (m *measurement) plain(ctx context.Context, row longhaul.Row, n int) {
	p := &place{name: fmt.Sprintf("TCP, %d streams", n)}
	if !m.goes(ctx, p, row) {
		return
	}
	var rates []float64
	ways, err := m.watched(ctx, func() (err error) { rates, err = m.tcp(ctx, n); return err })
	if err != nil {
		m.note(ctx, row, p.name, err)
		return
	}
	m.report.Add(row, p.name, m.round, sum(rates), ways)
}

// stream measures pairs of ranks; fair, if not nil, is the row for Jain's index.
func (m *measurement) stream(ctx context.Context, p *place, pairs int, how string, bytes int, row longhaul.Row,
	fair *longhaul.Row) {
	if !m.goes(ctx, p, row) {
		return
	}
	var got numbers
	ways, err := m.watched(ctx, func() (err error) {
		got, err = m.mpi(ctx, p.job(pairs, pairs), m.limit(), how, strconv.Itoa(bytes), seconds(m.warm),
			seconds(m.seconds), strconv.Itoa(m.window))
		return err
	})
	if err == nil && len(got["rates"]) == 0 {
		err = fmt.Errorf("no rates")
	}
	if err != nil {
		m.note(ctx, row, p.name, err)
		return
	}
	m.report.Add(row, p.name, m.round, sum(got["rates"]), ways)
	if fair != nil {
		m.report.Add(*fair, p.name, m.round, longhaul.Jain(got["rates"]), ways)
	}
}

// limit of a job: a slow one has a window to send after its time.
func (m *measurement) limit() time.Duration { return m.warm + m.seconds + 2*time.Minute }

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

func sum(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}

func (m *measurement) blocking(ctx context.Context, p *place) {
	if p.miss != "" {
		for _, row := range []longhaul.Row{longhaul.Small, longhaul.First, longhaul.Arrives, longhaul.Returns} {
			m.goes(ctx, p, row)
		}
		return
	}
	for _, bytes := range []int{8, 1 << 20} {
		row := longhaul.Arrives
		if bytes == 8 {
			row = longhaul.Small
		}
		if !m.goes(ctx, p, row) {
			continue
		}
		var got numbers
		ways, err := m.watched(ctx, func() (err error) {
			got, err = m.mpi(ctx, p.job(1, 1), m.limit(), "block", strconv.Itoa(bytes), strconv.Itoa(m.count+2))
			return err
		})
		if err == nil && len(got["arrives"]) < 3 {
			err = fmt.Errorf("no times")
		}
		if err != nil {
			m.note(ctx, row, p.name, err)
			continue
		}
		arrives, returns := got["arrives"], got["returns"]
		m.report.Add(row, p.name, m.round, stat.Median(arrives[2:])/1e3, ways)
		if bytes != 8 {
			m.report.Add(longhaul.First, p.name, m.round, arrives[0]/1e3, ways)
			m.report.Add(longhaul.Returns, p.name, m.round, stat.Median(returns[2:])/1e3, ways)
		}
	}
}

func (m *measurement) collective(ctx context.Context, p *place, name string, bytes int, row longhaul.Row) {
	if !m.goes(ctx, p, row) {
		return
	}
	var got numbers
	ways, err := m.watched(ctx, func() (err error) {
		got, err = m.mpi(ctx, p.job(4, 4), m.limit(), "coll", name, strconv.Itoa(bytes), strconv.Itoa(m.times))
		return err
	})
	if err == nil && len(got["took"]) == 0 {
		err = fmt.Errorf("no times")
	}
	if err != nil {
		m.note(ctx, row, p.name, err)
		return
	}
	m.report.Add(row, p.name, m.round, stat.Median(got["took"])/1e3, ways)
}

// memory does something and notes the most that the forwarders of the trunk had meanwhile.
func (m *measurement) memory(ctx context.Context, p *place, do func()) {
	if p.name != onTrunk || !m.goes(ctx, p, longhaul.Memory) {
		do()
		return
	}
	for _, pid := range m.lab.Forwarders() {
		// From now on (proc(5), clear_refs).
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
	}
	do()
	var most float64
	for _, pid := range m.lab.Forwarders() {
		kB, err := highest(pid)
		if err != nil {
			m.note(ctx, longhaul.Memory, p.name, err)
			return
		}
		most += kB * 1024 / 1e6
	}
	m.report.Add(longhaul.Memory, p.name, m.round, most, nil)
}

// highest is the most memory that a process had, in kB.
func highest(pid int) (float64, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if words := strings.Fields(s.Text()); len(words) == 3 && words[0] == "VmHWM:" {
			return strconv.ParseFloat(words[1], 64)
		}
	}
	return 0, fmt.Errorf("process %d has no VmHWM", pid)
}

// outage cuts the long link under a stream: how long the job took more than without, its start
// included, in ms.
func (m *measurement) outage(ctx context.Context, p *place) {
	const after = 3 * time.Second // the job has started
	m.disturbed(ctx, p, longhaul.Outage, after, after+m.cut+5*time.Second,
		func() error { return m.lab.Line(ctx, "cut", m.cut.String()) })
}

// restart kills the forwarder that dials, just before the end of a stream, and starts it again: how
// long the job took more than without, its start included, in ms.
func (m *measurement) restart(ctx context.Context, p *place) {
	const after = 3 * time.Second
	m.disturbed(ctx, p, longhaul.Restart, after, after, func() error { return m.lab.Restart(0) })
}

// disturbed does something after a time in the middle of a stream that is to last for whole.
func (m *measurement) disturbed(ctx context.Context, p *place, row longhaul.Row, after, whole time.Duration,
	what func() error) {
	if !m.goes(ctx, p, row) {
		return
	}
	t := p.job(1, 1)
	var begun time.Time
	ways, err := m.watched(ctx, func() error {
		begun = time.Now()
		done := make(chan error, 1)
		timer := time.AfterFunc(after, func() { done <- what() })
		_, err := m.mpi(ctx, t, whole+3*time.Minute, "stream", strconv.Itoa(1<<20), "0", seconds(whole),
			strconv.Itoa(m.window))
		if !timer.Stop() {
			err = errors.Join(err, <-done)
		}
		return err
	})
	if err != nil {
		m.note(ctx, row, p.name, err)
		return
	}
	m.report.Add(row, p.name, m.round, longhaul.Milliseconds(time.Since(begun)-whole), ways)
}
