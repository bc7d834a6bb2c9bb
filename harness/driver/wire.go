package driver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/internal/nearest"
)

// Protocol is the version of the protocol that this package speaks.
const Protocol = "retrychaos.driver/v1"

// MaxLine bounds a line in either direction, in bytes, without its end.
const MaxLine = 16 << 20

// Hello is the first line of a driver: who it is, and what it says of its policy.
type Hello struct {
	Protocol string   `json:"protocol"`
	Client   string   `json:"client"`            // the library or program under test
	Version  string   `json:"version,omitempty"` // of the client
	Policy   string   `json:"policy,omitempty"`  // the effective policy, for people
	Declared Declared `json:"declared,omitzero"`
	// Cancels: the client has a way to end a call that is under way, and {"cancel": id} uses it.
	Cancels bool `json:"cancels,omitempty"`
	// TLS: the client trusts the certificate authority that a call names.
	TLS bool `json:"tls,omitempty"`
}

// Declared is history.Declared on the wire, with milliseconds.
type Declared struct {
	MaxAttempts     int            `json:"max_attempts,omitempty"`
	Jitter          history.Jitter `json:"jitter,omitempty"`
	JitterWidthMS   float64        `json:"jitter_width_ms,omitempty"`
	JitterRatio     float64        `json:"jitter_ratio,omitempty"`
	BaseDelayMS     float64        `json:"base_delay_ms,omitempty"`
	Multiplier      float64        `json:"multiplier,omitempty"`
	MaxDelayMS      float64        `json:"max_delay_ms,omitempty"`
	MaxRetryAfterMS float64        `json:"max_retry_after_ms,omitempty"`
	CapsRetryAfter  bool           `json:"caps_retry_after,omitempty"`
	CanBeTold       bool           `json:"can_be_told,omitempty"`
	Process         bool           `json:"process,omitempty"`
}

// maxDeclaredMS is a year: more is a mistake, and would not fit into a time.Duration for ever.
const maxDeclaredMS = 366 * 24 * 3600 * 1000

var jitters = []string{string(history.JitterNone), string(history.JitterFull), string(history.JitterEqual),
	string(history.JitterDecorrelated), string(history.JitterAdditive), string(history.JitterProportional)}

// History returns d as checks read it. Clients behind a driver are always remote.
func (d Declared) History() history.Declared {
	ms := func(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }
	return history.Declared{
		MaxAttempts: d.MaxAttempts, Jitter: d.Jitter, JitterWidth: ms(d.JitterWidthMS), JitterRatio: d.JitterRatio,
		BaseDelay: ms(d.BaseDelayMS), Multiplier: d.Multiplier, MaxDelay: ms(d.MaxDelayMS), MaxRetryAfter: ms(d.MaxRetryAfterMS),
		CapsRetryAfter: d.CapsRetryAfter, CanBeTold: d.CanBeTold, Process: d.Process, Remote: true,
	}
}

func (d Declared) validate() error {
	for name, n := range map[string]float64{"max_attempts": float64(d.MaxAttempts), "jitter_width_ms": d.JitterWidthMS,
		"jitter_ratio": d.JitterRatio, "base_delay_ms": d.BaseDelayMS, "multiplier": d.Multiplier, "max_delay_ms": d.MaxDelayMS,
		"max_retry_after_ms": d.MaxRetryAfterMS} {
		if !(n >= 0 && n <= maxDeclaredMS) {
			return fmt.Errorf("declared.%s is %v: it is to be from 0 to %d", name, n, int64(maxDeclaredMS))
		}
	}
	if d.Jitter != "" && !slices.Contains(jitters, string(d.Jitter)) {
		return fmt.Errorf("declared.jitter is %q%s; there are %s", d.Jitter, nearest.Hint(string(d.Jitter), jitters), strings.Join(jitters, ", "))
	}
	return nil
}

// A Request is one call, to the driver.
type Request struct {
	ID       int64             `json:"id"`       // of this call; never used again by one process
	Instance int64             `json:"instance"` // calls of one instance share a client object, others do not
	Call     string            `json:"call"`     // the scenario's name for it
	Method   string            `json:"method"`
	URL      string            `json:"url"`
	Headers  map[string]string `json:"headers"`
	// Body is the body as text; BodyBase64 where it is none; neither: there is no body.
	Body       *string `json:"body,omitempty"`
	BodyBase64 []byte  `json:"body_base64,omitempty"`
	// Key is what the application wants to be sent as Idempotency-Key; KeyHonoured: it knows the server to honour it.
	Key         string `json:"key,omitempty"`
	KeyHonoured bool   `json:"key_honoured,omitempty"`
	// Idempotent: the application says that the call may happen twice, whatever its method.
	Idempotent bool `json:"idempotent,omitempty"`
	// DeadlineMS is how long the whole call may take; 0: for ever.
	DeadlineMS int64 `json:"deadline_ms,omitempty"`
	// CACert is a PEM file with the certificate authority to trust; "" where the server speaks no TLS.
	CACert string `json:"cacert,omitempty"`
}

// An Outcome is what a client told the application, from the driver.
type Outcome struct {
	ID     int64  `json:"id"`
	OK     bool   `json:"ok"`
	Status int    `json:"status,omitempty"`
	Error  string `json:"error,omitempty"`
	// Kind is what an application can find out about the error: one of Kinds; "" for nothing.
	Kind     string `json:"kind,omitempty"`
	Attempts int    `json:"attempts,omitempty"` // the client's own count
	// Body is the reply that the application was given, for the harness to decode. A driver that does so
	// itself leaves it out, and says Decoding where that failed.
	Body     *string `json:"body,omitempty"`
	Decoding bool    `json:"decoding,omitempty"`
	NotSent  bool    `json:"not_sent,omitempty"`
}

// Kinds are the kinds of errors that a driver can tell apart.
var Kinds = []string{history.TraitCanceled, history.TraitDeadline, history.TraitTimeout, history.TraitReset, history.TraitRefused,
	history.TraitEOF, history.TraitUnexpectedEOF, history.TraitDNS, history.TraitTLS, history.TraitCertificate}

// other lines to the driver
type (
	cancelLine struct {
		Cancel int64 `json:"cancel"`
	}
	closeLine struct {
		Close int64 `json:"close"`
	}
	pingLine struct {
		Ping int64 `json:"ping"`
	}
)

// ParseHello reads the first line of a driver.
func ParseHello(line []byte) (Hello, error) {
	var probe struct {
		Protocol *string `json:"protocol"`
	}
	if err := object(line, &probe); err != nil {
		return Hello{}, err
	}
	if probe.Protocol == nil {
		return Hello{}, fmt.Errorf("it has no field protocol: the first line is to be {\"protocol\": %q, \"client\": …}", Protocol)
	}
	if *probe.Protocol != Protocol {
		return Hello{}, fmt.Errorf("it speaks %q, and this retrychaos speaks %q", *probe.Protocol, Protocol)
	}
	var h Hello
	if err := object(line, &h); err != nil {
		return Hello{}, err
	}
	if h.Client == "" {
		return Hello{}, errors.New("the field client is missing: the name of what is tested")
	}
	return h, h.Declared.validate()
}

// answer is any later line of a driver: one of the two is set.
type answer struct {
	outcome *Outcome
	pong    int64
}

func parseAnswer(line []byte) (answer, error) {
	var probe struct {
		ID   *int64 `json:"id"`
		OK   *bool  `json:"ok"`
		Pong *int64 `json:"pong"`
	}
	if err := object(line, &probe); err != nil {
		return answer{}, err
	}
	switch {
	case probe.ID != nil && probe.Pong != nil:
		return answer{}, errors.New("it has both id and pong: an outcome and a pong are two lines")
	case probe.Pong != nil:
		return answer{pong: *probe.Pong}, nil
	case probe.ID == nil:
		return answer{}, errors.New("it has neither id nor pong")
	case probe.OK == nil:
		return answer{}, errors.New("the outcome has no field ok")
	}
	o := new(Outcome)
	if err := object(line, o); err != nil {
		return answer{}, err
	}
	switch {
	case o.Status != 0 && (o.Status < 100 || o.Status > 999):
		return answer{}, fmt.Errorf("status %d is none: leave it out where there was no response", o.Status)
	case o.Attempts < 0:
		return answer{}, fmt.Errorf("attempts is %d", o.Attempts)
	case o.Kind != "" && !slices.Contains(Kinds, o.Kind):
		return answer{}, fmt.Errorf("kind is %q%s; there are %s", o.Kind, nearest.Hint(o.Kind, Kinds), strings.Join(Kinds, ", "))
	case o.OK && o.Error != "":
		return answer{}, errors.New("it says ok and has an error")
	case !o.OK && o.Error == "" && o.Status == 0:
		return answer{}, errors.New("it is not ok and has neither an error nor a status")
	}
	return answer{outcome: o}, nil
}

// object decodes one JSON object and nothing behind it.
func object(line []byte, into any) error {
	if trimmed := bytes.TrimLeft(line, " \t\r"); len(trimmed) == 0 || trimmed[0] != '{' {
		return errors.New("it is not a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(line))
	if err := d.Decode(into); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			return fmt.Errorf("the field %s is a %s, and is to be a %s", kind.Field, kind.Value, kind.Type)
		}
		return fmt.Errorf("it is not JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("there is something behind the JSON object")
	}
	return nil
}
