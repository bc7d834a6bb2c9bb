package serve

import (
	"cmp"
	_ "embed"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/internal/nearest"
)

// OpenAPI is the description of the API, in YAML: OpenAPI 3.1.
//
//go:embed openapi.yaml
var OpenAPI []byte

// An endpoint is one method of one path.
type endpoint struct {
	method, path string
	do           func(w http.ResponseWriter, r *http.Request) error
}

func (h *Handler) endpoints() []endpoint {
	return []endpoint{
		{"GET", "/healthz", h.health},
		{"GET", "/openapi.yaml", h.description},
		{"GET", "/scenarios", h.scenarios},
		{"GET", "/runs", h.listRuns},
		{"POST", "/runs", h.createRun},
		{"GET", "/runs/{id}", h.withRun(h.showRun)},
		{"DELETE", "/runs/{id}", h.deleteRun},
		{"GET", "/runs/{id}/history", h.withRun(h.showHistory)},
		{"POST", "/runs/{id}/outcomes", h.withRun(h.takeOutcomes)},
		{"GET", "/runs/{id}/verdict", h.withRun(h.showVerdict)},
		{"POST", "/runs/{id}/end", h.withRun(h.endRun)},
	}
}

func (h *Handler) mux() http.Handler {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	for _, e := range h.endpoints() {
		methods[e.path] = append(methods[e.path], e.method)
		mux.HandleFunc(e.method+" "+e.path, func(w http.ResponseWriter, r *http.Request) {
			if err := e.do(w, r); err != nil {
				refuse(w, err)
			}
		})
	}
	for path, list := range methods {
		if slices.Contains(list, http.MethodGet) {
			list = append(list, http.MethodHead)
		}
		allow := strings.Join(list, ", ")
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", allow)
			refuse(w, noMethod.because("%s %s: there is %s", clip(r.Method), clip(r.URL.Path), allow))
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		var paths []string
		for path := range methods {
			paths = append(paths, path)
		}
		slices.Sort(paths)
		refuse(w, notFound.because("there is no %s%s; /openapi.yaml describes what there is", clip(r.URL.Path), nearest.Hint(r.URL.Path, paths)))
	})
	return mux
}

// refuse answers with a problem.
func refuse(w http.ResponseWriter, err error) {
	var p *problem
	if !errors.As(err, &p) {
		p = internal.because("%v", err)
	}
	p.write(w)
}

// guard lets only those requests through that are meant for this server.
func (h *Handler) guard(next http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	origin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refuse(w, crossOrigin.because("the request comes from %q", clip(cmp.Or(r.Header.Get("Origin"), "a browser"))))
	}))
	checked := origin.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name := hostOf(r); !h.allowed(name) {
			refuse(w, foreignHost.because("Host is %q, and this server is reached as localhost or by its address; --allow-host lets another name in", clip(name)))
			return
		}
		checked.ServeHTTP(w, r)
	})
}

// hostOf is the host that a request is for, without its port.
func hostOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(r.Host, "["), "]")
	}
	return host
}

// allowed reports whether a request may name that host: one that resolves by no name server, or that is allowed.
func (h *Handler) allowed(host string) bool {
	same := func(name string) bool { return strings.EqualFold(name, host) }
	if same("localhost") || slices.ContainsFunc(h.cfg.AllowHosts, same) {
		return true
	}
	ip := net.ParseIP(host)
	if own := net.ParseIP(h.cfg.Host); own != nil && own.IsLoopback() {
		return ip != nil && ip.IsLoopback()
	}
	return ip != nil
}

func (h *Handler) withRun(do func(w http.ResponseWriter, req *http.Request, r *run) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, req *http.Request) error {
		r := h.find(req.PathValue("id"))
		if r == nil {
			return noRun(req)
		}
		return do(w, req, r)
	}
}

func noRun(req *http.Request) *problem {
	return notFound.because("there is no run %q: it was deleted, its time was over, or it never was", clip(req.PathValue("id")))
}

func (h *Handler) health(w http.ResponseWriter, _ *http.Request) error {
	h.mu.Lock()
	runs := len(h.runs)
	h.mu.Unlock()
	send(w, http.StatusOK, struct {
		Status  string `json:"status"`
		Version string `json:"version"`
		Runs    int    `json:"runs"`
		MaxRuns int    `json:"max_runs"`
	}{"ok", h.cfg.Version, runs, h.cfg.MaxRuns})
	return nil
}

func (h *Handler) description(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(OpenAPI)
	return nil
}

func (h *Handler) scenarios(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	list, err := h.list(q["match"], q.Get("servable"))
	if err != nil {
		return err
	}
	send(w, http.StatusOK, struct {
		Scenarios []scenarioInfo `json:"scenarios"`
	}{list})
	return nil
}

func (h *Handler) listRuns(w http.ResponseWriter, _ *http.Request) error {
	list := []runInfo{}
	for _, r := range h.all() {
		list = append(list, r.info(false))
	}
	send(w, http.StatusOK, struct {
		Runs []runInfo `json:"runs"`
	}{list})
	return nil
}

func (h *Handler) createRun(w http.ResponseWriter, req *http.Request) error {
	o, err := readOrder(w, req)
	if err != nil {
		return err
	}
	if p := h.fit(o.scenario); p != nil {
		return p
	}
	switch after, err := h.reserve(); {
	case errors.Is(err, errFull):
		p := tooManyRuns.because("there are %d runs, which is --max-runs: delete those that are over; the next is deleted for its time in %v at the latest", h.cfg.MaxRuns, after)
		p.after = max(1, int(after.Seconds()))
		return p
	case err != nil:
		return closing.because("no run can be made any more")
	}
	r, err := h.open(o, hostOf(req))
	if err != nil {
		h.release()
		return err
	}
	if err := h.add(r); err != nil {
		r.end()
		h.release()
		return closing.because("no run can be made any more")
	}
	w.Header().Set("Location", "/runs/"+r.id)
	send(w, http.StatusCreated, r.info(true))
	return nil
}

func (h *Handler) showRun(w http.ResponseWriter, _ *http.Request, r *run) error {
	send(w, http.StatusOK, r.info(true))
	return nil
}

func (h *Handler) deleteRun(w http.ResponseWriter, req *http.Request) error {
	r := h.take(req.PathValue("id"))
	if r == nil {
		return noRun(req)
	}
	r.drop()
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (h *Handler) showHistory(w http.ResponseWriter, _ *http.Request, r *run) error {
	history, _ := r.complete()
	send(w, http.StatusOK, history)
	return nil
}

func (h *Handler) takeOutcomes(w http.ResponseWriter, req *http.Request, r *run) error {
	missing, err := r.report(w, req)
	if err != nil {
		return err
	}
	send(w, http.StatusOK, struct {
		Missing []string `json:"missing"`
	}{missing})
	return nil
}

var levels = []string{"must", "should", "may"}

func (h *Handler) showVerdict(w http.ResponseWriter, req *http.Request, r *run) error {
	level := cmp.Or(req.URL.Query().Get("level"), "should")
	if !slices.Contains(levels, strings.ToLower(level)) {
		return badRequest.because("level is %q: it is one of %s%s", clip(level), strings.Join(levels, ", "), nearest.Hint(level, levels))
	}
	send(w, http.StatusOK, r.judge(check.Level(strings.ToUpper(level))))
	return nil
}

func (h *Handler) endRun(w http.ResponseWriter, _ *http.Request, r *run) error {
	r.end()
	send(w, http.StatusOK, r.info(false))
	return nil
}
