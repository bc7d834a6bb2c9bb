package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/scenarios"
)

func text(s string) faults.Reply { return faults.Reply{Body: []byte(s)} }

func id(k string) keyID { return keyID{key: k} }

// done takes a key and stores its outcome.
func done(s *keyStore, k string, now time.Duration) *stored {
	e, _ := s.take(id(k), "f", now)
	s.finish(e, text("reply"), now)
	return e
}

func kept(s *keyStore, keys ...string) string {
	var out []string
	for _, k := range keys {
		if s.keys[id(k)] != nil {
			out = append(out, k)
		}
	}
	return strings.Join(out, " ")
}

func TestStoreDropsTheOldestDone(t *testing.T) {
	s := newKeyStore(0, 3, 1<<20)
	work, _ := s.take(id("work"), "f", 0)
	done(s, "a", 1)
	done(s, "b", 2)
	if _, isNew := s.take(id("a"), "f", 3); isNew {
		t.Fatal("a is not known")
	}
	done(s, "c", 4)
	if got := kept(s, "work", "a", "b", "c"); got != "work b c" || s.dropped != 1 {
		t.Errorf("kept %q, dropped %d", got, s.dropped)
	}
	// Keys at work never make room, though the store grows over its bounds by them.
	for _, k := range []string{"w1", "w2", "w3"} {
		s.take(id(k), "f", 5)
	}
	if got := kept(s, "work", "b", "c", "w1", "w2", "w3"); got != "work w1 w2 w3" {
		t.Errorf("kept %q", got)
	}
	// And come back within them as they are done.
	s.finish(work, text("reply"), 6)
	if got := kept(s, "work", "w1", "w2", "w3"); got != "w1 w2 w3" {
		t.Errorf("kept %q", got)
	}
}

func TestStoreBoundsBytes(t *testing.T) {
	s := newKeyStore(0, 100, 30)
	for i := range 10 {
		done(s, fmt.Sprintf("key%d", i), time.Duration(i)) // 4 + 1 + 5 bytes each
	}
	if got := kept(s, "key6", "key7", "key8", "key9"); got != "key7 key8 key9" || s.bytes != 30 || s.dropped != 7 {
		t.Errorf("kept %q, %d bytes, dropped %d", got, s.bytes, s.dropped)
	}
	e, _ := s.take(id("big"), "f", 20)
	s.finish(e, text(strings.Repeat("x", 31)), 20)
	if len(s.keys) != 0 || s.bytes != 0 {
		t.Errorf("a reply that is larger than the store stays: %d keys, %d bytes", len(s.keys), s.bytes)
	}
	s.finish(e, text("again"), 21)
	if len(s.keys) != 0 || s.bytes != 0 || s.done.Len() != 0 {
		t.Error("a key that had made room comes back")
	}
}

func TestStoreExpires(t *testing.T) {
	s := newKeyStore(10, 2, 1<<20)
	done(s, "a", 0)
	if _, isNew := s.take(id("a"), "f", 9); isNew {
		t.Error("expired before its time")
	}
	if _, isNew := s.take(id("a"), "f", 10); !isNew {
		t.Error("not expired at its time")
	}
	// A key at work does not expire, and one that is counts as no loss when it makes room.
	if e, isNew := s.take(id("a"), "f", 50); isNew || e.done {
		t.Error("a key at work has expired")
	}
	done(s, "b", 60)
	done(s, "c", 80)
	if got := kept(s, "a", "b", "c"); got != "a c" || s.dropped != 0 {
		t.Errorf("kept %q, dropped %d", got, s.dropped)
	}
}

// A full store that had to forget is the harness's failing and never a client's.
func TestFullStoreIsAFinding(t *testing.T) {
	bubble(t, Config{Keys: scenarios.Honour, MaxKeys: 2}, []route{{path: "/a"}}, func(r *rig) {
		for i := range 2 {
			r.send("POST", "/a", "x", "Idempotency-Key", fmt.Sprint(i))
		}
		if h := r.history(); len(h.Findings) != 0 {
			t.Fatalf("%+v", h.Findings)
		}
		r.send("POST", "/a", "x", "Idempotency-Key", "2")
		h := r.history()
		if len(h.Findings) != 1 || h.Findings[0].Kind != history.FindingHarness || !strings.Contains(h.Findings[0].Text, "keeps 2 keys") {
			t.Errorf("%+v", h.Findings)
		}
		r.send("POST", "/a", "x", "Idempotency-Key", "0")
		if got := effects(r.history()); got != "1 2 3 4" {
			t.Errorf("effects of attempts %q: a key that was dropped is a new one", got)
		}
	})
}

// The store against a model: whatever comes, it counts its bytes right, keeps within its bounds but for what is
// at work, never forgets that, and drops the oldest done first.
func TestStoreModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maxKeys, maxBytes := rapid.IntRange(1, 6).Draw(t, "keys"), rapid.IntRange(10, 80).Draw(t, "bytes")
		expiry := time.Duration(rapid.IntRange(0, 20).Draw(t, "expiry"))
		s := newKeyStore(expiry, maxKeys, maxBytes)
		working := map[string]*stored{}
		now := time.Duration(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += time.Duration(rapid.IntRange(0, 5).Draw(t, "wait"))
			k := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h"}).Draw(t, "key")
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				e, isNew := s.take(id(k), "f", now)
				if isNew && working[k] != nil {
					t.Fatalf("%s was at work and is new", k)
				}
				if !isNew && working[k] == nil && (!e.done || expiry > 0 && now-e.first >= expiry) {
					t.Fatalf("%s is neither at work nor known: %+v", k, e)
				}
				if isNew {
					working[k] = e
				}
			case 1:
				if e := working[k]; e != nil {
					s.finish(e, text(strings.Repeat("x", rapid.IntRange(0, 30).Draw(t, "size"))), now)
					delete(working, k)
				}
			case 2:
				if e := working[k]; e != nil {
					s.giveUp(e)
					delete(working, k)
				}
			}
			bytes, atWork := 0, 0
			for _, e := range s.keys {
				bytes += len(e.id.key) + len(e.fingerprint) + len(e.reply.Body)
				if !e.done {
					atWork++
				}
			}
			if bytes != s.bytes || atWork != len(working) || s.done.Len() != len(s.keys)-atWork {
				t.Fatalf("%d bytes counted as %d; %d at work, want %d; %d of %d done", bytes, s.bytes, atWork, len(working), s.done.Len(), len(s.keys))
			}
			if atWork < len(s.keys) && (len(s.keys) > maxKeys || bytes > maxBytes) {
				t.Fatalf("over its bounds with something to drop: %d keys, %d bytes", len(s.keys), bytes)
			}
		}
	})
}
