package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/retrychaos/retrychaos/scenarios"
)

// problemBase begins the type of every problem; the rest is a heading of the guide.
const problemBase = "https://github.com/retrychaos/retrychaos/blob/main/docs/serve.md#problem-"

// A kind of problem: the last word of its type, its status and its title.
type kind struct {
	name   string
	status int
	title  string
}

var (
	badRequest      = kind{"bad-request", http.StatusBadRequest, "The request cannot be understood"}
	foreignHost     = kind{"foreign-host", http.StatusMisdirectedRequest, "The request is for another host"}
	crossOrigin     = kind{"cross-origin", http.StatusForbidden, "The request comes from a web page of another origin"}
	notFound        = kind{"not-found", http.StatusNotFound, "There is nothing here"}
	noMethod        = kind{"method-not-allowed", http.StatusMethodNotAllowed, "The method is not for this path"}
	conflict        = kind{"conflict", http.StatusConflict, "Another outcome was reported already"}
	tooLarge        = kind{"too-large", http.StatusRequestEntityTooLarge, "The body is too large"}
	mediaType       = kind{"media-type", http.StatusUnsupportedMediaType, "The body is in no form that is known here"}
	invalidScenario = kind{"invalid-scenario", http.StatusUnprocessableEntity, "The scenario is not valid"}
	invalidRequest  = kind{"invalid-request", http.StatusUnprocessableEntity, "The request is not valid"}
	unservable      = kind{"unservable", http.StatusUnprocessableEntity, "The scenario needs more than a server"}
	tooManyRuns     = kind{"too-many-runs", http.StatusServiceUnavailable, "There are as many runs as there can be"}
	closing         = kind{"closing", http.StatusServiceUnavailable, "The server is being closed"}
	internal        = kind{"internal", http.StatusInternalServerError, "The server failed"}
)

// kinds lists them all, for the description and the guide.
func kinds() []kind {
	return []kind{badRequest, foreignHost, crossOrigin, notFound, noMethod, conflict, tooLarge, mediaType,
		invalidScenario, invalidRequest, unservable, tooManyRuns, closing, internal}
}

// A problem is an answer that says what is wrong (RFC 9457).
type problem struct {
	kind
	detail string
	errors []fault
	after  int // seconds after which it may be tried again
}

// A fault is one thing that is wrong with a body.
type fault struct {
	Line    int    `json:"line,omitempty"`   // from 1
	Column  int    `json:"column,omitempty"` // from 1, in characters
	Message string `json:"message"`
	Meant   string `json:"did_you_mean,omitempty"`
}

func (p *problem) Error() string { return p.title + ": " + p.detail }

func (k kind) because(format string, args ...any) *problem {
	return &problem{kind: k, detail: fmt.Sprintf(format, args...)}
}

// badScenario tells what the loader found wrong, by line and column of the body.
func badScenario(e *scenarios.LoadError) *problem {
	p := &problem{kind: invalidScenario}
	for _, one := range e.Problems {
		p.errors = append(p.errors, fault{one.Line, one.Col, one.Msg, one.Near})
	}
	p.detail = e.Problems[0].String()
	if n := len(e.Problems) + e.Omitted - 1; n > 0 {
		p.detail += fmt.Sprintf(" (and %d more)", n)
	}
	return p
}

func (p *problem) write(w http.ResponseWriter) {
	body := struct {
		Type   string  `json:"type"`
		Title  string  `json:"title"`
		Status int     `json:"status"`
		Detail string  `json:"detail"`
		Errors []fault `json:"errors,omitempty"`
	}{problemBase + p.name, p.title, p.status, p.detail, p.errors}
	w.Header().Set("Content-Type", "application/problem+json")
	if p.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.after))
	}
	send(w, p.status, body)
}

// send writes a JSON answer. Its only error is that of a client that has gone.
func send(w http.ResponseWriter, status int, body any) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	_ = enc.Encode(body)
}
