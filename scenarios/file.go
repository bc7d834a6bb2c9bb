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
	Profile   keyProfile    `yaml:"profile,omitempty" doc:"by which book it keeps keys: plain (any text), ietf (the header draft) or stripe; plain unless said"`
	Expiry    duration      `yaml:"expiry,omitempty" doc:"how long it keeps a key, from its first request on; 24h unless said, and with plain for ever"`
	Protocol  protocol      `yaml:"protocol,omitempty" doc:"what the server speaks: http/1.1 unless said; h2 is HTTP/2 with prior knowledge"`
	TLS       bool          `yaml:"tls,omitempty" doc:"it speaks HTTPS, with a certificate that is made for the run and that clients are told to trust"`
	Token     tokenMode     `yaml:"token,omitempty" doc:"calls start with a token that has expired, and a new one is good (expired), refused as well (revoked) or not to be had (locked)"`
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
	KeyText      string   `yaml:"key_text,omitempty" doc:"the key itself, where the application has one of its own; may hold {call}; needs key"`
	Idempotent   bool     `yaml:"idempotent,omitempty" doc:"the application says that the call may happen twice, whatever its method"`
	Body         string   `yaml:"body,omitempty" doc:"of the request; POST, PUT and PATCH have a small JSON object unless said"`
	BodySize     size     `yaml:"body_size,omitempty" doc:"in place of body: a JSON object of so many bytes, like 64KiB or 4MiB"`
	Stream       bool     `yaml:"stream,omitempty" doc:"the application's body is a stream that can be read once, of unknown length"`
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
	Route string   `yaml:"route,omitempty" doc:"path of the calls that it meets, as in calls; all unless said"`
}

type draw struct {
	P      float64 `yaml:"p" doc:"chance of a fault, from 0 to 1; 0 is the same as no draw"`
	Faults []fault `yaml:"faults" doc:"one of these, each as likely as the other"`
	Route  string  `yaml:"route,omitempty" doc:"path of the calls that it meets, as in calls; all unless said"`
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
	tokenMode    string
	keyProfile   string
	protocol     string
	method       string
	trait        string
	count        int
	size         int
	status       int
	duration     time.Duration
	deadline     time.Duration
	header       http.Header
	fault        faults.Fault
	span         struct{ min, max *int }
	distribution string
	whole        int
	arrival      string
	overflow     string
	trigger      string
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
			From: time.Duration(st.From), To: time.Duration(st.To), Fault: faults.Fault(st.Fault), Route: st.Route})
	}
	if f.Draw != nil {
		s.Draw = &faults.Draw{P: f.Draw.P, Faults: plain(f.Draw.Faults), Route: f.Draw.Route}
	}
	for _, c := range f.Calls {
		g := Group{
			Name: c.Name, Method: string(c.Method), Path: c.Path, Resource: c.Resource, Key: c.Key,
			KeyUntrusted: c.KeyUntrusted, KeyText: c.KeyText, Idempotent: c.Idempotent, Body: c.Body,
			BodySize: int(c.BodySize), Stream: c.Stream, Header: http.Header(c.Header),
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
	s := Server{
		Keys: KeyMode(f.Keys), Profile: Profile(f.Profile), Expiry: time.Duration(f.Expiry),
		Protocol: string(f.Protocol), TLS: f.TLS, Token: TokenMode(f.Token)}
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
