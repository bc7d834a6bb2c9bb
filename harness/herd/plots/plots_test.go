package plots

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness/herd"
	"github.com/retrychaos/retrychaos/harness/history"
)

// drawn checks that svg is well-formed XML that holds the texts.
func drawn(t *testing.T, svg []byte, err error, texts ...string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(string(svg)))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range texts {
		if !strings.Contains(string(svg), text) {
			t.Errorf("the plot does not show %q", text)
		}
	}
}

func TestPlots(t *testing.T) {
	run := func(client string) herd.Run {
		r := herd.Run{Client: client, Setting: herd.Setting{Name: "stall"}}
		for i := range 700 {
			r.Load.Seconds = append(r.Load.Seconds, history.Second{Attempts: i % 90, Succeeded: i % 70})
		}
		for k := 1; k <= 6; k++ {
			r.Waves = append(r.Waves, herd.Wave{K: k, Gaps: []time.Duration{time.Second, 2 * time.Second, 0}})
		}
		return r
	}
	runs := []herd.Run{run("full"), run("none")}
	svg, err := Arrivals(runs)
	drawn(t, svg, err, "attempts a second: stall", "full", "none")
	svg, err = Goodput(runs)
	drawn(t, svg, err, "calls that succeed")
	svg, err = Waves(runs[0])
	drawn(t, svg, err, "retry 1", "retry 4")
	svg, err = CallsAgainstN([]herd.Row{{Client: "full", After: 1}, {Client: "none", After: 1}, {Client: "full", After: 3}, {Client: "none", After: 1}}, []int{10, 1000})
	drawn(t, svg, err, "1000", "full")
	if svg, err := Waves(herd.Run{}); svg != nil || err != nil {
		t.Errorf("nobody waited: %v", err)
	}
}
