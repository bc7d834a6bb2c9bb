package world

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/nettest"
)

func TestConnMemory(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		n := Memory()
		l, err := n.Listen()
		if err != nil {
			return nil, nil, nil, err
		}
		c1, err = n.DialContext(context.Background(), "tcp", l.Addr().String())
		if err != nil {
			return nil, nil, nil, err
		}
		c2, err = l.Accept()
		return c1, c2, func() { _ = c1.Close(); _ = c2.Close(); _ = n.Close() }, err
	})
}

func TestTenThousandLeaveNoGoroutine(t *testing.T) {
	for _, kind := range []Kind{Virtual, Loopback} {
		n := networkOf(kind)
		l, err := n.Listen()
		if err != nil {
			t.Fatal(err)
		}
		before := runtime.NumGoroutine()
		for i := range 10_000 {
			c, err := n.DialContext(t.Context(), "tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			s, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			_ = s.SetDeadline(time.Now().Add(time.Hour))
			if i%2 == 0 {
				_, _ = c.Write([]byte("unread"))
			}
			_ = s.(Conn).SetLinger(0)
			_ = s.Close()
			_ = c.Close()
		}
		if n.Open() != 0 || n.Dialled() != 10_000 {
			t.Fatalf("%s: open %d, dialled %d", kind, n.Open(), n.Dialled())
		}
		if m, ok := n.fabric.(*memoryNet); ok && m.links.next != &m.links {
			t.Fatal("closed connections are still kept")
		}
		if tn, ok := n.fabric.(*tcpNet); ok && len(tn.accepted)+len(tn.dialled) != 0 {
			t.Fatal("closed connections are still kept")
		}
		_ = n.Close()
		for range 100 {
			if runtime.NumGoroutine() <= before {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if after := runtime.NumGoroutine(); after > before {
			t.Fatalf("%s: %d goroutines before, %d after", kind, before, after)
		}
	}
}

// What a failed dial says must be what net.Dialer says.
func TestDialErrors(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	for _, tc := range []struct {
		name, network, addr string
		ctx                 context.Context
		is                  []error
		timeout             bool
	}{
		{"refused", "tcp", "127.0.0.1:1", t.Context(), []error{syscall.ECONNREFUSED}, false},
		{"refused elsewhere", "tcp", "127.9.9.9:1", t.Context(), []error{syscall.ECONNREFUSED}, false},
		{"cancelled", "tcp", "127.0.0.1:1", ended, []error{context.Canceled}, false},
		{"deadline", "tcp", "127.0.0.1:1", late, []error{context.DeadlineExceeded}, true},
		{"network", "carrier-pigeon", "127.0.0.1:1", t.Context(), nil, false},
		{"no port", "tcp", "127.0.0.1", t.Context(), nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, want := TCP().DialContext(tc.ctx, tc.network, tc.addr)
			_, got := Memory().DialContext(tc.ctx, tc.network, tc.addr)
			if got == nil || want == nil || got.Error() != want.Error() {
				t.Fatalf("got %v, want %v", got, want)
			}
			for _, err := range []error{got, want} {
				for _, is := range tc.is {
					if !errors.Is(err, is) {
						t.Errorf("%v is not %v", err, is)
					}
				}
				var ne net.Error
				if !errors.As(err, &ne) || ne.Timeout() != tc.timeout {
					t.Errorf("%v: Timeout is not %v", err, tc.timeout)
				}
				var oe *net.OpError
				if !errors.As(err, &oe) || oe.Op != "dial" || oe.Source != nil {
					t.Errorf("%#v", err)
				}
			}
			if tc.is == nil {
				return
			}
			var g, w *net.OpError
			_, _ = errors.As(got, &g), errors.As(want, &w)
			if g.Addr.String() != w.Addr.String() || g.Net != w.Net {
				t.Errorf("%#v, want %#v", g, w)
			}
		})
	}
	var dns *net.DNSError
	if _, err := Memory().DialContext(t.Context(), "tcp", "example.com:80"); !errors.As(err, &dns) || !dns.IsNotFound {
		t.Errorf("unknown host: %v", err)
	}
	if _, err := Memory().DialContext(t.Context(), "tcp", "192.0.2.1:80"); !errors.Is(err, syscall.ENETUNREACH) {
		t.Errorf("other network: %v", err)
	}
}

func TestBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := Memory()
		n.fabric.(*memoryNet).backlog = 2
		l, _ := n.Listen()
		dial := func(ctx context.Context) (net.Conn, error) {
			return n.DialContext(ctx, "tcp", l.Addr().String())
		}
		first, err := dial(t.Context())
		if err != nil {
			t.Fatal("a dial must not wait for Accept:", err)
		}
		if _, err := first.Write([]byte("early")); err != nil {
			t.Fatal("nor must a write:", err)
		}
		second, _ := dial(t.Context())

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err = dial(ctx)
		var ne net.Error
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &ne) || !ne.Timeout() || time.Since(start) != time.Second {
			t.Fatalf("full backlog: %v after %v", err, time.Since(start))
		}

		third := make(chan error)
		go func() { _, err := dial(t.Context()); third <- err }()
		synctest.Wait()
		s, err := l.Accept()
		if err != nil || <-third != nil {
			t.Fatal("a place in the backlog was not handed on", err)
		}
		buf := make([]byte, 8)
		if k, _ := s.Read(buf); string(buf[:k]) != "early" {
			t.Fatalf("read %q", buf[:k])
		}

		fourth := make(chan error)
		go func() { _, err := dial(t.Context()); fourth <- err }()
		synctest.Wait()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-fourth; !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("waiting dial after close: %v", err)
		}
		if _, err := second.Read(buf); !errors.Is(err, syscall.ECONNRESET) {
			t.Fatalf("queued connection after close: %v", err)
		}
		if _, err := first.Write([]byte("x")); err != nil {
			t.Fatal("an accepted connection must live on:", err)
		}
		if _, err := dial(t.Context()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("dial after close: %v", err)
		}
		if n.Open() != 3 || n.Dialled() != 3 {
			t.Fatalf("open %d dialled %d", n.Open(), n.Dialled())
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// Listener and network behave alike when they are closed.
func TestClose(t *testing.T) {
	for _, kind := range []Kind{Virtual, Loopback} {
		t.Run(string(kind), func(t *testing.T) {
			n := networkOf(kind)
			if n.Kind() != kind {
				t.Fatal(n.Kind())
			}
			l, _ := n.Listen()
			other, _ := n.Listen()
			accepted := make(chan error, 1)
			go func() { _, err := other.Accept(); accepted <- err }()
			time.Sleep(time.Millisecond)
			_ = other.Close()
			if err := <-accepted; !errors.Is(err, net.ErrClosed) || err.Error() != "accept tcp "+other.Addr().String()+": use of closed network connection" {
				t.Fatal(err)
			}
			if err := other.Close(); !errors.Is(err, net.ErrClosed) || err.Error() != "close tcp "+other.Addr().String()+": use of closed network connection" {
				t.Fatal(err)
			}

			dial := func() net.Conn {
				c, err := n.DialContext(t.Context(), "tcp", l.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			busy, queued := dial(), dial()
			server, _ := l.Accept()
			read := make(chan error, 1)
			go func() { _, err := busy.Read(make([]byte, 1)); read <- err }()
			time.Sleep(5 * time.Millisecond)
			if err := n.Close(); err != nil {
				t.Fatal(err)
			}
			if err := n.Close(); err != nil {
				t.Fatal(err)
			}
			if err := <-read; !errors.Is(err, syscall.ECONNRESET) {
				t.Error("blocked read:", err)
			}
			time.Sleep(5 * time.Millisecond)
			if _, err := queued.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Error("queued:", err)
			}
			if _, err := server.Write([]byte("x")); err == nil {
				t.Error("the server's end still works")
			}
			if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
				t.Error("accept:", err)
			}
			if _, err := n.DialContext(t.Context(), "tcp", l.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Error("dial:", err)
			}
			if _, err := n.Listen(); err == nil {
				t.Error("listen after close")
			}
			if n.Open() != 2 {
				t.Error("open before the client closes:", n.Open())
			}
			if err := errors.Join(busy.Close(), queued.Close()); err != nil || n.Open() != 0 {
				t.Error("client's close:", err, n.Open())
			}
		})
	}
}

// A dial to elsewhere has no end in the network, and is cut all the same.
func TestCloseCutsForeignConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	n := TCP()
	c, err := n.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, _ := l.Accept()
	_ = n.Close()
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Error(err)
	}
	if err := c.Close(); err != nil || n.Open() != 0 {
		t.Error(err, n.Open())
	}
}

// Ports are never used twice, and each is a valid one.
func TestAddressesAreUnique(t *testing.T) {
	n := Memory()
	l, _ := n.Listen()
	seen := make(map[string]bool)
	for range 2*ephemeralPorts + 10 {
		c, err := n.DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		s, _ := l.Accept()
		a := c.LocalAddr().(*net.TCPAddr)
		if seen[a.String()] || a.Port < ephemeralFirst || a.Port > 60999 || !a.IP.IsLoopback() {
			t.Fatal(a)
		}
		seen[a.String()] = true
		_, _ = c.Close(), s.Close()
	}
	if !seen["127.0.0.1:32768"] || !seen["127.0.0.2:32768"] || !seen["127.0.0.3:32777"] {
		t.Error("not the addresses that a replay would have")
	}
}

// Concurrent writes must not be interleaved, whatever the window does.
func TestConcurrentWritesStayWhole(t *testing.T) {
	for _, kind := range []Kind{Virtual, Loopback} {
		a, b := pairOn(t, networkOf(kind))
		const size = 200_000
		var wg sync.WaitGroup
		for _, letter := range []byte("xyz") {
			wg.Go(func() { _, _ = a.Write(bytes.Repeat([]byte{letter}, size)) })
		}
		go func() { wg.Wait(); _ = a.Close() }()
		all, err := io.ReadAll(b)
		if err != nil || len(all) != 3*size {
			t.Fatal(kind, len(all), err)
		}
		for i := 0; i < len(all); i += size {
			if len(bytes.Trim(all[i:i+size], string(all[i]))) != 0 {
				t.Fatal(kind, "writes were mixed")
			}
		}
	}
}

func TestIdleConnectionHoldsNoBuffer(t *testing.T) {
	a, b := pairOn(t, Memory())
	_, _ = a.Write(make([]byte, 50_000))
	if len(b.(*memConn).in.mem) == 0 {
		t.Fatal("no buffer with bytes in it")
	}
	_, _ = io.ReadFull(b, make([]byte, 50_000))
	if b.(*memConn).in.mem != nil {
		t.Fatal("an empty connection keeps its buffer")
	}
}
