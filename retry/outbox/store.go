package outbox

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// format is the version of what follows. A change that an older version could
// not read, or would lose, raises it.
const format = 1

// The buckets. A call is in calls and bodies, which are written once, and its
// state is in waiting or in dead. Keys are IDs, 8 bytes, greatest first.
var (
	bucketMeta    = []byte("meta")    // "format": a decimal number
	bucketCalls   = []byte("calls")   // callRecord, in JSON
	bucketBodies  = []byte("bodies")  // the bytes
	bucketWaiting = []byte("waiting") // state, in JSON
	bucketDead    = []byte("dead")    // state, in JSON
	bucketKeys    = []byte("keys")    // host, 0, key as in the header: the ID
	keyFormat     = []byte("format")
)

// callRecord is a Call without its body.
type callRecord struct {
	Method      string      `json:"method"`
	URL         string      `json:"url"`
	Header      http.Header `json:"header,omitempty"`
	Key         string      `json:"key,omitempty"`
	KeyHonoured bool        `json:"honoured,omitempty"`
	Idempotent  bool        `json:"idempotent,omitempty"`
	Order       string      `json:"order,omitempty"`
	Sum         []byte      `json:"sum"` // Call.sum
}

func (r callRecord) call(body []byte) Call {
	return Call{Method: r.Method, URL: r.URL, Header: r.Header, Body: body, Key: r.Key,
		KeyHonoured: r.KeyHonoured, Idempotent: r.Idempotent, Order: r.Order}
}

// state is what changes of a call.
type state struct {
	Seq      uint64        `json:"seq"`               // place among the calls of its Order
	Enqueued time.Time     `json:"enqueued"`          //
	Since    time.Time     `json:"since"`             // its age counts from here
	Attempts int           `json:"attempts"`          // begun
	Base     int           `json:"base,omitempty"`    // of these, before the last Requeue
	Begun    bool          `json:"begun,omitempty"`   // the last one has no result yet
	Sighted  time.Time     `json:"sighted,omitzero"`  // when a server may first have acted on it
	Due      time.Time     `json:"due"`               // the next attempt
	Wait     time.Duration `json:"wait_ns,omitempty"` // the wait that led to Due
	Status   int           `json:"status,omitempty"`  // of the last answer
	Error    string        `json:"error,omitempty"`   // of the last attempt
	Reason   Reason        `json:"reason,omitempty"`  // of a dead letter
	Died     time.Time     `json:"died,omitzero"`
	Answer   []byte        `json:"answer,omitempty"` // the beginning of the last answer's body
}

// A store is the file.
type store struct {
	db   *bbolt.DB
	path string
}

// openStore opens or makes the file. Nothing is written to a file that cannot be
// read.
func openStore(path string, lockTimeout time.Duration) (s *store, err error) {
	// The file is mapped into memory, so a damaged one shows as a panic or as a
	// fault. Neither must get through, nor leave the file locked.
	var file *os.File
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			if file != nil {
				release(file)
			}
			s, err = nil, &DamagedError{path, fmt.Errorf("%v", p)}
		}
	}()
	_, statErr := os.Stat(path)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout: lockTimeout, FreelistType: bbolt.FreelistMapType,
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			var err error
			file, err = os.OpenFile(name, flag, mode)
			return file, err
		},
	})
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, &LockedError{path, lockTimeout}
	case err != nil:
		if _, ok := errors.AsType[*fs.PathError](err); ok {
			return nil, fmt.Errorf("outbox: %w", err)
		}
		return nil, &DamagedError{path, err}
	}
	// Calls that come together are written by one fsync; one that comes alone
	// should not wait for others.
	db.MaxBatchDelay = 500 * time.Microsecond
	s = &store{db: db, path: path}
	if err := s.check(file); err != nil {
		db.Close()
		return nil, err
	}
	if errors.Is(statErr, fs.ErrNotExist) {
		syncDir(filepath.Dir(path))
	}
	return s, nil
}

// check makes sure that the file is whole and known, and gives a new one its
// buckets.
func (s *store) check(file *os.File) error {
	fresh := false
	err := s.db.View(func(tx *bbolt.Tx) error {
		info, err := file.Stat()
		if err != nil {
			return err
		}
		if info.Size() < tx.Size() {
			return &DamagedError{s.path, fmt.Errorf("it has %d bytes, and should have at least %d", info.Size(), tx.Size())}
		}
		meta := tx.Bucket(bucketMeta)
		if meta == nil {
			if first, _ := tx.Cursor().First(); first != nil {
				return &FormatError{Path: s.path, Known: format}
			}
			fresh = true
			return nil
		}
		var found int
		if err := json.Unmarshal(meta.Get(keyFormat), &found); err != nil {
			return &FormatError{Path: s.path, Known: format}
		}
		if found != format {
			return &FormatError{s.path, found, format}
		}
		for _, name := range [][]byte{bucketCalls, bucketBodies, bucketWaiting, bucketDead, bucketKeys} {
			b := tx.Bucket(name)
			if b == nil {
				return &DamagedError{s.path, fmt.Errorf("bucket %s is missing", name)}
			}
			// Every page is looked at now, and not when it is too late for an
			// error: a damaged one panics.
			if err := b.ForEach(func(_, _ []byte) error { return nil }); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || !fresh {
		return err
	}
	return s.db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketMeta, bucketCalls, bucketBodies, bucketWaiting, bucketDead, bucketKeys} {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		return tx.Bucket(bucketMeta).Put(keyFormat, fmt.Append(nil, format))
	})
}

// syncDir makes the name of a new file durable, where the system can do that.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		d.Close()
	}
}

// entry is a call as load finds it.
type entry struct {
	id    ID
	state state
	rec   callRecord
}

// load reads every call in one of the buckets of states, in the order of IDs.
func (s *store) load(states []byte, visit func(entry)) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = &DamagedError{s.path, fmt.Errorf("%v", p)}
		}
	}()
	return s.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(states).ForEach(func(k, v []byte) error {
			e := entry{id: idOf(k)}
			if err := json.Unmarshal(v, &e.state); err != nil {
				return &DamagedError{s.path, fmt.Errorf("the state of call %d: %w", e.id, err)}
			}
			if err := json.Unmarshal(tx.Bucket(bucketCalls).Get(k), &e.rec); err != nil {
				return &DamagedError{s.path, fmt.Errorf("call %d: %w", e.id, err)}
			}
			visit(e)
			return nil
		})
	})
}

// add stores a new call, unless it is there already.
func (s *store) add(c Call, now time.Time) (id ID, fresh bool, st state, err error) {
	rec := callRecord{c.Method, c.URL, c.Header, c.Key, c.KeyHonoured, c.Idempotent, c.Order, c.sum()}
	text, err := json.Marshal(rec)
	if err != nil {
		return 0, false, st, err
	}
	err = s.db.Batch(func(tx *bbolt.Tx) error {
		fresh = false
		keys, calls := tx.Bucket(bucketKeys), tx.Bucket(bucketCalls)
		if c.Key != "" {
			if k := keys.Get(keyIndex(c)); k != nil {
				id = idOf(k)
				var old callRecord
				if err := json.Unmarshal(calls.Get(k), &old); err != nil {
					return &DamagedError{s.path, fmt.Errorf("call %d: %w", id, err)}
				}
				if !bytes.Equal(old.Sum, rec.Sum) {
					return &KeyReusedError{c.Key, id}
				}
				return nil
			}
		}
		seq, err := calls.NextSequence()
		if err != nil {
			return err
		}
		id, fresh = ID(seq), true
		st = state{Seq: seq, Enqueued: now, Since: now, Due: now}
		k := keyOf(id)
		if c.Key != "" {
			if err := keys.Put(keyIndex(c), k); err != nil {
				return err
			}
		}
		return errors.Join(calls.Put(k, text), tx.Bucket(bucketBodies).Put(k, c.Body), put(tx.Bucket(bucketWaiting), id, st))
	})
	return id, fresh, st, err
}

// get reads a call and its state. damaged says that the call is not the one
// that was enqueued.
func get(tx *bbolt.Tx, states []byte, id ID) (c Call, st state, damaged bool, err error) {
	k := keyOf(id)
	v := tx.Bucket(states).Get(k)
	if v == nil {
		return c, st, false, &NotFoundError{id}
	}
	if err := json.Unmarshal(v, &st); err != nil {
		return c, st, false, err
	}
	var rec callRecord
	if err := json.Unmarshal(tx.Bucket(bucketCalls).Get(k), &rec); err != nil {
		return c, st, true, nil
	}
	c = rec.call(bytes.Clone(tx.Bucket(bucketBodies).Get(k)))
	return c, st, !bytes.Equal(c.sum(), rec.Sum), nil
}

// save writes the state of a call that waits.
func (s *store) save(id ID, st state) error {
	return s.db.Batch(func(tx *bbolt.Tx) error { return put(tx.Bucket(bucketWaiting), id, st) })
}

// bury makes a call that waits a dead letter.
func (s *store) bury(id ID, st state) error {
	return s.db.Batch(func(tx *bbolt.Tx) error { return move(tx, id, st, bucketWaiting, bucketDead) })
}

func move(tx *bbolt.Tx, id ID, st state, from, to []byte) error {
	return errors.Join(tx.Bucket(from).Delete(keyOf(id)), put(tx.Bucket(to), id, st))
}

// remove forgets a call whose state is in one of the buckets.
func (s *store) remove(id ID, states []byte) error {
	return s.db.Batch(func(tx *bbolt.Tx) error {
		k := keyOf(id)
		if tx.Bucket(states).Get(k) == nil {
			return &NotFoundError{id}
		}
		var rec callRecord
		if json.Unmarshal(tx.Bucket(bucketCalls).Get(k), &rec) == nil && rec.Key != "" {
			if err := tx.Bucket(bucketKeys).Delete(keyIndex(rec.call(nil))); err != nil {
				return err
			}
		}
		return errors.Join(tx.Bucket(states).Delete(k), tx.Bucket(bucketCalls).Delete(k), tx.Bucket(bucketBodies).Delete(k))
	})
}

func put(b *bbolt.Bucket, id ID, st state) error {
	text, err := json.Marshal(st)
	if err != nil {
		return err
	}
	return b.Put(keyOf(id), text)
}

func keyOf(id ID) []byte { return binary.BigEndian.AppendUint64(nil, uint64(id)) }

func idOf(k []byte) ID {
	if len(k) != 8 {
		panic(fmt.Sprintf("a key of %d bytes", len(k)))
	}
	return ID(binary.BigEndian.Uint64(k))
}

// keyIndex is the key's place in bucketKeys: a key is for one server.
func keyIndex(c Call) []byte { return []byte(c.host() + "\x00" + c.Key) }
