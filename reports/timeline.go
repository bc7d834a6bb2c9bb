package reports

import (
	"fmt"

	"github.com/retrychaos/retrychaos/harness/history"
)

// How many lines of a timeline are shown: what began it and how it ended tell the most.
const (
	timelineHead = 12
	timelineTail = 4
)

// timeline is the life of a call as rows of an instant and a text. The middle of a long one is left out.
func timeline(h *history.History, c *history.Call) [][2]string {
	var rows [][2]string
	for _, l := range h.Timeline(c) {
		rows = append(rows, [2]string{history.Dur(l.At), l.Text})
	}
	if n := len(rows) - timelineHead - timelineTail; n > 1 {
		gap := [2]string{"…", fmt.Sprintf("%d lines left out", n)}
		rows = append(append(rows[:timelineHead:timelineHead], gap), rows[len(rows)-timelineTail:]...)
	}
	instants := 0
	for _, r := range rows {
		instants = max(instants, columns(r[0]))
	}
	for i, r := range rows {
		rows[i][0] = fmt.Sprintf("%*s", instants, r[0])
	}
	return rows
}

// timelineText is the timeline as lines that are safe to show.
func timelineText(h *history.History, c *history.Call) []string {
	var lines []string
	for _, r := range timeline(h, c) {
		lines = append(lines, r[0]+"  "+plain(r[1]))
	}
	return lines
}
