package harness

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/server"
)

// fleet makes the client instances of a run and closes them.
type fleet struct {
	client  Client
	dial    *dialer
	rec     *recorder
	baseURL string
	seed    uint64
	finding func(kind, text string)
	warm    bool
	lean    bool
	tokens  bool

	headerTimeout time.Duration
	// protocol of the scenario's server, which the base transport speaks as well
	protocol string

	shared    Caller
	instances uint64
	callers   []Caller
	closers   []func()
	bases     []*http.Transport
}

func (f *fleet) assign(j *job) error {
	j.call.URL = f.baseURL + j.call.URL
	if j.group.Fleet {
		c, err := f.instance()
		j.caller = c
		return err
	}
	if f.shared == nil {
		c, err := f.instance()
		if err != nil {
			return err
		}
		f.shared = c
	}
	j.caller = f.shared
	return nil
}

// base returns a transport for one instance. A lean fleet keeps no idle connections, so that there is nothing in a
// transport that tells instances apart, and they share one: each attempt has a connection of its own in any case.
func (f *fleet) base() *http.Transport {
	if f.lean && len(f.bases) > 0 {
		return f.bases[0]
	}
	base := &http.Transport{
		DialContext:           f.dial.DialContext,
		TLSClientConfig:       f.dial.tls.Clone(),
		MaxIdleConns:          100,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		ResponseHeaderTimeout: f.headerTimeout,
	}
	if f.lean {
		base.MaxIdleConnsPerHost = -1
		base.ReadBufferSize, base.WriteBufferSize = leanBuffer, leanBuffer
	}
	if f.protocol == faults.HTTP2 {
		base.Protocols = new(http.Protocols)
		base.Protocols.SetUnencryptedHTTP2(true)
	}
	f.bases = append(f.bases, base)
	return base
}

func (f *fleet) instance() (Caller, error) {
	base := f.base()
	t := &tripper{base: base, rec: f.rec}
	f.instances++
	env := Env{
		Transport: t, DialContext: f.dial.DialContext, BaseURL: f.baseURL, Seed: mix(f.seed, f.instances),
		TLS: f.dial.tls.Clone(), Protocol: f.protocol, Finding: f.finding,
	}
	if f.dial.ca != nil {
		env.CA = f.dial.ca.PEM()
	}
	if f.tokens {
		env.Refresh = refresher(t, f.baseURL)
	}
	c, err := f.client.New(env)
	if err != nil {
		return nil, fmt.Errorf("making client %s: %w", f.client.Name, err)
	}
	f.callers = append(f.callers, c)
	f.closers = append(f.closers, func() {
		if closer, ok := c.(io.Closer); ok {
			_ = closer.Close()
		}
		base.CloseIdleConnections()
	})
	if f.warm {
		return c, f.warmUp(t)
	}
	return c, nil
}

// warmings is how many requests are made for a warm connection at most.
const warmings = 100

// warmUp leaves one idle connection in the transport's pool. One of HTTP/2 gets there on the goroutine that has dialled
// it, which can be after the end of the first request on it: it is there when a request has reused it.
func (f *fleet) warmUp(t *tripper) error {
	for range warmings {
		reused, err := f.warmOnce(t)
		if err != nil {
			return fmt.Errorf("warming a connection: %w", err)
		}
		if reused || f.protocol != faults.HTTP2 {
			return nil
		}
	}
	return fmt.Errorf("warming a connection: %d requests have reused none", warmings)
}

func (f *fleet) warmOnce(t *tripper) (reused bool, err error) {
	ctx := httptrace.WithClientTrace(context.WithValue(context.Background(), warmKey{}, true),
		&httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.baseURL+server.WarmPath, nil)
	if err != nil {
		return false, err
	}
	resp, err := (&http.Client{Transport: t}).Do(req)
	if err != nil {
		return false, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return reused, err
}

// lateness is how late the processes of the instances were at worst for their own work.
func (f *fleet) lateness() time.Duration {
	var worst time.Duration
	for _, c := range f.callers {
		if r, ok := c.(*remote); ok {
			worst = max(worst, r.instance.Lateness())
		}
	}
	return worst
}

func (f *fleet) close() {
	for _, c := range f.closers {
		c()
	}
}
