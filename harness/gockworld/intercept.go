package gockworld

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/h2non/gock"
)

// ErrBusy is returned where a run in this world goes on already: gock is one per process.
var ErrBusy = errors.New("gockworld: another run is using gock: there is one per process, so make the specs Serial, or the tests not parallel")

// ErrForeign is returned where something else in the process is using gock.
var ErrForeign = errors.New("gockworld: gock is in use already (it intercepts, or has mocks): call gock.OffAll() when done with it")

// owner is held while a run goes on. It is global because what it guards is.
var owner sync.Mutex

// ours marks the requests of the client under test, so that those of others are left alone.
type ours struct{}

func mark(req *http.Request) *http.Request {
	return req.WithContext(context.WithValue(req.Context(), ours{}, true))
}

func marked(req *http.Request) bool { return req.Context().Value(ours{}) != nil }

// intercept makes gock pass requests to o on to the transport that it stands on, and answer marked requests to
// elsewhere with gock.ErrCannotMatch. Requests without the mark go to the transport below them in any case,
// which is not ours. undo must be called.
func intercept(o origin) (undo func(), err error) {
	if !owner.TryLock() {
		return nil, ErrBusy
	}
	if gock.Intercepting() || len(gock.GetAll()) > 0 {
		owner.Unlock()
		return nil, ErrForeign
	}
	// gock.Disable puts back what was http.DefaultTransport when gock was initialised, which need not be what
	// is there now; and while it intercepts it passes unmocked requests to that one too.
	standard, below := http.DefaultTransport, gock.DefaultTransport.Transport
	gock.DefaultTransport.Transport = standard

	gock.CleanUnmatchedRequest()
	gock.Observe(nil)
	gock.DisableNetworkingFilters()
	gock.NetworkingFilter(func(req *http.Request) bool { return !marked(req) })
	gock.EnableNetworking()

	// gock.New would register the mock before it is complete, with matchers that take host and path as regular
	// expressions without anchors: api.example.com would hold xapi-example.com.org too.
	exact := gock.NewEmptyMatcher()
	exact.Add(func(req *http.Request, _ *gock.Request) (bool, error) { return o.holds(req.URL), nil })
	req, res := gock.NewRequest(), gock.NewResponse()
	req.Persisted, res.UseNetwork = true, true
	mock := gock.NewMock(req, res)
	mock.SetMatcher(exact)
	gock.Register(mock)
	gock.Intercept()

	return func() {
		gock.OffAll()
		gock.DisableNetworking()
		gock.DisableNetworkingFilters()
		gock.Observe(nil)
		gock.DefaultTransport.Transport = below
		http.DefaultTransport = standard
		owner.Unlock()
	}, nil
}
