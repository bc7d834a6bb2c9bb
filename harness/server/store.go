package server

import (
	"container/list"
	"time"

	"github.com/retrychaos/retrychaos/faults"
)

// Bounds on what a store keeps where the Config does not say.
const (
	// DefaultMaxKeys is how many keys a store keeps: more than twice the calls of the largest scenario.
	DefaultMaxKeys = 1 << 18
	// DefaultMaxKeyBytes is how many bytes of keys, fingerprints and replies it keeps.
	DefaultMaxKeyBytes = 64 << 20
)

// keyID names a key of a caller's.
type keyID struct{ caller, key string }

// stored is one key of the store.
type stored struct {
	id          keyID
	fingerprint string
	first       time.Duration // when its first request came
	done        bool          // the outcome is known
	reply       faults.Reply
	size        int
	place       *list.Element // in keyStore.done, once it is
}

// keyStore keeps keys with the outcome of their first request, for a time and within bounds. When it is
// full the keys whose outcome has been known for longest make room; those at work never do, so that the
// store can be over its bounds by as many as there are handlers. It has no lock of its own: Server.mu is
// held around every call.
type keyStore struct {
	expiry   time.Duration // 0: for ever
	maxKeys  int
	maxBytes int

	keys    map[keyID]*stored
	done    *list.List // of *stored, in the order in which their outcome came to be known
	bytes   int
	dropped int // keys that had to make room before their time
}

func newKeyStore(expiry time.Duration, maxKeys, maxBytes int) *keyStore {
	return &keyStore{expiry: expiry, maxKeys: maxKeys, maxBytes: maxBytes, keys: map[keyID]*stored{}, done: list.New()}
}

// take returns what is known of a key. Where that is nothing, or has expired, the key is taken for a request
// that comes now, and new is true. A key at work does not expire.
func (s *keyStore) take(id keyID, fingerprint string, now time.Duration) (e *stored, isNew bool) {
	if e := s.keys[id]; e != nil && !s.expired(e, now) {
		return e, false
	} else if e != nil {
		s.remove(e)
	}
	e = &stored{id: id, fingerprint: fingerprint, first: now, size: len(id.caller) + len(id.key) + len(fingerprint)}
	s.keys[id] = e
	s.bytes += e.size
	s.makeRoom(now)
	return e, true
}

// finish stores the outcome of a key's request. A later outcome of the same request takes the place of the
// first.
func (s *keyStore) finish(e *stored, r faults.Reply, now time.Duration) {
	if s.keys[e.id] != e {
		return // it had been done, and has made room since
	}
	grown := weight(r) - weight(e.reply)
	e.reply = r
	e.size += grown
	s.bytes += grown
	if !e.done {
		e.done = true
		e.place = s.done.PushBack(e)
	}
	s.makeRoom(now)
}

// giveUp forgets a key whose request ended without an outcome.
func (s *keyStore) giveUp(e *stored) {
	if !e.done && s.keys[e.id] == e {
		s.remove(e)
	}
}

func (s *keyStore) expired(e *stored, now time.Duration) bool {
	return e.done && s.expiry > 0 && now-e.first >= s.expiry
}

// makeRoom drops done keys, the oldest first, until the store is within its bounds.
func (s *keyStore) makeRoom(now time.Duration) {
	for len(s.keys) > s.maxKeys || s.bytes > s.maxBytes {
		oldest := s.done.Front()
		if oldest == nil {
			return
		}
		e := oldest.Value.(*stored)
		if !s.expired(e, now) {
			s.dropped++
		}
		s.remove(e)
	}
}

func (s *keyStore) remove(e *stored) {
	delete(s.keys, e.id)
	s.bytes -= e.size
	if e.place != nil {
		s.done.Remove(e.place)
	}
}

// weight is what a reply adds to the bytes of the store.
func weight(r faults.Reply) int {
	n := len(r.Body)
	for k, lines := range r.Header {
		for _, v := range lines {
			n += len(k) + len(v)
		}
	}
	return n
}
