package browser

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
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

	"github.com/retrychaos/retrychaos/reports"
)

// findChromium returns the browser's path, or skips the test. RETRYCHAOS_CHROMIUM names another one.
func findChromium(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("RETRYCHAOS_CHROMIUM"); path != "" {
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium on this machine: install it (apt-get install chromium) or set RETRYCHAOS_CHROMIUM")
	return ""
}

var shared struct {
	once sync.Once
	ctx  context.Context
	err  error
	stop func()
}

// browser starts the one browser of all tests, which gives each a tab of its own.
func browser(t *testing.T, chromium string) context.Context {
	t.Helper()
	shared.once.Do(func() {
		profile, err := os.MkdirTemp("", "retrychaos-browser")
		if err != nil {
			shared.err = err
			return
		}
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.NoSandbox,
			chromedp.WindowSize(1280, 900), chromedp.UserDataDir(profile))
		alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, cancel := chromedp.NewContext(alloc)
		shared.ctx, shared.err = ctx, chromedp.Do(ctx)
		shared.stop = func() {
			cancel()
			stop()
			os.RemoveAll(profile) // what the ending browser still writes is left to the system
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.ctx
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.stop != nil {
		shared.stop()
	}
	os.Exit(code)
}

// A tab is one page in one browser, with all that it said and all that it asked for.
type tab struct {
	t       *testing.T
	ctx     context.Context
	address string
	mu      sync.Mutex
	said    []string
	asked   []string
}

// open writes the report as a page and opens it from disk.
func open(t *testing.T, r *reports.Report, o reports.HTMLOptions) *tab {
	t.Helper()
	chromium := findChromium(t)
	path := filepath.Join(t.TempDir(), "report.html")
	var b bytes.Buffer
	if err := reports.WriteHTML(&b, r, o); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return openFile(t, chromium, path)
}

func openFile(t *testing.T, chromium, path string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser(t, chromium))
	t.Cleanup(cancel)
	p := &tab{t: t, ctx: ctx, address: "file://" + (&url.URL{Path: path}).EscapedPath()}
	if err := chromedp.Listen(ctx, p.listen); err != nil {
		t.Fatal(err)
	}
	command(p, network.Enable, network.EnableParams{})
	command(p, log.Enable, cdp.Empty{})
	command(p, runtime.Enable, cdp.Empty{})
	p.navigate("")
	return p
}

func (p *tab) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		p.asked = append(p.asked, e.Request.URL)
	case *log.EventEntryAdded:
		p.said = append(p.said, fmt.Sprintf("%s: %s", e.Entry.Level, e.Entry.Text))
	case *runtime.EventConsoleAPICalled:
		p.said = append(p.said, fmt.Sprintf("console.%s", e.Type))
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			text += ": " + x.Description
		}
		p.said = append(p.said, text)
	}
}

// quiet fails the test if the page said anything on the console or asked for anything but itself.
func (p *tab) quiet() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.said {
		p.t.Errorf("the page says: %s", s)
	}
	if len(p.asked) == 0 {
		p.t.Error("not even the page itself was asked for: the test does not see requests")
	}
	for _, a := range p.asked {
		if !strings.HasPrefix(a, p.address) && a != "about:blank" {
			p.t.Errorf("the page asks for %s", a)
		}
	}
}

func command[P, R any](p *tab, c cdp.Command[P, R], params P) {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, c, params); err != nil {
		p.t.Fatal(err)
	}
}

// run takes a step. One that waits for what never comes ends the test, and not the time of the whole run.
func run[T any](p *tab, step chromedp.Action[T]) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	v, err := chromedp.Run(ctx, step)
	if err != nil {
		p.t.Fatal(err)
	}
	return v
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	run(p, chromedp.Steps(steps...))
}

// navigate opens the page anew, with a fragment.
func (p *tab) navigate(fragment string) {
	p.t.Helper()
	p.do(chromedp.Navigate("about:blank"), chromedp.Navigate(p.address+fragment))
}

// eval returns the value of an expression in the page.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	return run(p, chromedp.Evaluate[T](expression))
}

// size sets the width of the window, and the colours that its user prefers.
func (p *tab) size(width, height int64, scheme string) {
	p.t.Helper()
	command(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 500})
	command(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

func (p *tab) shot(path string) {
	p.t.Helper()
	png := run(p, chromedp.CaptureScreenshot())
	if err := os.WriteFile(path, png, 0o644); err != nil {
		p.t.Fatal(err)
	}
}
