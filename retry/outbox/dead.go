package outbox

import (
	"fmt"
	"time"

	"go.etcd.io/bbolt"
)

// A Reason says why a call was given up.
type Reason string

// The reasons.
const (
	ReasonAnswer     Reason = "answer"      // the server's answer is one that a repetition does not change
	ReasonAttempts   Reason = "attempts"    // Policy.MaxAttempts were made
	ReasonAge        Reason = "age"         // the next attempt would have come after Options.MaxAge
	ReasonRetryAfter Reason = "retry_after" // the server asks for a wait that is longer than Policy.MaxRetryAfter or MaxAge allow
	ReasonKeyExpired Reason = "key_expired" // the server may have forgotten the key: Options.KeyLifetime
	ReasonDamaged    Reason = "damaged"     // the file has lost or changed a part of the call; nothing was sent of that
)

// A DeadLetter is a call that was given up.
type DeadLetter struct {
	ID       ID
	Call     Call // the key is in its Header and, in the same form, in Key
	Reason   Reason
	Enqueued time.Time
	Died     time.Time
	Attempts int    // begun, over all restarts
	Status   int    // of the last attempt's answer, or 0
	Error    string // of the last attempt
	Answer   []byte // the beginning of the last answer's body, at most 4 KiB
}

// String prints the letter on one line, without its body and the secret parts
// of its URL.
func (d DeadLetter) String() string {
	s := fmt.Sprintf("call %d: %s %s: given up after %d attempts (%s)", d.ID, d.Call.Method, withoutSecrets(d.Call.URL), d.Attempts, d.Reason)
	if d.Error != "" {
		s += ": " + d.Error
	}
	return s
}

// DeadLetters returns the calls that were given up, in the order of their IDs.
func (o *Outbox) DeadLetters() ([]DeadLetter, error) {
	done, err := o.use()
	if err != nil {
		return nil, err
	}
	defer done()
	var list []DeadLetter
	err = o.store.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketDead).ForEach(func(k, _ []byte) error {
			id := idOf(k)
			c, st, _, err := get(tx, bucketDead, id)
			if err != nil {
				return &DamagedError{o.store.path, err}
			}
			list = append(list, DeadLetter{ID: id, Call: c, Reason: st.Reason, Enqueued: st.Enqueued, Died: st.Died,
				Attempts: st.Attempts, Status: st.Status, Error: st.Error, Answer: st.Answer})
			return nil
		})
	})
	return list, err
}

// Requeue makes a dead letter a waiting call again, under the same ID and with
// the same key: due at once, at the end of its Order, with all of MaxAttempts
// and MaxAge before it.
//
// The error is a [*NotFoundError], ErrClosed, one of the file system, or a
// [*KeyExpiredError] when the call may have been carried out under a key that
// the server may have forgotten: find out, and then Discard it or enqueue it
// anew. A damaged call is refused with a [*DamagedError].
func (o *Outbox) Requeue(id ID) error {
	done, err := o.use()
	if err != nil {
		return err
	}
	defer done()
	var c Call
	now := time.Now()
	err = o.store.db.Batch(func(tx *bbolt.Tx) error {
		call, st, damaged, err := get(tx, bucketDead, id)
		if err != nil {
			return err
		}
		c = call
		if damaged {
			return &DamagedError{o.store.path, fmt.Errorf("call %d is not what was enqueued", id)}
		}
		if keyExpired(c, st, o.opts, now) {
			return &KeyExpiredError{id, st.Sighted, o.opts.KeyLifetime}
		}
		if st.Seq, err = tx.Bucket(bucketCalls).NextSequence(); err != nil {
			return err
		}
		st.Base, st.Since, st.Due, st.Wait = st.Attempts, now, now, 0
		st.Reason, st.Died = "", time.Time{}
		return move(tx, id, st, bucketDead, bucketWaiting)
	})
	if err != nil {
		return err
	}
	o.mu.Lock()
	o.dead--
	o.mu.Unlock()
	o.push(id, c, now)
	return nil
}

// Discard forgets a dead letter.
//
// The error is a [*NotFoundError], ErrClosed, or one of the file system.
func (o *Outbox) Discard(id ID) error {
	done, err := o.use()
	if err != nil {
		return err
	}
	defer done()
	if err := o.store.remove(id, bucketDead); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dead--
	return nil
}
