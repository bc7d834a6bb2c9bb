package world

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"syscall"
	"testing"
	"time"
)

// inWorld runs f in the world of the kind and fails on anything left behind.
func inWorld(t *testing.T, kind Kind, f func(n *Network)) {
	t.Helper()
	n := networkOf(kind)
	if kind == Loopback {
		f(n)
		_ = n.Close()
		return
	}
	rep := Bubble(t, plenty, func() {
		f(n)
		_ = n.Close()
	})
	if rep.Abandoned || rep.Panic != nil || rep.Goexit {
		t.Fatalf("%+v\n%s", rep.Panic, strings.Join(rep.Leftovers, "\n\n"))
	}
}

func TestHTTP(t *testing.T) {
	for _, kind := range []Kind{Virtual, Loopback} {
		t.Run(string(kind), func(t *testing.T) { inWorld(t, kind, func(n *Network) { exchangeHTTP(t, n) }) })
	}
}

func exchangeHTTP(t *testing.T, n *Network) {
	l, _ := n.Listen()
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	})
	mux.HandleFunc("/hang", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/hijack", func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		fmt.Fprint(rw, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
		_ = rw.Flush()
		_ = c.(Conn).SetLinger(0)
		_ = c.Close()
	})
	srv := &http.Server{Handler: mux, IdleTimeout: time.Hour, ReadTimeout: time.Hour}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	tr := &http.Transport{DialContext: n.DialContext}
	client := &http.Client{Transport: tr}
	url := "http://" + l.Addr().String()

	body := bytes.Repeat([]byte("0123456789"), 30_000)
	reused := 0
	for range 5 {
		ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
			if i.Reused {
				reused++
			}
		}})
		req, _ := http.NewRequestWithContext(ctx, "POST", url+"/echo", bytes.NewReader(body))
		resp, err := client.Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		got, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || !bytes.Equal(got, body) {
			t.Errorf("echo: %d bytes, %v", len(got), err)
		}
	}
	if reused != 4 || n.Dialled() != 1 {
		t.Errorf("keep-alive: %d reused, %d dialled", reused, n.Dialled())
	}

	resp, err := client.Get(url + "/hijack")
	if err != nil {
		t.Error(err)
		return
	}
	got, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if string(got) != "half" || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("hijack: %q, %v", got, err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "GET", url+"/hang", nil)
	if _, err := client.Do(req); !errors.Is(err, context.DeadlineExceeded) {
		t.Error("hang:", err)
	}
	tr.CloseIdleConnections()
	if err := srv.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	<-served
	if n.Open() != 0 {
		t.Error("open connections:", n.Open())
	}
	if _, err := client.Get(url); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Error("after shutdown:", err)
	}
}

func TestHTTP2(t *testing.T) {
	now := time.Now()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IPAddresses: []net.IP{localhost}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, _ := x509.ParseCertificate(der)
	roots := x509.NewCertPool()
	roots.AddCert(leaf)

	for _, kind := range []Kind{Virtual, Loopback} {
		t.Run(string(kind), func(t *testing.T) {
			inWorld(t, kind, func(n *Network) {
				l, _ := n.Listen()
				srv := &http.Server{
					Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						fmt.Fprint(w, r.Proto)
					}),
					TLSConfig: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
				}
				go func() { _ = srv.ServeTLS(l, "", "") }()
				tr := &http.Transport{
					DialContext: n.DialContext, ForceAttemptHTTP2: true,
					// The bubble's clock starts in the year 2000.
					TLSClientConfig: &tls.Config{RootCAs: roots, Time: func() time.Time { return now }},
				}
				for range 3 {
					resp, err := (&http.Client{Transport: tr}).Get("https://" + l.Addr().String())
					if err != nil {
						t.Error(err)
						return
					}
					got, _ := io.ReadAll(resp.Body)
					_ = resp.Body.Close()
					if string(got) != "HTTP/2.0" {
						t.Errorf("%q", got)
					}
				}
				if n.Dialled() != 1 {
					t.Error("dialled", n.Dialled())
				}
				tr.CloseIdleConnections()
				_ = srv.Close()
			})
		})
	}
}

// BenchmarkExchange is one keep-alive request over each network.
func BenchmarkExchange(b *testing.B) {
	for _, kind := range []Kind{Virtual, Loopback} {
		b.Run(string(kind), func(b *testing.B) {
			n := networkOf(kind)
			l, _ := n.Listen()
			srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ok") })}
			go func() { _ = srv.Serve(l) }()
			tr := &http.Transport{DialContext: n.DialContext}
			b.ReportAllocs()
			for b.Loop() {
				resp, err := (&http.Client{Transport: tr}).Get("http://" + l.Addr().String())
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			tr.CloseIdleConnections()
			_ = srv.Close()
		})
	}
}

// BenchmarkRaw is one line there and one back, without net/http.
func BenchmarkRaw(b *testing.B) {
	for _, kind := range []Kind{Virtual, Loopback} {
		b.Run(string(kind), func(b *testing.B) {
			client, server := pairOn(b, networkOf(kind))
			go func() {
				for r := bufio.NewReader(server); ; {
					line, err := r.ReadSlice('\n')
					if err != nil {
						return
					}
					_, _ = server.Write(line)
				}
			}()
			b.ReportAllocs()
			r, line := bufio.NewReader(client), []byte("hello\n")
			for b.Loop() {
				_, _ = client.Write(line)
				_, _ = r.ReadSlice('\n')
			}
		})
	}
}

// BenchmarkBubble is what a bubble costs by itself, and one with a leak.
func BenchmarkBubble(b *testing.B) {
	run := func(b *testing.B, f func()) {
		testing.RunTests(func(_, _ string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "b", F: func(t *testing.T) {
			b.ReportAllocs()
			for b.Loop() {
				Bubble(t, plenty, f)
			}
		}}})
	}
	b.Run("empty", func(b *testing.B) { run(b, func() {}) })
	b.Run("lingering", func(b *testing.B) { run(b, func() { go time.Sleep(time.Minute) }) })
}

// BenchmarkIdle shows what an idle connection holds.
func BenchmarkIdle(b *testing.B) {
	n := Memory()
	l, _ := n.Listen()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = n.DialContext(context.Background(), "tcp", l.Addr().String())
		_, _ = l.Accept()
	}
}
