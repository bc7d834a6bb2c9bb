package scenarios

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/faults"
)

func mustLibrary(t testing.TB) []Scenario {
	t.Helper()
	list, err := Library()
	if err != nil {
		t.Fatalf("the library does not load:\n%v", err)
	}
	return list
}

func TestLibraryIsWhole(t *testing.T) {
	list := mustLibrary(t)
	if len(list) < 60 {
		t.Errorf("%d scenarios, want 60 at least", len(list))
	}
	if !sort.SliceIsSorted(list, func(i, j int) bool { return list[i].Name < list[j].Name }) {
		t.Error("not sorted by name")
	}
	rules, faultNames, variants, families := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	seen := map[string]bool{}
	for _, s := range list {
		if seen[s.Name] {
			t.Errorf("%s: the name is used twice", s.Name)
		}
		seen[s.Name] = true
		rules[s.Rule]++
		families[s.Family()]++
		for _, f := range allFaults(s) {
			faultNames[f.Name]++
			variants[f.Variant]++
		}
	}
	for _, r := range RuleIDs() {
		if rules[r] == 0 {
			t.Errorf("no scenario is about %s", r)
		}
	}
	for _, f := range faults.Names() {
		if faultNames[f] == 0 {
			t.Errorf("no scenario has the fault %s", f)
		}
	}
	for _, v := range faults.Variants() {
		if variants[v.Name] == 0 {
			t.Errorf("no scenario has malformed_json variant=%s", v.Name)
		}
	}
	for _, f := range []string{"duplicates", "bounded", "rate-limits", "permanent", "malformed-json", "cancellation", "herd", "mistakes", "recovery"} {
		if families[f] == 0 {
			t.Errorf("the family %s is missing", f)
		}
	}
	if families["mistakes"] != 5 {
		t.Errorf("%d mistakes, want the five", families["mistakes"])
	}
}

func allFaults(s Scenario) []faults.Fault {
	list := slices.Clone(s.Faults)
	for _, g := range s.Calls {
		list = append(list, g.Faults...)
	}
	for _, st := range s.Storms {
		list = append(list, st.Fault)
	}
	if s.Draw != nil {
		list = append(list, s.Draw.Faults...)
	}
	return list
}

// Every way to lose an answer, with every kind of key, on both kinds of connection.
func TestLibraryHasTheWholeProductOfDuplicates(t *testing.T) {
	type cell struct {
		method string
		keyed  bool
		mode   KeyMode
		fault  string
		conn   faults.ConnState
	}
	have := map[cell]bool{}
	for _, s := range mustLibrary(t) {
		if s.Family() == "duplicates" && len(s.Faults) > 0 && len(s.Calls) == 1 {
			g := s.Calls[0]
			have[cell{g.Method, g.Key, s.Server.Keys, s.Faults[0].String(), s.Connection}] = true
		}
	}
	for _, fault := range []string{"empty_response@after_commit", "hang@after_commit", "connection_reset@after_commit",
		"500@after_commit", "502@after_commit", "504@after_commit", "hang@commit_late"} {
		for _, conn := range []faults.ConnState{faults.Fresh, faults.Reused} {
			want := []cell{
				{"PUT", false, Honour, fault, conn}, {"DELETE", false, Honour, fault, conn}, {"POST", false, Ignore, fault, conn},
			}
			for _, mode := range []KeyMode{Honour, Ignore, Require} {
				want = append(want, cell{"POST", true, mode, fault, conn})
			}
			for _, c := range want {
				if !have[c] {
					t.Errorf("missing: %+v", c)
				}
			}
		}
	}
}

// net/http resends by itself where a reused connection gives no byte, so every fault that gives none is met on a
// fresh and on a warmed connection.
func TestLibraryMeetsSilenceOnBothConnections(t *testing.T) {
	met := map[string]bool{}
	for _, s := range mustLibrary(t) {
		for _, f := range allFaults(s) {
			state := cmp.Or(f.On, s.Connection, faults.Fresh)
			met[f.Name+" "+string(f.End)+" "+string(state)] = true
		}
	}
	for _, silent := range []string{"hang ", "empty_response ", "connection_reset ", "partial_request hang", "partial_request fin", "partial_request rst"} {
		for _, state := range connStates() {
			if !met[silent+" "+state] {
				t.Errorf("no scenario meets %s on a %s connection", silent, state)
			}
		}
	}
}

// A body of a size is the same bytes each time, and JSON.
func TestPayload(t *testing.T) {
	for _, size := range []int{MinBodySize, 100, 1 << 20} {
		b := Group{BodySize: size}.Payload()
		if len(b) != size || !json.Valid(b) || !bytes.Equal(b, Group{BodySize: size}.Payload()) {
			t.Errorf("size %d: %d bytes, %.60q", size, len(b), b)
		}
	}
	b := Group{BodySize: 1 << 20}.Payload()
	piece := b[1000:1064]
	if bytes.Count(b, piece) != 1 {
		t.Error("a piece of the body comes twice")
	}
	if string(Group{Body: "x"}.Payload()) != "x" || (Group{}).Payload() != nil {
		t.Error("a body without a size")
	}
}

// What a scenario of the library promises must be so.
func TestLibraryIsTruthful(t *testing.T) {
	const longest = 15 * time.Second
	for _, s := range mustLibrary(t) {
		if s.RunsIn(Loopback) {
			for i := range s.Calls {
				if d, ok := reach(&s, i, 0); !ok || d > longest {
					t.Errorf("%s: runs on loopback and can take %s, more than %s", s.Name, d, longest)
				}
			}
		}
		if !strings.HasSuffix(s.Summary, ".") {
			t.Errorf("%s: the summary is no sentence: %s", s.Name, s.Summary)
		}
		if strings.ContainsAny(s.Name+s.Why, "{}") || strings.Contains(strings.ReplaceAll(s.Summary+s.Source, "{call}", ""), "{") {
			t.Errorf("%s: a placeholder was left over", s.Name)
		}
		if s.Name != strings.ToLower(s.Name) {
			t.Errorf("%s: not in lower case", s.Name)
		}
		for _, g := range s.Calls {
			if s.Server.Keys == Ignore && g.Key && !g.KeyUntrusted {
				t.Errorf("%s: the server ignores keys and the application trusts them", s.Name)
			}
			quiet := slices.Contains(safeMethods, g.Method)
			for _, f := range allFaults(s) {
				if quiet && !f.IsOK() && f.Category() == faults.Status && f.Phase != faults.BeforeCommit {
					t.Errorf("%s: %s has no effect for %s to follow", s.Name, g.Method, f)
				}
			}
			if s.Rule == "effects.once" && quiet {
				t.Errorf("%s: is about effects, and %s has none", s.Name, g.Method)
			}
			if s.Rule == "key.stable" && !g.Key {
				t.Errorf("%s: is about keys, and the call has none", s.Name)
			}
			if s.Rule == "timing.cancel" && g.CancelAfter == 0 {
				t.Errorf("%s: is about cancellation, and nothing is cancelled", s.Name)
			}
			// Fifty is as many processes as a client that is a process a call is given.
			if s.Rule == "timing.spread" && g.Count < 200 && s.Name != "herd/processes-started-together" {
				t.Errorf("%s: is about spread, and %d calls are too few to judge", s.Name, g.Count)
			}
		}
	}
}

func TestLibraryRoundTrips(t *testing.T) {
	for _, s := range mustLibrary(t) {
		text, err := Format(s)
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		back, err := Load("formatted.yaml", text)
		if err != nil {
			t.Fatalf("%s does not load again:\n%v\n%s", s.Name, err, text)
		}
		if len(back) != 1 {
			t.Fatalf("%s came back as %d scenarios", s.Name, len(back))
		}
		want := s
		want.Origin, back[0].Origin = "", ""
		if !reflect.DeepEqual(back[0], want) {
			t.Errorf("%s came back changed:\n%s\ngot  %+v\nwant %+v", s.Name, text, back[0], want)
		}
	}
}

func TestLibraryIsTheCallers(t *testing.T) {
	a := mustLibrary(t)
	name := a[0].Name
	a[0].Name = "changed"
	if b := mustLibrary(t); b[0].Name != name {
		t.Error("changing what Library returned changed the library")
	}
}

func TestLibraryOrigins(t *testing.T) {
	for _, s := range mustLibrary(t) {
		if !strings.HasPrefix(s.Origin, "scenarios/library/"+s.Family()+".yaml:") {
			t.Errorf("%s: origin %s: a file holds the family that it is named after", s.Name, s.Origin)
		}
	}
}
