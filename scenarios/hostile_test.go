package scenarios

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// A file within the bound on size can still be made to cost time or memory. None does.
func TestHostileFiles(t *testing.T) {
	const room = 250 << 10
	fill := func(unit string) string { return strings.Repeat(unit, room/len(unit)) }
	numbered := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	matrix := func(tail string) string {
		text := file("    matrix: {a: ["+numbered("w%d, ", 900)+"]}", tail)
		return strings.Replace(text, "name: one", `name: "one-{a}"`, 1)
	}
	for name, text := range map[string]string{
		"many labels":          file("    labels: [" + numbered("l%d, ", room/9) + "]"),
		"many bad labels":      file("    labels: [" + fill("1, ") + "]"),
		"many storms":          file("    storms: [" + fill("{to: 1s, fault: '503'}, ") + "]"),
		"many groups":          file("    calls: [" + numbered("{name: g%d, after: g1}, ", room/25) + "]"),
		"many faults":          file("    faults: [" + fill("ok, ") + "]"),
		"many bad faults":      file("    faults: [" + fill("x, ") + "]"),
		"many header lines":    file("    calls: [{header: {" + numbered("h%d: a, ", room/12) + "}}]"),
		"many doubles":         "family: a\nscenarios:\n" + fill("  - {name: b, summary: s, rule: key.stable, source: x}\n"),
		"many bad scenarios":   "family: a\nscenarios:\n" + fill("  - {nome: b}\n"),
		"matrix of much":       matrix("    faults: [" + strings.Repeat("'503', ", 9000) + "]"),
		"matrix of long texts": strings.Replace(matrix("    why: '"+strings.Repeat("{b}", 50000)+"'"), "matrix: {", "matrix: {b: {x: "+strings.Repeat("y", 100000)+"}, ", 1),
		"brackets":             fill("["),
		"question marks":       fill("? "),
		"open flow":            "a: " + fill("{a: "),
		"one long word":        file("    rule: " + fill("x")),
		"dashes":               fill("- "),
	} {
		objects, bytes := spent(func() {
			if _, err := Load("x.yaml", []byte(text)); err == nil {
				t.Errorf("%s: accepted", name)
			} else if n := strings.Count(err.Error(), "\n"); n > maxProblems+1 || len(err.Error()) > 1<<20 {
				t.Errorf("%s: an error of %d lines and %d bytes", name, n, len(err.Error()))
			}
		})
		// Work that grows faster than the file shows in what is allocated for it, whatever else the machine does.
		size := float64(len(text))
		if objects > 24*size || bytes > 3<<10*size && !racing {
			t.Errorf("%s: %.1f objects and %.0f bytes were allocated for each byte of the file", name, objects/size, bytes/size)
		}
	}
}

// spent returns what f allocates, in number and in bytes.
func spent(f func()) (objects, bytes float64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs - before.Mallocs), float64(after.TotalAlloc - before.TotalAlloc)
}
