package reports

import (
	"bytes"
	"io"
	"testing"
)

// FuzzReadJSON: what is read is a report that every writer can write, that is the same when it is read again, and
// that is like itself; all else is an error.
func FuzzReadJSON(f *testing.F) {
	for _, r := range []*Report{fixed(Run{}, sample("a")[4:6]), fixed(Run{}, nil)} {
		var b bytes.Buffer
		if err := r.WriteJSON(&b); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Add([]byte(`{"schema":"retrychaos.report/v1","level":"MUST","clients":[{"name":"a"}],"results":[{"scenario":"f/a","client":"a","status":"pass","history":{"calls":[null]}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ReadJSON(bytes.NewReader(data))
		if err != nil {
			return
		}
		var once, twice bytes.Buffer
		if err := r.WriteJSON(&once); err != nil {
			t.Skip() // a time that JSON cannot hold
		}
		again, err := ReadJSON(bytes.NewReader(once.Bytes()))
		if err != nil {
			t.Fatalf("what was read and written is not read again: %v", err)
		}
		if err := again.WriteJSON(&twice); err != nil || !bytes.Equal(once.Bytes(), twice.Bytes()) {
			t.Fatalf("it changes: %v", err)
		}
		for _, format := range Formats() {
			if err := Write(io.Discard, r, format); err != nil {
				t.Fatalf("%s: %v", format, err)
			}
		}
		if err := WriteTerminal(io.Discard, r, TerminalOptions{Verbose: true}); err != nil {
			t.Fatal(err)
		}
		c := Diff(r, again)
		if !c.Empty() || c.Same != len(r.Results) {
			t.Errorf("it is not like itself: %d of %d the same", c.Same, len(r.Results))
		}
	})
}
