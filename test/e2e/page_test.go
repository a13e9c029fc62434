package e2e

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/forwarder/monitor"
	"github.com/leidenzipper/zipper/internal/optional"
)

// browser is a headless Chromium with an open page. Complaints of the browser, and requests to
// other hosts than the page's or for more than files, fail the test at its end.
type browser struct {
	b   *Bed
	ctx context.Context
}

func openPage(b *Bed, page string) *browser {
	b.T.Helper()
	optional.Processor(b.T, "the sandboxes in which a browser starts its processes")
	at, err := url.Parse(page)
	if err != nil {
		b.T.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WindowSize(1100, 1000))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	b.T.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	b.T.Cleanup(cancel)
	var mu sync.Mutex
	var faults []string
	fault := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		faults = append(faults, fmt.Sprintf(format, args...))
	}
	err = chromedp.Listen(ctx, func(ev any) {
		switch ev := ev.(type) {
		case *network.EventRequestWillBeSent:
			if u, err := url.Parse(ev.Request.URL); err != nil || u.Scheme != at.Scheme && u.Scheme != "data" ||
				u.Host != at.Host {
				fault("request to %s", ev.Request.URL)
			}
		case *runtime.EventConsoleAPICalled:
			fault("console: %s %s", ev.Type, ev.Args[0].Value)
		case *runtime.EventExceptionThrown:
			fault("exception: %s", ev.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			if ev.Entry.Level == "error" || ev.Entry.Level == "warning" {
				fault("log: %s %s", ev.Entry.Text, ev.Entry.URL)
			}
		}
	})
	if err != nil {
		b.T.Fatalf("Chromium: %v", err)
	}
	ctx, cancel = context.WithTimeout(ctx, b.Limit)
	b.T.Cleanup(cancel)
	w := &browser{b, ctx}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		b.T.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		b.T.Fatal(err)
	}
	w.do("open the page", chromedp.Navigate(page))
	b.T.Cleanup(func() { // before the browser is closed
		mu.Lock()
		defer mu.Unlock()
		for _, f := range faults {
			b.T.Error(f)
		}
	})
	return w
}

func (w *browser) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	w.b.T.Helper()
	if err := chromedp.Do(w.ctx, actions...); err != nil {
		w.b.T.Fatalf("%s: %v", what, err)
	}
}

// text returns the value of a JavaScript expression as text.
func (w *browser) text(js string) string {
	w.b.T.Helper()
	s, err := chromedp.Run(w.ctx, chromedp.Evaluate[string]("String("+js+")"))
	if err != nil {
		w.b.T.Fatalf("%s: %v", js, err)
	}
	return s
}

// contrast is the least contrast of text with its background (WCAG 2), of all texts of the page.
const contrast = `(() => {
  const rgb = s => s.match(/[\d.]+/g).map(Number)
  const light = c => { const [r, g, b] = c.slice(0, 3).map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    return .2126 * r + .7152 * g + .0722 * b }
  let least = 21
  for (const e of document.querySelectorAll('body *')) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || e.closest('svg, .skip, .hidden, noscript, script')) continue
    let back = e
    while (back && (rgb(getComputedStyle(back).backgroundColor)[3] === 0)) back = back.parentElement
    const a = light(rgb(getComputedStyle(e).color)), b = light(rgb(getComputedStyle(back || document.body).backgroundColor))
    least = Math.min(least, (Math.max(a, b) + .05) / (Math.min(a, b) + .05))
  }
  return least.toFixed(2)
})()`

// TestPage opens a forwarder's page in headless Chromium while a job runs: it shows the job, its
// matrix and a changing rate, by keyboard too, light and dark. ZIPPER_PICTURE names a file for a
// picture of the page, which makes docs/figures/page.png.
func TestPage(t *testing.T) {
	b := New(t)
	status := freePort(t)
	f := b.StartForwarder("--status", status)
	w := openPage(b, "http://"+status+"/")
	seen := func(limit time.Duration, what, js string) {
		t.Helper()
		b.WaitFor(limit, what, func() bool { return w.text(js) == "true" })
	}
	seen(20*time.Second, "an empty page", `document.querySelector('#live').textContent === 'live' && !document.querySelector('#none').hidden`)

	prog, stop := b.Compile(OpenMPI, "test/programs/c/stream.c"), filepath.Join(t.TempDir(), "stop")
	args, id := b.runArgs(Job{Clusters: []Cluster{A(2, OpenMPI), B(2, OpenMPI)}, Flags: []string{"--zipper", f.Addr}})
	job := b.Start(nil, nil, append(args, "--", prog, stop)...)
	card := fmt.Sprintf(`document.querySelector('article[data-job=%q]')`, id)
	seen(time.Minute, "the job", card+`?.querySelector('.running') != null`)
	seen(20*time.Second, "its matrix", `[...`+card+`.querySelectorAll('td span')].filter(e => /[1-9].* .?B\/s/.test(e.textContent)).length === 2`)
	rate := card + `.querySelector('dd').textContent`
	first := w.text(rate)
	b.WaitFor(20*time.Second, "a rate that moves from "+first, func() bool { return w.text(rate) != first })
	if got := w.text(`[...` + card + `.querySelectorAll('thead th, tbody th')].map(e => e.textContent).join()`); !strings.HasPrefix(got, "a,b,a,b") {
		t.Errorf("the matrix's heads are %s", got)
	}
	b.WaitFor(20*time.Second, "a chart", func() bool { return len(w.text(`document.querySelector('#rate .line').getAttribute('d')`)) > 60 })

	// By keyboard: past the skip link to the button, which pauses the page; then to the job's
	// matrix and links.
	w.do("keys", chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(" "))
	seen(5*time.Second, "the page to pause", `document.querySelector('#live').textContent === 'paused' && document.activeElement.id === 'pause'`)
	w.do("keys", chromedp.KeyEvent(" "), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab),
		chromedp.KeyEvent(kb.Enter))
	seen(5*time.Second, "the links of the job to be open", card+`.querySelector('details').open && /cluster a/.test(`+card+`.querySelector('.links').textContent)`)
	if n := w.text(`[...document.querySelectorAll('table, [role], button, article, section')].filter(e => e.matches('table') ? !e.caption && !e.closest('[aria-labelledby]') : e.matches('[role=status], button') ? !e.textContent : !e.getAttribute('aria-label') && !document.getElementById(e.getAttribute('aria-labelledby'))?.textContent).map(e => e.outerHTML.slice(0, 60)).join()`); n != "" {
		t.Errorf("without a name for a screen reader: %s", n)
	}
	if picture := os.Getenv("ZIPPER_PICTURE"); picture != "" {
		png, err := chromedp.Run(w.ctx, chromedp.FullScreenshot(100))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(picture, png, 0o644); err != nil {
			t.Error(err)
		}
	}
	for _, scheme := range []string{"light", "dark"} {
		if _, err := chromedp.Call(w.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}); err != nil {
			t.Fatal(err)
		}
		if c := w.text(contrast); len(c) == 4 && c < "4.50" {
			t.Errorf("%s: contrast %s, want 4.5", scheme, c)
		}
	}

	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.OK(job.Wait())
	seen(20*time.Second, "the job among those that have ended", `document.querySelector('#past tbody').textContent.includes(`+fmt.Sprintf("%q", id)+`) && `+card+` === null`)
}

// many is a forwarder with 50 jobs of 1000 ranks each, of 4 clusters that send to each other.
type many struct {
	mu sync.Mutex
	n  uint64
}

func (m *many) Alive(context.Context) error { return nil }

func (m *many) Status() forwarder.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.n++
	s := forwarder.Status{Now: time.Now(), Started: time.Now().Add(-time.Hour), Addresses: []string{"192.0.2.1:7475"},
		Links: 50000}
	for i := range 50 {
		j := forwarder.JobStatus{Job: fmt.Sprintf("job<b>%d", i), Key: fmt.Sprintf("%016x", i), State: "running",
			Level: "sealed", Ranks: 1000, Joined: 1000, Started: s.Started}
		for c := range 4 {
			j.Clusters = append(j.Clusters, forwarder.ClusterStatus{Name: fmt.Sprintf("cluster%d", c), Size: 250,
				Blocked: float64(m.n*uint64(i)) * 10})
			for d := range 4 {
				j.Traffic = append(j.Traffic, forwarder.Traffic{From: fmt.Sprintf("cluster%d", c),
					To: fmt.Sprintf("cluster%d", d), Frames: m.n, Messages: m.n * 7,
					PayloadBytes: m.n * uint64(1000003*(i+c+d))})
			}
		}
		s.Jobs = append(s.Jobs, j)
	}
	return s
}

// TestPageOf50JobsRefreshesFast checks that with 50 jobs of 1000 ranks a refresh takes less than
// 200 ms.
func TestPageOf50JobsRefreshesFast(t *testing.T) {
	b := New(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- monitor.Serve(ctx, ln, monitor.Shown{Forwarder: &many{}}) }()
	defer func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	w := openPage(b, "http://"+ln.Addr().String()+"/")
	b.WaitFor(time.Minute, "refreshes", func() bool { return w.text("times.length >= 7") == "true" })
	if n := w.text("document.querySelectorAll('article').length + ' ' + document.querySelectorAll('article td span').length + ' ' + document.querySelectorAll('b').length"); n != "50 800 0" {
		t.Errorf("articles, cells, bold: %s, want 50 800 0", n)
	}
	t.Logf("milliseconds of refreshes, the first of which makes all: %s", w.text("times"))
	// On a busy machine single refreshes wait for other processes.
	if m := w.text("times.slice(1).sort((a, b) => a - b)[3]"); len(m) > 3 || len(m) == 3 && m >= "200" {
		t.Errorf("half of the refreshes take %s ms or more, want less than 200", m)
	}
	w.do("close", chromedp.Navigate("about:blank"))
}
