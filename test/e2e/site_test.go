package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestSite checks that the output of make docs shows the documents in a browser, from files, makes
// no request to any host, has every page in its menu, and finds words.
func TestSite(t *testing.T) {
	b := New(t)
	b.OK(b.Run(nil, nil, "scripts/docs"))
	root := "file://" + filepath.Join(b.Root, "build/docs")
	w := openPage(b, root+"/README.html")
	if got := w.text(`document.querySelector('h1').firstChild.textContent`); got != "Leiden Zipper" {
		t.Errorf("the first page is about %q", got)
	}
	menu := w.text(`[...document.querySelectorAll('.wy-menu a')].map(a => a.getAttribute('href')).join('\n')`)
	for _, folder := range []string{"tutorial", "howto", "reference", "performance", "design", "decisions"} {
		pages, err := filepath.Glob(filepath.Join(b.Root, "docs", folder, "*.md"))
		if err != nil || len(pages) == 0 {
			t.Fatalf("docs/%s: %v", folder, err)
		}
		for _, p := range pages {
			page := "docs/" + folder + "/" + strings.TrimSuffix(filepath.Base(p), ".md") + ".html"
			if !strings.Contains(menu, page) {
				t.Errorf("the menu has no %s", page)
			}
		}
	}
	w.do("search", chromedp.Navigate(root+"/search.html?q=splice"))
	b.WaitFor(20*time.Second, "what the search finds", func() bool {
		return strings.Contains(w.text(`document.querySelector('#search-results').textContent`), "through a pipe")
	})
}
