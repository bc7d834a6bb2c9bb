package faults

import (
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/retrychaos/retrychaos/internal/nearest"
)

// An Entry is one wire effect of the catalogue: all that the parser, the linter, the documentation and the
// server know of it. An entry lives in a file of its own; Catalogue lists them.
type Entry struct {
	Name      string   `json:"name"`
	Doc       string   `json:"doc"`       // one line: what happens on the wire
	Category  Category `json:"category"`  // what kind of failure it is to a client; see Fault.Category
	Phases    []Phase  `json:"phases"`    // where it can strike; the first is the default
	Protocols []string `json:"protocols"` // HTTP1, HTTP2
	Params    []Param  `json:"params,omitempty"`
	Sees      string   `json:"sees"`  // what a Go client gets, with the error that errors.Is finds
	Where     string   `json:"where"` // where it gets it: one of the Where constants
	Example   string   `json:"example"`
	Level     Level    `json:"level,omitempty"` // at which stage it strikes
	TLS       bool     `json:"tls,omitempty"`   // only where the server speaks TLS
	// BeforeBody: it strikes before the server has read the request's body; see Exchange.Receive.
	BeforeBody bool `json:"before_body,omitempty"`

	// dial is the effect of an entry of LevelConnection, in place of deliver; see Dialer.
	dial func(d *dialling) (net.Conn, error)
	// deliver does the wire effect and nothing else; Apply does the commit around it.
	deliver func(d *delivery) error
	// run replaces deliver where the effect is inseparable from the commit (latency).
	run func(d *delivery) error
	// check refuses combinations of parameters that are valid one by one. It returns what the complaint
	// is about ("phase", or a parameter's name) and the complaint, or two empty strings.
	check func(f Fault) (about, msg string)
	// category and blocks answer for entries where it depends on the parameters.
	category func(f Fault) Category
	blocks   func(f Fault) bool
	// beforeBody answers BeforeBody for entries where it depends on the parameters.
	beforeBody func(f Fault) bool
	// keepAck: over HTTP/2 the fault itself decides about the acknowledgement of the client's SETTINGS.
	keepAck bool
	// byHTTP answers whether net/http can send this without giving up its connection; nil is never.
	byHTTP func(f Fault) bool
	// noLate: late= has no meaning, because the effect itself says when the commit comes.
	noLate bool
	// all is what allParams returns, made once: it is asked for at every attempt.
	all []Param
}

// Where a client meets a fault.
const (
	WhereDo       = "Do"        // the round trip fails
	WhereBodyRead = "Body.Read" // the head is good, reading the body fails
	WhereDecoding = "decoding"  // the body is whole and cannot be understood
	WhereNowhere  = "nowhere"   // there is no failure
)

// The protocols of an entry, by their ALPN names (RFC 7301 §6).
const (
	HTTP1 = "http/1.1"
	HTTP2 = "h2"
)

// Level is the stage of an exchange at which a fault strikes.
type Level string

const (
	// LevelRequest strikes an attempt whose request has reached the server; see Apply.
	LevelRequest Level = ""
	// LevelConnection strikes while the connection for an attempt is made, so that no request of it ever
	// reaches the server; see Dialer. An attempt on a connection that exists already cannot meet it.
	LevelConnection Level = "connection"
)

// Catalogue returns every entry: no failure first, then by how far the exchange gets before it breaks. The
// slice is the caller's own.
func Catalogue() []Entry {
	return []Entry{
		latency(),
		dnsNotFound(),
		dnsTemporary(),
		connectRefused(),
		acceptHang(),
		closeAtAccept(),
		tlsHandshakeFailure(),
		tlsVersionRefused(),
		tlsHandshakeHang(),
		tlsCloseInHandshake(),
		tlsBadCertificate(),
		slowRead(),
		partialRequest(),
		earlyResponse(),
		expectContinueIgnored(),
		expectContinue417(),
		expectContinueError(),
		hang(),
		emptyResponse(),
		connectionReset(),
		truncatedHead(),
		garbageResponse(),
		badStatusLine(),
		headerTooLarge(),
		twoContentLengths(),
		interim(),
		truncatedBody(),
		stallBody(),
		brokenStream(),
		missingFinalChunk(),
		malformedChunk(),
		contentLengthShort(),
		contentLengthLong(),
		dribble(),
		bandwidth(),
		slowClose(),
		gzipTruncated(),
		gzipCorrupted(),
		status(),
		rateLimit(),
		redirect(),
		malformedJSON(),
		h2GoAway(),
		h2RSTStream(),
		h2SettingsNeverAcked(),
		h2FlowControlStall(),
		h2ConnectionClosed(),
	}
}

// entries is the catalogue as the hot path reads it; nothing writes to it.
var entries = sync.OnceValue(func() []Entry {
	list := Catalogue()
	for i := range list {
		list[i].all = list[i].allParams()
	}
	return list
})

var byName = sync.OnceValue(func() map[string]*Entry {
	list := entries()
	m := make(map[string]*Entry, len(list))
	for i := range list {
		m[list[i].Name] = &list[i]
	}
	return m
})

// Lookup returns the entry with that name. "ok" is no entry: it is the absence of a fault.
func Lookup(name string) (Entry, bool) {
	e := find(name)
	if e == nil {
		return Entry{}, false
	}
	return *e, true
}

// find is Lookup without a copy, for what is asked at every attempt.
func find(name string) *Entry { return byName()[name] }

// at reports whether the entry, if it is one, strikes at that stage.
func (e *Entry) at(l Level) bool { return e != nil && e.Level == l }

// Names returns the names of the catalogue, in its order.
func Names() []string {
	list := entries()
	out := make([]string, len(list), len(list)+1)
	for i := range list {
		out[i] = list[i].Name
	}
	return out
}

// Nearest returns the fault word ("ok" included) that word is most likely a slip for, or "" where none is
// near.
func Nearest(word string) string { return nearest.Word(word, append(Names(), OK)) }

// param returns the entry's parameter of that name, the common ones included.
func (e *Entry) param(name string) (Param, bool) {
	for _, p := range e.allParams() {
		if p.Name == name {
			return p, true
		}
	}
	return Param{}, false
}

// allParams returns the entry's own parameters and the common ones that it takes, in the order of the
// canonical text. The slice is not to be written to.
func (e *Entry) allParams() []Param {
	if e.all != nil {
		return e.all
	}
	if e.Name == OK {
		return []Param{timesParam()}
	}
	out := append(slices.Clone(e.Params), onParam(), timesParam())
	if !e.noLate && slices.Contains(e.Phases, CommitLate) {
		out = append(out, lateParam())
	}
	return out
}

// Combinations returns the entry in every phase, with every end, every variant and every other word that its
// parameters have, as valid faults. The self-tests prove each of them on the wire.
func (e Entry) Combinations() []Fault {
	var needed, all []string
	words := []string{""}
	for _, p := range e.Params {
		switch {
		case p.axis || p.Name == "end" || p.Name == "variant":
			var longer []string
			for _, w := range words {
				for _, v := range p.Values {
					longer = append(longer, w+" "+p.Name+"="+v)
				}
			}
			words = longer
		case p.Required && p.sample != "":
			needed = append(needed, p.Name+"="+p.sample)
			fallthrough
		case p.sample != "":
			all = append(all, p.Name+"="+p.sample)
		}
	}
	var out []Fault
	for _, phase := range e.Phases {
		for _, w := range words {
			// An end may need a parameter that another end refuses.
			for _, params := range [][]string{needed, all} {
				f, err := Parse(e.Name + "@" + string(phase) + w + " " + strings.Join(params, " "))
				if err == nil {
					out = append(out, f)
					break
				}
			}
		}
	}
	return out
}
