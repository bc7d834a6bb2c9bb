package serve

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness/check"
)

// lostAnswer is a POST whose first attempt commits and is reset.
const lostAnswer = `family: payments
scenarios:
  - name: lost-answer
    summary: The answer to a POST is lost.
    rule: effects.once
    source: RFC 9110 §9.2.2
    server: {keys: ignore}
    faults: [connection_reset@after_commit, ok]
`

// file is a request for a run of that scenario.
func file(t *testing.T, yaml string, more string) string {
	t.Helper()
	text, err := json.Marshal(yaml)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"scenario": %s%s}`, text, more)
}

func TestDescriptionHasTheRoutes(t *testing.T) {
	doc, _ := openAPI()
	var want, got []string
	for _, e := range New(Config{}).endpoints() {
		want = append(want, e.method+" "+e.path)
	}
	ids := map[string]bool{}
	for path, item := range doc["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			if method == "parameters" {
				continue
			}
			got = append(got, strings.ToUpper(method)+" "+path)
			id, _ := look(op, "operationId").(string)
			if id == "" || ids[id] {
				t.Errorf("%s %s: operationId %q", method, path, id)
			}
			ids[id] = true
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("described: %v\nthere are: %v", got, want)
	}
	if doc["openapi"] != "3.1.0" {
		t.Errorf("openapi: %v", doc["openapi"])
	}
	var refs func(v any)
	refs = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok && look(doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...) == nil {
				t.Errorf("%s leads nowhere", ref)
			}
			for _, x := range v {
				refs(x)
			}
		case []any:
			for _, x := range v {
				refs(x)
			}
		}
	}
	refs(doc)
}

// TestGuideTellsProblems: the type of each problem is a heading of the guide.
func TestGuideTellsProblems(t *testing.T) {
	guide, err := os.ReadFile("../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds() {
		if !strings.Contains(string(guide), fmt.Sprintf(`<a id="problem-%s"></a>`, k.name)) {
			t.Errorf("docs/serve.md has no problem-%s", k.name)
		}
	}
}

// TestRealClientsSideBySide: many runs at once, each with a client of its own.
func TestRealClientsSideBySide(t *testing.T) {
	a := newAPI(t, Config{MaxRuns: 8})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			r := a.run(fmt.Sprintf(`{"library": "duplicates/post-unkeyed-honour-empty-response", "seed": %d}`, i+1))
			for attempts, c := 0, r.Calls[0]; attempts < 3 && attempt(t, c) != 200; attempts++ {
			}
			a.report(r.ID, `[{"call": "c1", "ok": true}]`)
			if got := of(a.verdict(r.ID), "effects.once"); got.Status != check.Fail {
				t.Errorf("%s: %s", got.Status, got.Reason)
			}
			a.get("/runs")
			if got := a.send("DELETE", "/runs/"+r.ID, "", ""); got.status != http.StatusNoContent {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
	all.Wait()
}

func TestDelete(t *testing.T) {
	a := newAPI(t, Config{})
	r := a.run(`{"library": "recovery/one-hang"}`)
	base, err := url.Parse(r.BaseURL)
	if err != nil {
		t.Fatal(err)
	}
	hung := make(chan int)
	go func() { hung <- attempt(t, r.Calls[0]) }()
	for a.h.find(r.ID).info(false).Attempts == 0 {
		time.Sleep(time.Millisecond)
	}
	known := a.h.find(r.ID)
	gone := make(chan int, 8)
	for range cap(gone) {
		go func() { gone <- a.send("DELETE", "/runs/"+r.ID, "", "").status }()
	}
	count := map[int]int{}
	for range cap(gone) {
		count[<-gone]++
	}
	if count[http.StatusNoContent] != 1 || count[http.StatusNotFound] != cap(gone)-1 {
		t.Errorf("eight at once: %v", count)
	}
	if known.timer.Stop() {
		t.Error("its timer still ran")
	}
	if got := <-hung; got != 0 {
		t.Errorf("the attempt that hung was answered %d", got)
	}
	if c, err := net.Dial("tcp", base.Host); err == nil {
		c.Close()
		t.Error("its port still takes connections")
	}
	for _, path := range []string{"", "/history", "/verdict"} {
		if got := a.get("/runs/" + r.ID + path); got.status != http.StatusNotFound {
			t.Errorf("%s: %d", path, got.status)
		}
	}
}

func TestEndKeepsTheRecord(t *testing.T) {
	a := newAPI(t, Config{})
	r := a.run(file(t, lostAnswer, ""))
	attempt(t, r.Calls[0])
	for range 2 {
		var got runInfo
		a.send("POST", "/runs/"+r.ID+"/end", "", "").into(t, &got)
		if got.State != "ended" || got.Attempts != 1 || got.Effects != 1 {
			t.Errorf("%+v", got)
		}
	}
	if got := attempt(t, r.Calls[0]); got != 0 {
		t.Errorf("an attempt after the end is answered %d", got)
	}
	a.report(r.ID, `{"call": "c1", "ok": false, "traits": ["reset"]}`)
	if v := a.verdict(r.ID); v.Status != check.Pass || !v.Final {
		t.Errorf("%s: %s", v.Status, v.Reason)
	}
}

func TestTimeIsOver(t *testing.T) {
	a := newAPI(t, Config{TTL: 50 * time.Millisecond, MaxRuns: 1})
	r := a.run(`{"library": "recovery/one-hang"}`)
	base, err := url.Parse(r.BaseURL)
	if err != nil {
		t.Fatal(err)
	}
	for a.get("/runs/"+r.ID).status != http.StatusNotFound {
		time.Sleep(5 * time.Millisecond)
	}
	for { // its port is closed right after it is forgotten
		c, err := net.Dial("tcp", base.Host)
		if err != nil {
			break
		}
		c.Close()
	}
	for a.post("/runs", `{"library": "recovery/one-hang"}`).status != http.StatusCreated {
		time.Sleep(time.Millisecond)
	}
}

func TestTooManyRuns(t *testing.T) {
	a := newAPI(t, Config{MaxRuns: 2})
	first := a.run(`{"library": "recovery/one-hang"}`)
	a.run(`{"library": "recovery/one-hang"}`)
	got := a.post("/runs", `{"library": "recovery/one-hang"}`)
	if name, p := got.problem(t); got.status != http.StatusServiceUnavailable || name != "too-many-runs" || got.header.Get("Retry-After") != "900" {
		t.Errorf("%d %s %v", got.status, p.Detail, got.header)
	}
	a.send("DELETE", "/runs/"+first.ID, "", "")
	a.run(`{"library": "recovery/one-hang"}`)
	a.h.Close()
	if name, _ := a.post("/runs", `{"library": "recovery/one-hang"}`).problem(t); name != "closing" {
		t.Errorf("after Close: %s", name)
	}
}

// TestAllAtOnce: a run is asked, judged, told, ended and deleted while its calls are under way, by many at once.
func TestAllAtOnce(t *testing.T) {
	a := newAPI(t, Config{MaxRuns: 6, TTL: 300 * time.Millisecond})
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			got := a.post("/runs", `{"library": "bodies/keyed-post-503-fresh"}`)
			if got.status == http.StatusServiceUnavailable {
				return
			}
			var r runInfo
			got.into(t, &r)
			var one sync.WaitGroup
			for range 3 {
				one.Go(func() { attempt(t, r.Calls[0]) })
				one.Go(func() { a.get("/runs/" + r.ID + "/verdict") })
				one.Go(func() { a.get("/runs/" + r.ID + "/history") })
				one.Go(func() { a.get("/runs/" + r.ID) })
				one.Go(func() { a.post("/runs/"+r.ID+"/outcomes", `{"call": "c1", "ok": true}`) })
				one.Go(func() { a.get("/runs") })
			}
			switch i % 3 {
			case 0:
				one.Go(func() { a.send("POST", "/runs/"+r.ID+"/end", "", "") })
			case 1:
				one.Go(func() { a.send("DELETE", "/runs/"+r.ID, "", "") })
			}
			one.Wait()
		})
	}
	all.Wait()
}
