package world

import (
	"bytes"
	"cmp"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
)

// maxDump bounds the memory that one look at all goroutines may take.
const maxDump = 256 << 20

// goroutine is one goroutine of a stack dump.
type goroutine struct {
	id    uint64
	stack string
}

// currentBubble is the runtime's number of the bubble that the calling
// goroutine is in, or 0.
func currentBubble() uint64 {
	var buf [128]byte
	header, _, _ := strings.Cut(string(buf[:runtime.Stack(buf[:], false)]), "\n")
	return bubbleOf(header)
}

// bubbleOf reads the bubble's number from the first line of a stack, such as
// "goroutine 7 [select (durable), 2 minutes, synctest bubble 3]:".
func bubbleOf(header string) uint64 {
	_, after, ok := strings.Cut(header, ", synctest bubble ")
	if !ok {
		return 0
	}
	end := strings.IndexFunc(after, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(after)
	}
	id, _ := strconv.ParseUint(after[:end], 10, 64)
	return id
}

// bubbleGoroutines lists the goroutines of a bubble, except those that
// synctest.Test and Bubble use themselves, oldest first. It stops the whole process for as
// long as it takes to write down every goroutine there is: some 0.1 ms for a
// dozen, tens of milliseconds for ten thousand.
func bubbleGoroutines(bubble uint64) []goroutine {
	if bubble == 0 {
		return nil // it never began; 0 would match everything outside bubbles
	}
	var found []goroutine
	for entry := range bytes.SplitSeq(dumpAll(), []byte("\n\n")) {
		header, _, _ := bytes.Cut(entry, []byte("\n"))
		if bubbleOf(string(header)) != bubble || isOwn(entry) {
			continue
		}
		found = append(found, goroutine{goroutineID(header), strings.TrimSpace(string(entry))})
	}
	slices.SortFunc(found, func(a, b goroutine) int { return cmp.Compare(a.id, b.id) })
	return found
}

func dumpAll() []byte {
	for size := 64 << 10; ; size *= 2 {
		buf := make([]byte, size)
		if n := runtime.Stack(buf, true); n < size || size >= maxDump {
			return buf[:n]
		}
	}
}

// isOwn recognises the three goroutines of the bubble itself by what package
// testing/synctest has them do: the one that called synctest.Run, the one that
// Run started, and the one of the inner *testing.T.
func isOwn(stack []byte) bool {
	return bytes.Contains(stack, []byte("\ninternal/synctest.Run(")) ||
		bytes.Contains(stack, []byte("\ncreated by testing/synctest.Test in goroutine ")) ||
		bytes.Contains(stack, []byte("\ncreated by testing/synctest.testingSynctestTest in goroutine "))
}

func goroutineID(header []byte) uint64 {
	fields := bytes.Fields(header)
	if len(fields) < 2 {
		return 0
	}
	id, _ := strconv.ParseUint(string(fields[1]), 10, 64)
	return id
}

func stacksOf(gs []goroutine) []string {
	var stacks []string
	for _, g := range gs {
		stacks = append(stacks, g.stack)
	}
	return stacks
}

// census is a count of the process's goroutines. As long as it stays the same,
// none has begun and none has ended.
type census struct {
	alive int
	begun uint64
}

func countGoroutines() census {
	sample := []metrics.Sample{{Name: "/sched/goroutines-created:goroutines"}}
	metrics.Read(sample)
	c := census{alive: runtime.NumGoroutine()}
	if sample[0].Value.Kind() == metrics.KindUint64 {
		c.begun = sample[0].Value.Uint64()
	}
	return c
}
