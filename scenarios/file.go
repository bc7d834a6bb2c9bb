package scenarios

import (
	"net/http"
	"time"

	"github.com/retrychaos/retrychaos/faults"
)

// The types of this file are the file form: what a YAML file looks like. The decoder, the JSON Schema and
// Format all read them, so that a field is named once. The tag `doc` is the field's line in the schema.

// fileDoc is a whole file: one family.
type fileDoc struct {
	Family    string         `yaml:"family" doc:"first part of every scenario's name: a word of lower-case letters, digits and '-'"`
	About     string         `yaml:"about,omitempty" doc:"what the family is about, for readers of the file"`
	Scenarios []fileScenario `yaml:"scenarios" doc:"the scenarios of the family"`
}

// fileScenario is one scenario, or with a matrix one for every combination.
type fileScenario struct {
	Name       string     `yaml:"name" doc:"second part of the name, unique in the family; with a matrix it holds every {axis}"`
	Matrix     fileMatrix `yaml:"matrix,omitempty" doc:"axes: each a list of words, or a mapping from word to value; {axis} stands for the word in name and for the value elsewhere"`
	Summary    string     `yaml:"summary" doc:"what happens and what a good client does, in one sentence"`
	Rule       ruleID     `yaml:"rule" doc:"id of the check that the scenario is about"`
	Source     string     `yaml:"source" doc:"RFC section, draft, paper or public thread that it is drawn from"`
	Labels     []string   `yaml:"labels,omitempty" doc:"words to filter by"`
	Worlds     []world    `yaml:"worlds,omitempty" doc:"where it can run; left out: everywhere"`
	Why        string     `yaml:"why,omitempty" doc:"why it cannot run elsewhere; needed with worlds"`
	Connection connState  `yaml:"connection,omitempty" doc:"reused: a connection has carried a request before the first call"`
	Server     fileServer `yaml:"server,omitempty" doc:"how the server behaves where no fault strikes"`
	Calls      []fileCall `yaml:"calls,omitempty" doc:"groups of calls; left out: one POST"`
	Faults     []fault    `yaml:"faults,omitempty" doc:"what the attempts of every call meet, in order; after the last the server answers well"`
	Storms     []storm    `yaml:"storms,omitempty" doc:"a fault for every attempt in a window of time, where the sequence has none"`
	Draw       *draw      `yaml:"draw,omitempty" doc:"a seeded chance of a fault, where neither sequence nor storm has one"`
	Expect     expect     `yaml:"expect,omitempty" doc:"what any good client shows, beyond the checks"`
	Settle     duration   `yaml:"settle,omitempty" doc:"how long the world goes on after the last call, to see attempts that come late"`
}

type fileServer struct {
	Keys      keyMode       `yaml:"keys,omitempty" doc:"what the server does with an Idempotency-Key; honour unless said"`
	Capacity  *fileCapacity `yaml:"capacity,omitempty" doc:"how fast it works; left out: it answers at once"`
	Incidents []incident    `yaml:"incidents,omitempty" doc:"what happens to a server that has a capacity"`
}

type fileCapacity struct {
	Workers      whole        `yaml:"workers" doc:"attempts that are worked on at once"`
	Service      duration     `yaml:"service" doc:"mean time that a worker is busy with one attempt"`
	Distribution distribution `yaml:"distribution,omitempty" doc:"of the service times; fixed unless said"`
	Queue        whole        `yaml:"queue,omitempty" doc:"attempts that can wait; none unless said"`
	Full         overflow     `yaml:"full,omitempty" doc:"what an attempt meets when the queue is full: 503 unless said; 429 has a computed Retry-After, refuse resets, drop is silent"`
	Abandon      bool         `yaml:"abandon,omitempty" doc:"an attempt whose client left while it waited is not begun"`
}

type incident struct {
	At     duration `yaml:"at,omitempty" doc:"from the start of the run"`
	For    duration `yaml:"for,omitempty" doc:"how long it lasts"`
	Do     trigger  `yaml:"do" doc:"stall: no work is done; slow: it takes factor times as long; refuse: attempts are reset; burst: count attempts of others; restart: all is lost, refused, and then slow until the cache is warm"`
	Factor float64  `yaml:"factor,omitempty" doc:"of slow and restart: how many times as long the work takes"`
	Count  whole    `yaml:"count,omitempty" doc:"of a burst: attempts; of a restart: attempts after which the cache is warm"`
}

// fileCall is one group of calls.
type fileCall struct {
	Name         string   `yaml:"name,omitempty" doc:"for after; calls, calls2 … unless said"`
	Method       method   `yaml:"method,omitempty" doc:"POST unless said"`
	Path         string   `yaml:"path,omitempty" doc:"must hold {call}; /charges/{call} unless said"`
	Resource     string   `yaml:"resource,omitempty" doc:"what the calls write, where several write the same thing"`
	Count        *count   `yaml:"count,omitempty" doc:"how many calls; 1 unless said"`
	Key          bool     `yaml:"key,omitempty" doc:"the application wants an idempotency key"`
	KeyUntrusted bool     `yaml:"key_untrusted,omitempty" doc:"the application does not know the server to honour keys, so that the key is no licence to repeat"`
	Body         string   `yaml:"body,omitempty" doc:"of the request; POST, PUT and PATCH have a small JSON object unless said"`
	Header       header   `yaml:"header,omitempty" doc:"further request header fields, each a text or a list of texts"`
	Deadline     deadline `yaml:"deadline,omitempty" doc:"from the call's start; 30s unless said; none for no deadline"`
	CancelAfter  duration `yaml:"cancel_after,omitempty" doc:"the application cancels so long after the call's start"`
	Start        duration `yaml:"start,omitempty" doc:"of the first call, from the start of the run or the end of the group in after"`
	Every        duration `yaml:"every,omitempty" doc:"between the starts of the group's calls"`
	Arrivals     arrival  `yaml:"arrivals,omitempty" doc:"even unless said; poisson: seeded, with every as the mean distance"`
	After        string   `yaml:"after,omitempty" doc:"name of a group: start when its calls are over"`
	Fleet        bool     `yaml:"fleet,omitempty" doc:"every call has a client instance, and connections, of its own"`
	SameInstant  bool     `yaml:"same_instant,omitempty" doc:"all calls start in the same nanosecond"`
	Faults       []fault  `yaml:"faults,omitempty" doc:"in place of the scenario's faults, for the calls of this group"`
}

type storm struct {
	From  duration `yaml:"from,omitempty" doc:"from the start of the run"`
	To    duration `yaml:"to" doc:"end of the window, exclusive"`
	Fault fault    `yaml:"fault" doc:"what every attempt in the window meets"`
}

type draw struct {
	P      float64 `yaml:"p" doc:"chance of a fault, more than 0 and at most 1"`
	Faults []fault `yaml:"faults" doc:"one of these, each as likely as the other"`
}

type expect struct {
	OK       *bool   `yaml:"ok,omitempty" doc:"the call succeeds"`
	Attempts span    `yaml:"attempts,omitempty" doc:"wire attempts per call: 2, 2..4, 2.. or ..4"`
	Effects  span    `yaml:"effects,omitempty" doc:"effects per call: 1, 0..1, 1.. or ..1"`
	Status   *status `yaml:"status,omitempty" doc:"status that the caller gets to see"`
	Error    trait   `yaml:"error,omitempty" doc:"trait that the error shows"`
}

// Scalars with a form of their own.
type (
	ruleID       string
	world        string
	connState    string
	keyMode      string
	distribution string
	method       string
	trait        string
	count        int
	whole        int
	arrival      string
	overflow     string
	trigger      string
	status       int
	duration     time.Duration
	deadline     time.Duration
	header       http.Header
	fault        faults.Fault
	span         struct{ min, max *int }
)

// An axis of a matrix is read by expand; the type is here for the schema.
type fileMatrix map[string]any

// scenario turns the file form into a Scenario, defaults not yet filled in.
func (f *fileScenario) scenario(family string) Scenario {
	s := Scenario{
		Name: family + "/" + f.Name, Summary: f.Summary, Rule: string(f.Rule), Source: f.Source,
		Labels: f.Labels, Why: f.Why, Server: f.Server.server(),
		Faults: plain(f.Faults), Connection: faults.ConnState(f.Connection), Settle: time.Duration(f.Settle),
		Expect: Expect{
			OK: f.Expect.OK, MinAttempts: f.Expect.Attempts.min, MaxAttempts: f.Expect.Attempts.max,
			MinEffects: f.Expect.Effects.min, MaxEffects: f.Expect.Effects.max,
			Status: (*int)(f.Expect.Status), Trait: string(f.Expect.Error),
		},
	}
	for _, w := range f.Worlds {
		s.Worlds = append(s.Worlds, World(w))
	}
	for _, st := range f.Storms {
		s.Storms = append(s.Storms, faults.Storm{
			From: time.Duration(st.From), To: time.Duration(st.To), Fault: faults.Fault(st.Fault)})
	}
	if f.Draw != nil {
		s.Draw = &faults.Draw{P: f.Draw.P, Faults: plain(f.Draw.Faults)}
	}
	for _, c := range f.Calls {
		g := Group{
			Name: c.Name, Method: string(c.Method), Path: c.Path, Resource: c.Resource, Key: c.Key,
			KeyUntrusted: c.KeyUntrusted, Body: c.Body, Header: http.Header(c.Header),
			Deadline: time.Duration(c.Deadline), CancelAfter: time.Duration(c.CancelAfter),
			Start: time.Duration(c.Start), Every: time.Duration(c.Every), Arrivals: Arrivals(c.Arrivals), After: c.After, Fleet: c.Fleet,
			SameInstant: c.SameInstant, Faults: plain(c.Faults),
		}
		if c.Count != nil {
			g.Count = int(*c.Count)
		}
		s.Calls = append(s.Calls, g)
	}
	return s
}

func (f *fileServer) server() Server {
	s := Server{Keys: KeyMode(f.Keys)}
	if c := f.Capacity; c != nil {
		s.Capacity = &Capacity{
			Workers: int(c.Workers), Service: time.Duration(c.Service), Distribution: Distribution(c.Distribution),
			Queue: int(c.Queue), Full: Overflow(c.Full), Abandon: c.Abandon,
		}
	}
	for _, i := range f.Incidents {
		s.Incidents = append(s.Incidents, Incident{
			At: time.Duration(i.At), For: time.Duration(i.For), Do: Trigger(i.Do), Factor: i.Factor, Count: int(i.Count)})
	}
	return s
}

func plain(list []fault) []faults.Fault {
	var out []faults.Fault
	for _, f := range list {
		out = append(out, faults.Fault(f))
	}
	return out
}
