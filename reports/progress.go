package reports

import (
	"cmp"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/retrychaos/retrychaos/harness/check"
)

// ProgressOptions says how Progress shows.
type ProgressOptions struct {
	Terminal bool // one line that is redrawn; otherwise a line every tenth of the way
	Quiet    bool // nothing at all
	Width    int  // columns of the terminal; default 80
}

// Progress tells on standard error how far a run is. It is safe for concurrent use.
type Progress struct {
	w     io.Writer
	o     ProgressOptions
	total int

	mu      sync.Mutex
	done    int
	failed  int
	unknown int
	drawn   time.Time
	tenth   int
}

// redraw is the least time between two drawings, so that a quick run is not slowed by its terminal.
const redraw = 50 * time.Millisecond

// NewProgress makes a Progress for so many scenarios.
func NewProgress(w io.Writer, total int, o ProgressOptions) *Progress {
	o.Width = cmp.Or(o.Width, 80)
	return &Progress{w: w, o: o, total: total}
}

// Done tells that a scenario is over, and how it ended.
func (p *Progress) Done(scenario string, status check.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	switch status {
	case check.Fail:
		p.failed++
	case check.Unknown:
		p.unknown++
	}
	if p.o.Quiet {
		return
	}
	if !p.o.Terminal {
		if tenth := p.done * 10 / max(p.total, 1); tenth > p.tenth {
			p.tenth = tenth
			fmt.Fprintln(p.w, p.text())
		}
		return
	}
	if now := time.Now(); now.Sub(p.drawn) >= redraw {
		p.drawn = now
		fmt.Fprintf(p.w, "\r%s\x1b[K", clip(p.text()+" · "+plain(scenario), p.o.Width-1))
	}
}

func (p *Progress) text() string {
	s := fmt.Sprintf("%d/%d scenarios · %d failed", p.done, p.total, p.failed)
	if p.unknown > 0 {
		s += fmt.Sprintf(" · %d unknown", p.unknown)
	}
	return s
}

// Say writes a line of its own, also where the progress is quiet.
func (p *Progress) Say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.o.Terminal && !p.drawn.IsZero() {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	fmt.Fprintln(p.w, text)
}

// Close takes the line off the terminal, to make room for the report.
func (p *Progress) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.o.Terminal && !p.o.Quiet && !p.drawn.IsZero() {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
