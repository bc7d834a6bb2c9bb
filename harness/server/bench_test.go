package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/harness/server"
	"github.com/retrychaos/retrychaos/harness/world"
	"github.com/retrychaos/retrychaos/scenarios"
)

// exchanges is how many calls a round of the comparison makes over one connection that is kept.
const exchanges = 300

// leastRounds are made on a busy machine too, so that some of each find it free.
const leastRounds = 100

// BenchmarkServerOverhead compares the fake server without faults to a bare net/http server that reads the
// same requests and sends the same answers, in the same world, over one connection that is kept. The rounds
// of the two take turns at going first and the fastest of each counts, so that what else the machine does hits
// neither. Garbage is collected before each round, so that neither pays for what the other has left behind. It
// reports the throughput of the fake server as a part of the bare one's (of-bare) and the time of an exchange.
func BenchmarkServerOverhead(b *testing.B) {
	for _, kind := range []world.Kind{world.Virtual, world.Loopback} {
		for _, method := range []string{"GET", "PUT"} {
			b.Run(string(kind)+"/"+method, func(b *testing.B) {
				fake, bare, rounds := time.Hour, time.Hour, 0
				both := func() {
					for i := range 2 {
						if (rounds+i)%2 == 0 {
							fake = min(fake, round(b, kind, method, fakeServer))
						} else {
							bare = min(bare, round(b, kind, method, bareServer))
						}
					}
					rounds++
				}
				for b.Loop() {
					both()
				}
				for rounds < leastRounds {
					both()
				}
				b.ReportMetric(bare.Seconds()/fake.Seconds(), "of-bare")
				b.ReportMetric(float64(fake.Nanoseconds()/exchanges), "ns/exchange")
				b.ReportMetric(0, "ns/op") // says nothing here
			})
		}
	}
}

// round serves exchanges calls and returns how long they took.
func round(b *testing.B, kind world.Kind, method string, start func(*testing.B, net.Listener, string) (stop func())) time.Duration {
	n := world.TCP()
	if kind == world.Virtual {
		n = world.Memory() // the network; the clock stays real, or there were nothing to measure
	}
	defer n.Close()
	l, err := n.Listen()
	if err != nil {
		b.Fatal(err)
	}
	stop := start(b, l, method)
	defer stop()
	c, err := n.DialContext(b.Context(), "tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	r := bufio.NewReader(c)
	runtime.GC()
	began := time.Now()
	for i := range exchanges {
		if err := exchange(c, r, method, i); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(began)
}

const payload = `{"amount":100,"currency":"eur"}`

func body(method string) string {
	if method == "GET" {
		return ""
	}
	return payload
}

// exchange is a client that costs next to nothing, so that the servers are what is compared.
func exchange(c net.Conn, r *bufio.Reader, method string, i int) error {
	content := body(method)
	_, err := fmt.Fprintf(c, "%s /charges/c%d HTTP/1.1\r\nHost: server\r\nAccept: application/json\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		method, i, len(content), content)
	if err != nil {
		return err
	}
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

func fakeServer(b *testing.B, l net.Listener, method string) func() {
	s := server.New(server.Config{Scenario: "bench", Seed: 1, Start: time.Now(), Keys: scenarios.Honour})
	// As in a scenario, the calls of a group have their header and their body in common.
	header := http.Header{"Accept": {"application/json"}, "Content-Type": {"application/json"}}
	var sent []byte
	var hash string
	if content := body(method); content != "" {
		sent = []byte(content)
		hash = server.Hash(sent)
	}
	regs := make([]server.Registration, exchanges)
	for i := range regs {
		id := "c" + strconv.Itoa(i)
		regs[i] = server.Registration{
			Call:   &history.Call{ID: id, Method: method, Path: "/charges/" + id, Resource: "/charges/" + id, BodyHash: hash},
			Route:  "/charges/{call}",
			Header: header,
			Body:   sent,
		}
	}
	s.Register(regs...)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	return func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
		if err := <-served; err != nil {
			b.Error(err)
		}
		var h history.History
		s.Record(&h)
		attempts := h.Calls[exchanges-1].Attempts
		if len(attempts) != 1 || len(h.Findings) > 0 {
			b.Fatalf("%d attempts of the last call, findings %v", len(attempts), h.Findings)
		}
		if a := attempts[0]; a.Status != http.StatusOK || !a.Delivered || a.Ended <= a.At || a.BodyLen != len(body(method)) ||
			a.BodyHash != h.Calls[exchanges-1].BodyHash || (a.Effect > 0) != (method != "GET") {
			b.Errorf("the journal has lost something: %+v", a)
		}
	}
}

func bareServer(b *testing.B, l net.Listener, _ string) func() {
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			b.Error(err)
		}
		reply := []byte(`{"call":"` + r.URL.Path[len("/charges/"):] + `","ok":true,"effect":1234}` + "\n")
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(reply)))
		_, _ = w.Write(reply) // the client is there until the end
	})}
	go func() { _ = s.Serve(l) }()
	return func() { _ = s.Close() }
}
