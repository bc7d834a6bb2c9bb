package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	yaml "go.yaml.in/yaml/v4"
)

// TestMain fails if a goroutine of this package, or of the servers that it started, is left when all tests are over.
func TestMain(m *testing.M) {
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if left := leftovers(); code == 0 && left != "" {
		fmt.Fprintln(os.Stderr, "goroutines are left:\n"+left)
		code = 1
	}
	os.Exit(code)
}

// leftovers waits for the goroutines of the servers to end, and returns those that do not.
func leftovers() string {
	var left []string
	for wait := time.Millisecond; wait < 8*time.Second; wait *= 2 {
		buf := make([]byte, 4<<20)
		left = nil
		for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if (strings.Contains(g, "retrychaos/harness") || strings.Contains(g, "net/http.")) && !strings.Contains(g, "serve.leftovers") {
				left = append(left, g)
			}
		}
		if len(left) == 0 {
			return ""
		}
		time.Sleep(wait)
	}
	return strings.Join(left, "\n\n")
}

// api is a Handler behind a real server. Whatever it answers is held against the description.
type api struct {
	t      *testing.T
	h      *Handler
	srv    *httptest.Server
	client *http.Client
}

func newAPI(t *testing.T, cfg Config) *api {
	t.Helper()
	a := &api{t: t, h: New(cfg)}
	a.srv = httptest.NewServer(a.h)
	a.client = a.srv.Client()
	t.Cleanup(func() {
		a.srv.Close()
		a.h.Close()
		a.h.mu.Lock()
		defer a.h.mu.Unlock()
		if a.h.opened != 0 || len(a.h.runs) != 0 {
			t.Errorf("%d places are still taken, by %d runs", a.h.opened, len(a.h.runs))
		}
	})
	return a
}

// answer is what the API said.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		t.Fatalf("%v\n%s", err, a.body)
	}
}

// problem returns the name of the answer's problem and the answer as text.
func (a answer) problem(t *testing.T) (name string, p struct {
	Type, Title, Detail string
	Status              int
	Errors              []fault
}) {
	t.Helper()
	a.into(t, &p)
	if p.Status != a.status {
		t.Errorf("the problem has status %d, its answer %d", p.Status, a.status)
	}
	name, ok := strings.CutPrefix(p.Type, problemBase)
	if !ok {
		t.Errorf("type %q", p.Type)
	}
	return name, p
}

// send makes a request and holds the answer against the description.
func (a *api) send(method, path, media, body string) answer {
	a.t.Helper()
	req, err := http.NewRequest(method, a.srv.URL+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	if media != "" {
		req.Header.Set("Content-Type", media)
	}
	return a.do(req)
}

func (a *api) do(req *http.Request) answer {
	a.t.Helper()
	resp, err := a.client.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	got := answer{status: resp.StatusCode, header: resp.Header}
	if got.body, err = io.ReadAll(resp.Body); err != nil {
		a.t.Fatal(err)
	}
	if err := described(req.Method, req.URL.Path, got); err != nil {
		a.t.Errorf("%s %s: %d is not as described: %v\n%s", req.Method, req.URL.Path, got.status, err, got.body)
	}
	return got
}

func (a *api) get(path string) answer { a.t.Helper(); return a.send("GET", path, "", "") }

// post sends JSON.
func (a *api) post(path, body string) answer {
	a.t.Helper()
	return a.send("POST", path, "application/json", body)
}

// run makes a run, of which the request must be as described as well.
func (a *api) run(body string) runInfo {
	a.t.Helper()
	got := a.post("/runs", body)
	if got.status != http.StatusCreated {
		a.t.Fatalf("%d %s", got.status, got.body)
	}
	if err := validate("/paths/~1runs/post/requestBody/content/application~1json/schema", []byte(body)); err != nil {
		a.t.Errorf("the request is not as described: %v", err)
	}
	var r runInfo
	got.into(a.t, &r)
	return r
}

// report reports outcomes.
func (a *api) report(id, body string) {
	a.t.Helper()
	if got := a.post("/runs/"+id+"/outcomes", body); got.status != http.StatusOK {
		a.t.Fatalf("%d %s", got.status, got.body)
	}
	if err := validate("/paths/~1runs~1{id}~1outcomes/post/requestBody/content/application~1json/schema", []byte(body)); err != nil {
		a.t.Errorf("the request is not as described: %v", err)
	}
}

func (a *api) verdict(id string) verdict {
	a.t.Helper()
	var v verdict
	got := a.get("/runs/" + id + "/verdict")
	if got.status != http.StatusOK {
		a.t.Fatalf("%d %s", got.status, got.body)
	}
	got.into(a.t, &v)
	return v
}

// attempt makes one attempt of a call as a client without retries would, on a connection of its own. It returns 0
// where it breaks off.
func attempt(t *testing.T, c callInfo) int {
	t.Helper()
	body := ""
	if c.Body != nil {
		body = *c.Body
	}
	req, err := http.NewRequest(c.Method, c.URL, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range c.Headers {
		req.Header[k] = v
	}
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0
	}
	return resp.StatusCode
}

// The description, as data and as schemas.
var openAPI = sync.OnceValues(func() (map[string]any, *jsonschema.Compiler) {
	var doc map[string]any
	if err := yaml.Load(OpenAPI, &doc); err != nil {
		panic(err)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	data, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		panic(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("openapi.json", data); err != nil {
		panic(err)
	}
	return doc, c
})

var compiling sync.Mutex

// validate holds JSON against the schema at a pointer into the description.
func validate(pointer string, text []byte) error {
	_, c := openAPI()
	compiling.Lock()
	s, err := c.Compile("openapi.json#" + pointer)
	compiling.Unlock()
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

var escape = strings.NewReplacer("~", "~0", "/", "~1")

// described holds an answer against the description.
func described(method, path string, got answer) error {
	doc, _ := openAPI()
	template := ""
	for p := range doc["paths"].(map[string]any) {
		if regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(p), `\{id\}`, "[^/]+") + "$").MatchString(path) {
			template = p
		}
	}
	at := "/components/responses/Problem"
	if op, ok := look(doc, "paths", template, strings.ToLower(method)).(map[string]any); ok {
		key := fmt.Sprint(got.status)
		if look(op, "responses", key) == nil {
			if got.status < 400 {
				return fmt.Errorf("there is no answer %s in the description", key)
			}
			key = "default"
		}
		at = "/paths/" + escape.Replace(template) + "/" + strings.ToLower(method) + "/responses/" + key
		if ref, ok := look(op, "responses", key, "$ref").(string); ok {
			at = strings.TrimPrefix(ref, "#")
		}
	} else if got.status < 400 {
		return fmt.Errorf("this is not described")
	}
	steps := strings.Split(strings.TrimPrefix(at, "/"), "/")
	for i := range steps {
		steps[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(steps[i])
	}
	content, _ := look(doc, append(steps, "content")...).(map[string]any)
	if content == nil {
		if len(got.body) > 0 {
			return fmt.Errorf("there is a body")
		}
		return nil
	}
	media, _, _ := mime.ParseMediaType(got.header.Get("Content-Type"))
	if content[media] == nil {
		return fmt.Errorf("Content-Type is %q", media)
	}
	if !strings.HasSuffix(media, "json") {
		return nil
	}
	return validate(at+"/content/"+escape.Replace(media)+"/schema", got.body)
}

func look(v any, steps ...string) any {
	for _, s := range steps {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[s]
	}
	return v
}
