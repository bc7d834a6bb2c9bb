package retry

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// awsVectors is testdata/aws-standard-retry.json, which names its sources.
type awsVectors struct {
	Classification struct {
		ThrottlingCodes []string `json:"throttling_codes"`
	}
	Cases          []awsCase
	BackoffVectors []struct {
		Rules          string
		BaseS          float64 `json:"base_s"`
		JitterDraw     float64 `json:"jitter_draw"`
		CapS           float64 `json:"cap_s"`
		FailedAttempts int     `json:"failed_attempts"`
		WantWaitS      float64 `json:"want_wait_s"`
	} `json:"backoff_vectors"`
	ServerHintVectors []struct {
		HeaderMS      string  `json:"header_ms"`
		ComputedWaitS float64 `json:"computed_wait_s"`
		WantWaitS     float64 `json:"want_wait_s"`
	} `json:"server_hint_vectors"`
}

type awsCase struct {
	ID, Title, Rules string
	Config           struct {
		MaxAttempts  int     `json:"max_attempts"`
		QuotaStart   float64 `json:"quota_start"`
		JitterDraw   float64 `json:"jitter_draw"`
		BackoffCapS  float64 `json:"backoff_cap_s"`
		BackoffBaseS float64 `json:"backoff_base_s"`
		LongPoll     bool    `json:"long_poll"`
	}
	Steps          []awsStep
	Callers        [][]awsStep
	WantFinalQuota float64 `json:"want_final_quota"`
	Bulk           *struct {
		Operations    int
		Replies       []int  `json:"each_operation_replies"`
		Attempts      int    `json:"each_operation_attempts"`
		ThenReplies   []int  `json:"then_operation_replies"`
		ThenAttempts  int    `json:"then_attempts"`
		ThenStopQuota string `json:"then_want"`
	}
	Ledger []struct {
		Event  string
		Amount float64
		Left   float64
	}
}

type awsStep struct {
	ReplyStatus    int               `json:"reply_status"`
	ReplyErrorCode string            `json:"reply_error_code"`
	ReplyHeaders   map[string]string `json:"reply_headers"`
	Modelled       bool              `json:"reply_error_modelled"`
	Retryable      *bool             `json:"reply_error_retryable"`
	TransportError string            `json:"transport_error"`
	Want           string
	WantWaitS      *float64 `json:"want_wait_s"`
	WantQuotaLeft  *float64 `json:"want_quota_left"`
}

// unsupportedAWS lists the cases that the package does not do, and why.
var unsupportedAWS = map[string]string{
	"aws-2.1/long-polling-backoff-after-transient-error-when-token-bucket-empty":  "a refused retry comes back at once: there is no sleep for long polls before it",
	"aws-2.1/long-polling-backoff-after-throttling-error-when-token-bucket-empty": "a refused retry comes back at once: there is no sleep for long polls before it",
}

func loadAWS(t *testing.T) awsVectors {
	t.Helper()
	raw, err := os.ReadFile("testdata/aws-standard-retry.json")
	if err != nil {
		t.Fatal(err)
	}
	var v awsVectors
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// policy returns the preset with what the case configures, and the rules 2.0
// where it is about those.
func (c *awsCase) policy() Policy {
	p := AWSStandardPreset()
	if c.Rules == "aws-2.0" {
		p.BaseDelay, p.ThrottledDelay = time.Second, time.Second
		p.WaitHeader = ""
		p.Budget = Budget{Cost: 5, TimeoutCost: 10, PerSuccess: 1, RefundLast: true}
	}
	p.Budget.Capacity = max(c.Config.QuotaStart, p.Budget.Cost)
	p.MaxAttempts = c.Config.MaxAttempts
	p.MaxDelay = seconds(c.Config.BackoffCapS)
	p.ThrottledDelay = min(p.ThrottledDelay, p.MaxDelay)
	if c.Config.BackoffBaseS > 0 {
		p.BaseDelay = seconds(c.Config.BackoffBaseS)
	}
	return p
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }

// A draw is a rand.Source that gives the same share of every width.
type draw float64

func (d draw) Uint64() uint64 {
	if d >= 1 {
		return math.MaxUint64
	}
	return uint64(float64(d) * (1 << 63) * 2)
}

// awsReplies answers by the steps, one after the other.
type awsReplies struct {
	mu    sync.Mutex
	steps []awsStep
	next  int
}

func (r *awsReplies) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == len(r.steps) {
		return nil, fmt.Errorf("request %d, and only %d replies", r.next+1, len(r.steps))
	}
	s := r.steps[r.next]
	r.next++
	if s.TransportError == "timeout" {
		return nil, context.DeadlineExceeded
	}
	h := http.Header{}
	for k, v := range s.ReplyHeaders {
		h.Set(k, v)
	}
	if s.ReplyErrorCode != "" {
		h.Set("X-Amzn-ErrorType", s.ReplyErrorCode)
	}
	if s.Modelled || s.Retryable != nil && !*s.Retryable {
		h.Set("X-Test-Not-Retryable", "1")
	}
	return &http.Response{StatusCode: s.ReplyStatus, Header: h, Body: io.NopCloser(strings.NewReader("")), ProtoMajor: 1, ProtoMinor: 1}, nil
}

// classifier does what an AWS client would do with WithClassifier: it finds
// throttling by the error code, and obeys what the service's model says.
func (v *awsVectors) classifier(_ int, h http.Header, err error, d Decision) Decision {
	code, _, _ := strings.Cut(h.Get("X-Amzn-ErrorType"), ":")
	switch {
	case err != nil:
	case h.Get("X-Test-Not-Retryable") != "":
		return Decision{Category: CategoryStatus, Outcome: Final, Reason: code + " is modelled as not retryable"}
	case slices.Contains(v.Classification.ThrottlingCodes, code):
		return Decision{Category: CategoryStatus, Outcome: NotProcessed, Reason: code, Throttled: true}
	}
	return d
}

// An awsRun is a client under one case.
type awsRun struct {
	*testing.T
	c        awsCase
	bucket   *Bucket
	client   *Client
	replies  *awsReplies
	attempts []Attempt
	left     []float64 // in the bucket, after each attempt
}

func (v *awsVectors) run(t *testing.T, c awsCase, bucket *Bucket, steps []awsStep) *awsRun {
	r := &awsRun{T: t, c: c, bucket: bucket, replies: &awsReplies{steps: steps}}
	var err error
	r.client, err = NewClient(c.policy(), WithTransport(r.replies), WithBucket(bucket), WithClassifier(v.classifier), WithRand(draw(c.Config.JitterDraw)),
		WithHook(func(_ context.Context, a Attempt) {
			r.attempts = append(r.attempts, a)
			r.left = append(r.left, bucket.Tokens())
		}))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// call makes one operation and returns how it ended, or nil for success. AWS
// operations are POSTs; that they may be repeated is for the caller to say.
func (r *awsRun) call() *Error {
	req, err := http.NewRequestWithContext(Idempotent(r.Context()), "POST", "http://service.example/", strings.NewReader("{}"))
	if err != nil {
		r.Fatal(err)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return err.(*Error)
	}
	resp.Body.Close()
	return Explain(resp)
}

// all makes operations until the steps are used up, and holds each step
// against what is wanted.
func (r *awsRun) all() {
	steps := r.replies.steps
	for r.replies.next < len(steps) {
		before := r.replies.next
		end := r.call()
		last := steps[r.replies.next-1]
		ended := "success"
		switch {
		case end == nil:
		case is[*BudgetError](end.Stop):
			ended = "stop_quota"
		case end.Reason == "no attempt left":
			ended = "stop_attempts"
		default:
			ended = "stop_not_retryable"
		}
		if ended != last.Want {
			r.Errorf("step %d: %s, want %s: %v", r.replies.next, ended, last.Want, end)
		}
		for i, s := range steps[before:r.replies.next] {
			a, left := r.attempts[before+i], r.left[before+i]
			if a.Retrying != (s.Want == "retry") {
				r.Errorf("step %d: retried %v, want %s", before+i+1, a.Retrying, s.Want)
			}
			if s.WantWaitS != nil && a.Wait != seconds(*s.WantWaitS) {
				r.Errorf("step %d: waited %v, want %v", before+i+1, a.Wait, seconds(*s.WantWaitS))
			}
			if s.WantQuotaLeft != nil && r.c.Callers == nil && left != *s.WantQuotaLeft {
				r.Errorf("step %d: %v left of the quota, want %v", before+i+1, left, *s.WantQuotaLeft)
			}
		}
		if r.replies.next == before {
			r.Fatal("no request")
		}
	}
}

func repeated(statuses []int) (steps []awsStep) {
	for _, s := range statuses {
		steps = append(steps, awsStep{ReplyStatus: s})
	}
	return steps
}

func TestAWSCases(t *testing.T) {
	v := loadAWS(t)
	ran := 0
	for _, c := range v.Cases {
		if why := unsupportedAWS[c.ID]; why != "" {
			t.Logf("not supported: %s: %s", c.ID, why)
			continue
		}
		ran++
		t.Run(c.ID, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bucket, err := NewBucket(c.policy().Budget)
				if err != nil {
					t.Fatal(err)
				}
				for bucket.Tokens() > c.Config.QuotaStart { // a quota that starts empty
					if _, refusal := bucket.take(Decision{}, nil); refusal != nil {
						t.Fatal(refusal)
					}
				}
				switch {
				case c.Bulk != nil:
					for i := range c.Bulk.Operations {
						r := v.run(t, c, bucket, repeated(c.Bulk.Replies))
						if r.call(); len(r.attempts) != c.Bulk.Attempts {
							t.Fatalf("operation %d: %d attempts", i+1, len(r.attempts))
						}
					}
					r := v.run(t, c, bucket, repeated(c.Bulk.ThenReplies))
					if end := r.call(); len(r.attempts) != c.Bulk.ThenAttempts || !is[*BudgetError](end) || c.Bulk.ThenStopQuota != "stop_quota" {
						t.Errorf("then %d attempts, %v", len(r.attempts), end)
					}
				case c.Callers != nil:
					var wg sync.WaitGroup
					for _, steps := range c.Callers {
						wg.Go(v.run(t, c, bucket, steps).all)
					}
					wg.Wait()
					if got := bucket.Tokens(); got != c.WantFinalQuota {
						t.Errorf("%v left of the quota, want %v", got, c.WantFinalQuota)
					}
				case c.Ledger != nil:
					for _, event := range c.Ledger {
						var replies []int
						switch event.Event {
						case "spend":
							replies = []int{500, 404}
						case "first_attempt_success":
							replies = []int{200}
						case "final_failure":
							replies = []int{404}
						default:
							t.Fatalf("unknown event %q", event.Event)
						}
						v.run(t, c, bucket, repeated(replies)).call()
						if got := bucket.Tokens(); got != event.Left {
							t.Errorf("%s: %v left, want %v", event.Event, got, event.Left)
						}
					}
				case c.Steps != nil:
					v.run(t, c, bucket, c.Steps).all()
				default:
					t.Fatal("the case says nothing")
				}
			})
		})
	}
	if ran+len(unsupportedAWS) != len(v.Cases) || ran < 30 {
		t.Errorf("%d cases ran and %d are not supported, of %d", ran, len(unsupportedAWS), len(v.Cases))
	}
}

func TestAWSBackoff(t *testing.T) {
	for _, v := range loadAWS(t).BackoffVectors {
		p := AWSStandardPreset()
		p.BaseDelay, p.ThrottledDelay, p.MaxDelay = seconds(v.BaseS), seconds(v.BaseS), seconds(v.CapS)
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		b := backoff{policy: &p, retry: v.FailedAttempts - 1}
		got, want := b.next(0, false, sourceRandom(draw(v.JitterDraw))), seconds(v.WantWaitS)
		// Where AWS draws from 0, FullJitter draws from 1 ms.
		if got < want || got > want+leastDelay || v.JitterDraw == 1 && got != want {
			t.Errorf("%+v: %v", v, got)
		}
	}
}

func TestAWSServerHint(t *testing.T) {
	p := AWSStandardPreset()
	for _, v := range loadAWS(t).ServerHintVectors {
		h := http.Header{}
		h.Set("x-amz-retry-after", v.HeaderMS)
		if got := p.hinted(seconds(v.ComputedWaitS), h); got != seconds(v.WantWaitS) {
			t.Errorf("%q after %v s: %v, want %v s", v.HeaderMS, v.ComputedWaitS, got, v.WantWaitS)
		}
	}
	if got := p.hinted(time.Second, http.Header{"X-Amz-Retry-After": {"9223372036854775807"}}); got != 6*time.Second {
		t.Errorf("an enormous hint: %v", got)
	}
}
