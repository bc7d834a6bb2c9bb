package faults_test

import (
	"slices"
	"testing"

	"github.com/retrychaos/retrychaos/faults"
)

func TestCatalogueIsComplete(t *testing.T) {
	wheres := []string{faults.WhereDo, faults.WhereBodyRead, faults.WhereDecoding, faults.WhereNowhere}
	for _, e := range faults.Catalogue() {
		if e.Doc == "" || e.Category == "" || len(e.Phases) == 0 || len(e.Protocols) == 0 || e.Sees == "" || !slices.Contains(wheres, e.Where) {
			t.Errorf("%s is not filled in: %+v", e.Name, e)
		}
		f, err := faults.Parse(e.Example)
		if err != nil || f.Name != e.Name {
			t.Errorf("%s: the example %q: %v", e.Name, e.Example, err)
		}
		if got, ok := faults.Lookup(e.Name); !ok || got.Name != e.Name {
			t.Errorf("%s is not found", e.Name)
		}
		if len(e.Combinations()) < len(e.Phases) {
			t.Errorf("%s: %d combinations for the phases %v", e.Name, len(e.Combinations()), e.Phases)
		}
		if e.Level == faults.LevelConnection && (e.Where != faults.WhereDo || !slices.Equal(e.Phases, []faults.Phase{faults.BeforeCommit})) ||
			e.TLS && e.Level != faults.LevelConnection {
			t.Errorf("%s: what strikes before there is a request can neither follow a commit nor reach a body", e.Name)
		}
		for _, p := range e.Params {
			if p.Name == "" || p.Kind == "" || p.Doc == "" || (p.Kind == faults.KindWord) != (len(p.Values) > 0) {
				t.Errorf("%s: parameter %+v", e.Name, p)
			}
		}
	}
	names := slices.Sorted(slices.Values(faults.Names()))
	if len(slices.Compact(names)) != len(faults.Catalogue()) {
		t.Error("a name stands twice in the catalogue")
	}
	if _, ok := faults.Lookup("ok"); ok {
		t.Error("ok is no entry")
	}
	// What a caller does to its copy is its own affair.
	faults.Catalogue()[0].Name = "changed"
	if faults.Names()[0] == "changed" || faults.Catalogue()[0].Name == "changed" {
		t.Error("the catalogue can be written to")
	}
}

func TestCategoryAndBlocks(t *testing.T) {
	for text, want := range map[string]struct {
		category faults.Category
		blocks   bool
	}{
		"ok": {faults.None, false}, "latency delay=1s": {faults.None, false}, "hang": {faults.Transport, true},
		"empty_response": {faults.Transport, false}, "connection_reset": {faults.Transport, false},
		"truncated_body": {faults.Transport, false}, "stall_body": {faults.Transport, true},
		"stall_body delay=1s": {faults.None, false}, "stall_body delay=1s end=rst": {faults.Transport, false},
		"connect_refused": {faults.Transport, false}, "accept_hang": {faults.Transport, true}, "tls_handshake_hang": {faults.Transport, true},
		"429": {faults.Status, false}, "malformed_json variant=bom": {faults.Decoding, false},
	} {
		f := parse(t, text)
		if f.Category() != want.category || f.Blocks() != want.blocks {
			t.Errorf("%s: %s, %v", text, f.Category(), f.Blocks())
		}
	}
	if !(faults.Fault{Name: "stall_body"}).Blocks() {
		t.Error("a stall made by hand does not block")
	}
}

func TestNearest(t *testing.T) {
	for word, want := range map[string]string{
		"conection_reset": "connection_reset", "connection-reset": "connection_reset", "Hang": "hang", "latncy": "latency",
		"truncated_bdy": "truncated_body", "json": "malformed_json", "o": "ok", "": "", "kubernetes": "",
	} {
		if got := faults.Nearest(word); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
