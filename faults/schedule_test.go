package faults_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/faults"
)

func sequence(t *testing.T, text string) []faults.Fault {
	t.Helper()
	fs, err := faults.ParseSequence(text)
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

func TestScheduleLayers(t *testing.T) {
	hang, reset := parse(t, "hang"), parse(t, "connection_reset on=reused")
	s := faults.Schedule{
		Sequence: sequence(t, `["503 times=2", "ok", "502 on=fresh", "429"]`),
		Storms:   []faults.Storm{{From: 10 * time.Second, To: 20 * time.Second, Fault: reset}, {From: 15 * time.Second, To: 20 * time.Second, Fault: hang}},
		Draw:     &faults.Draw{P: 1, Faults: sequence(t, `["500"]`)},
	}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		attempt int
		at      int
		reused  bool
		want    string
	}{
		{1, 0, false, "503"}, {2, 12, true, "503"}, {3, 0, false, "500"}, {3, 10, true, "connection_reset on=reused"},
		{3, 10, false, "500"}, {3, 15, false, "hang"}, {3, 19, true, "connection_reset on=reused"}, {3, 20, true, "500"},
		{4, 0, false, "502 on=fresh"}, {4, 0, true, "500"}, {5, 0, false, "429"}, {6, 0, false, "500"}, {99, 16, false, "hang"},
	} {
		got := s.For(faults.Point{Attempt: tc.attempt, At: time.Duration(tc.at) * time.Second, Reused: tc.reused})
		if got.String() != tc.want {
			t.Errorf("%+v: %s", tc, got)
		}
	}
	if f := (faults.Schedule{}).For(faults.Point{Attempt: 1}); !f.IsOK() {
		t.Errorf("an empty schedule says %s", f)
	}
	s = faults.Schedule{Sequence: sequence(t, `["ok", "503 times=forever"]`)}
	if f := s.For(faults.Point{Attempt: 1 << 40}); f.Status != 503 {
		t.Errorf("forever ends: %s", f)
	}
}

// TestScheduleAtADial: a fault of a connection strikes where one is made and nowhere else; whatever else is
// planned for the attempt is left for when its request arrives.
func TestScheduleAtADial(t *testing.T) {
	s := faults.Schedule{
		Sequence: sequence(t, `["connect_refused", "503", "ok", "502 on=reused", "dns_temporary on=fresh"]`),
		Storms:   []faults.Storm{{From: 10 * time.Second, To: 20 * time.Second, Fault: parse(t, "accept_hang")}},
		Draw:     &faults.Draw{P: 1, Faults: sequence(t, `["dns_not_found"]`)},
	}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		attempt, at   int
		dial, request string // the request comes on a fresh connection if the dial was ok, else on a reused one
	}{
		{1, 0, "connect_refused", "ok"}, {1, 10, "connect_refused", "ok"},
		{2, 0, "ok", "503"}, {2, 10, "ok", "503"},
		{3, 0, "dns_not_found", "ok"}, {3, 10, "accept_hang", "ok"},
		{4, 0, "dns_not_found", "502 on=reused"}, {4, 19, "accept_hang", "502 on=reused"},
		{5, 0, "dns_temporary on=fresh", "ok"}, {6, 20, "dns_not_found", "ok"},
	} {
		p := faults.Point{Attempt: tc.attempt, At: time.Duration(tc.at) * time.Second, Dial: true}
		if got := s.For(p); got.String() != tc.dial {
			t.Errorf("%+v: at the dial %s", tc, got)
		}
		p.Dial, p.Reused = false, tc.dial != "ok"
		if got := s.For(p); got.String() != tc.request {
			t.Errorf("%+v: at the request %s", tc, got)
		}
	}
}

func TestPlanned(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                                   "[] false",
		`["503 times=2", "ok", "hang"]`:        `["503", "503", "ok", "hang"] false`,
		`["ok", "hang times=forever"]`:         `["ok", "hang"] true`,
		`["429 times=2 retry-after=\"soon\""]`: `["429 retry-after=\"soon\"", "429 retry-after=\"soon\""] false`,
	} {
		fs, endless := faults.Schedule{Sequence: sequence(t, text)}.Planned()
		if got := fmt.Sprint(faults.FormatSequence(fs), " ", endless); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	many, endless := faults.Schedule{Sequence: []faults.Fault{{Name: "hang", Times: math.MaxInt}}}.Planned()
	if len(many) != 10_000 || endless {
		t.Errorf("%d planned, endless %v", len(many), endless)
	}
}

func TestDraw(t *testing.T) {
	fs := sequence(t, `["503", "hang", "connection_reset"]`)
	count := func(p float64) map[string]int {
		n := map[string]int{}
		s := faults.Schedule{Draw: &faults.Draw{P: p, Faults: fs}}
		for call := range 2000 {
			for attempt := range 5 {
				n[s.For(faults.Point{Seed: 7, Scenario: "s", Route: "/r", Call: fmt.Sprint("c", call), Attempt: attempt + 1}).String()]++
			}
		}
		return n
	}
	if n := count(0); n["ok"] != 10_000 {
		t.Errorf("P=0: %v", n)
	}
	if n := count(1); n["ok"] != 0 {
		t.Errorf("P=1: %v", n)
	}
	// Five standard deviations of a binomial of 10,000 at 0.1 and at 0.7: 150 and 229.
	n := count(0.3)
	for word, want := range map[string]int{"ok": 7000, "503": 1000, "hang": 1000, "connection_reset": 1000} {
		if math.Abs(float64(n[word]-want)) > 230 {
			t.Errorf("P=0.3: %v", n)
		}
	}
}

// TestDrawIsStable pins decisions: a seed printed yesterday, or on another machine, replays the same run.
func TestDrawIsStable(t *testing.T) {
	s := faults.Schedule{Draw: &faults.Draw{P: 0.5, Faults: sequence(t, `["503", "hang", "connection_reset"]`)}}
	var got []string
	for _, seed := range []uint64{0, 1, math.MaxUint64} {
		for attempt := range 6 {
			got = append(got, s.For(faults.Point{Seed: seed, Scenario: "draw/some", Route: "/charges/{call}", Call: "c17", Attempt: attempt + 1}).String())
		}
	}
	const want = "connection_reset ok hang ok ok hang ok 503 ok ok ok ok ok ok 503 ok ok ok"
	if g := strings.Join(got, " "); g != want {
		t.Errorf("got  %s\nwant %s", g, want)
	}
	// The texts are told apart by their lengths, not only by their bytes.
	a, b := faults.Point{Scenario: "ab", Route: "c", Attempt: 1}, faults.Point{Scenario: "a", Route: "bc", Attempt: 1}
	same := 0
	for seed := range uint64(200) {
		a.Seed, b.Seed = seed, seed
		if s.For(a).String() == s.For(b).String() {
			same++
		}
	}
	if same == 200 {
		t.Error("two different points always draw the same")
	}
}

func TestScheduleValidate(t *testing.T) {
	hang, storm := faults.Fault{Name: "hang"}, func(from, to int, f faults.Fault) faults.Schedule {
		return faults.Schedule{Storms: []faults.Storm{{From: time.Duration(from), To: time.Duration(to), Fault: f}}}
	}
	draw := func(p float64, fs ...faults.Fault) faults.Schedule {
		return faults.Schedule{Draw: &faults.Draw{P: p, Faults: fs}}
	}
	for i, s := range []faults.Schedule{
		{Sequence: []faults.Fault{{Name: "hung"}}},
		{Sequence: []faults.Fault{{Name: "hang", Times: faults.Forever}, {}}},
		storm(-1, 5, hang), storm(5, 5, hang), storm(0, 5, faults.Fault{}), storm(0, 5, faults.Fault{Name: "hang", Times: 2}),
		storm(0, 5, faults.Fault{Name: "latency"}),
		draw(-0.1, hang), draw(1.1, hang), draw(math.NaN(), hang), draw(0.5), draw(0.5, faults.Fault{Name: "hang", Times: faults.Forever}),
	} {
		if err := s.Validate(); err == nil {
			t.Errorf("%d: %+v is valid", i, s)
		} else if !strings.Contains(err.Error(), "1") && s.Draw == nil {
			t.Errorf("%v does not say which one", err)
		}
	}
	for _, s := range []faults.Schedule{{}, storm(0, 5, hang), draw(0, hang), draw(1, hang, faults.Fault{})} {
		if err := s.Validate(); err != nil {
			t.Error(err)
		}
	}
}
