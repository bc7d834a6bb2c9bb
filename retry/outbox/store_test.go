package outbox_test

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/retrychaos/retrychaos/retry"
	"github.com/retrychaos/retrychaos/retry/outbox"
)

// The waiting calls in a full file. Their bodies take pages of their own.
const callsInFull = 6

var longBody = strings.Repeat("waiting ", 1500)

// full makes a file with calls of all sorts in it.
func full(t *testing.T) (path string, opts outbox.Options) {
	path = filePath(t)
	opts = outbox.Options{Client: []retry.Option{retry.WithTransport(outcomes(400))}, LockTimeout: 10 * time.Millisecond}
	o := open(t, path, opts)
	enqueue(t, o, charge("dead"))
	drain(t, o)
	for range callsInFull {
		enqueue(t, o, charge(longBody))
	}
	closeIt(t, o)
	return path, opts
}

// change opens the file as bbolt does.
func change(t *testing.T, path string, f func(*bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Update(f); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestLocked(t *testing.T) {
	path, opts := full(t)
	open(t, path, opts)
	_, err := outbox.Open(path, opts)
	if e := asType[*outbox.LockedError](t, err); e.Path != path {
		t.Errorf("%+v", e)
	}
}

func TestFileIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such modes")
	}
	path, _ := full(t)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestNoFile(t *testing.T) {
	_, err := outbox.Open(filepath.Join(filePath(t), "missing", "outbox"), outbox.Options{})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	// What a process leaves that is killed right after it has made the file.
	path := filePath(t)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, path, outbox.Options{})
}

// A file that is not an outbox, or a newer one, or has lost a part, is refused
// and left alone; and it is not locked afterwards.
func TestRefusedFiles(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(t *testing.T, path string)
		format int // of the FormatError, or -1 for a DamagedError
	}{
		{"text", func(t *testing.T, path string) {
			os.WriteFile(path, bytes.Repeat([]byte("not a database\n"), 2000), 0o600)
		}, -1},
		{"a short file", func(t *testing.T, path string) { os.WriteFile(path, []byte("x"), 0o600) }, -1},
		{"half of it", func(t *testing.T, path string) { os.Truncate(path, int64(len(read(t, path))/2)) }, -1},
		{"its head", func(t *testing.T, path string) { os.Truncate(path, 3*int64(os.Getpagesize())) }, -1},
		{"another's database", func(t *testing.T, path string) {
			os.Remove(path)
			change(t, path, func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("theirs")); return err })
		}, 0},
		{"a newer format", func(t *testing.T, path string) {
			change(t, path, func(tx *bbolt.Tx) error { return tx.Bucket([]byte("meta")).Put([]byte("format"), []byte("7")) })
		}, 7},
		{"no format", func(t *testing.T, path string) {
			change(t, path, func(tx *bbolt.Tx) error { return tx.Bucket([]byte("meta")).Delete([]byte("format")) })
		}, 0},
		{"a bucket is missing", func(t *testing.T, path string) {
			change(t, path, func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte("bodies")) })
		}, -1},
		{"a state", func(t *testing.T, path string) {
			change(t, path, func(tx *bbolt.Tx) error {
				k, _ := tx.Bucket([]byte("waiting")).Cursor().Last()
				return tx.Bucket([]byte("waiting")).Put(k, []byte("{"))
			})
		}, -1},
		{"a call", func(t *testing.T, path string) {
			change(t, path, func(tx *bbolt.Tx) error {
				k, _ := tx.Bucket([]byte("dead")).Cursor().First()
				return tx.Bucket([]byte("calls")).Delete(k)
			})
		}, -1},
		{"an ID", func(t *testing.T, path string) {
			change(t, path, func(tx *bbolt.Tx) error { return tx.Bucket([]byte("waiting")).Put([]byte("x"), []byte("{}")) })
		}, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path, opts := full(t)
			tt.damage(t, path)
			before := read(t, path)
			for range 2 { // a second time: the first has not left it locked
				_, err := outbox.Open(path, opts)
				if tt.format < 0 {
					if e := asType[*outbox.DamagedError](t, err); e.Path != path || e.Err == nil {
						t.Errorf("%+v", e)
					}
				} else if e := asType[*outbox.FormatError](t, err); e.Found != tt.format || e.Known != 1 {
					t.Errorf("%+v", e)
				}
			}
			if !bytes.Equal(before, read(t, path)) {
				t.Error("the file was changed")
			}
		})
	}
}

// Pages that are overwritten anywhere end in a good Open or in an error, not in
// a crash, and what is then delivered is what was enqueued.
func TestOverwrittenPages(t *testing.T) {
	whole, opts := full(t)
	good := read(t, whole)
	page := os.Getpagesize()
	random := rand.New(rand.NewPCG(1, 1))
	refused := 0
	for at := 0; at < len(good); at += page {
		bad := bytes.Clone(good)
		for i := at; i < min(at+page, len(bad)); i++ {
			bad[i] = byte(random.Uint32())
		}
		path := filePath(t)
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		f := outcomes()
		opts.Client = []retry.Option{retry.WithTransport(f)}
		o, err := outbox.Open(path, opts)
		if err != nil {
			asType[*outbox.DamagedError](t, err)
			refused++
			if !bytes.Equal(bad, read(t, path)) {
				t.Errorf("page %d: the file was changed", at/page)
			}
			continue
		}
		drain(t, o)
		for _, r := range f.requests() {
			if r.body != longBody {
				t.Errorf("page %d: a damaged body was delivered", at/page)
			}
		}
		list, err := o.DeadLetters()
		if err != nil {
			t.Errorf("page %d: %v", at/page, err)
		}
		damaged := 0
		for _, d := range list {
			if d.Reason == outbox.ReasonDamaged {
				damaged++
				asType[*outbox.DamagedError](t, o.Requeue(d.ID))
			}
		}
		// Without one of its two meta pages the file is as it was before the
		// last transaction: that is how bbolt undoes what was torn by a crash.
		meta := at < 2*page
		if n := len(f.requests()) + damaged; n != callsInFull && !(meta && n == callsInFull-1) {
			t.Errorf("page %d: %d of %d calls are delivered or damaged", at/page, n, callsInFull)
		}
		closeIt(t, o)
	}
	t.Logf("%d pages, %d files refused", len(good)/page, refused)
	if refused == 0 {
		t.Error("no damage was noticed")
	}
}

// A wait that was stored is not longer when the clock has been set back since.
func TestClockSetBack(t *testing.T) {
	path, opts := full(t)
	change(t, path, func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("waiting"))
		k, _ := b.Cursor().First()
		k = bytes.Clone(k)
		v := bytes.Replace(b.Get(k), []byte(`"due":"20`), []byte(`"wait_ns":60000000000,"due":"21`), 1)
		return b.Put(k, v)
	})
	o := open(t, path, opts)
	if s := o.Stats(); s.Waiting != callsInFull {
		t.Fatalf("%+v", s)
	}
	deadline := time.Now().Add(time.Minute)
	f := outcomes()
	closeIt(t, o)
	change(t, path, func(tx *bbolt.Tx) error { // leave only that one
		c := tx.Bucket([]byte("waiting")).Cursor()
		c.First()
		for k, _ := c.Next(); k != nil; k, _ = c.Next() {
			if err := c.Delete(); err != nil {
				return err
			}
		}
		return nil
	})
	opts.Client = []retry.Option{retry.WithTransport(f)}
	o = open(t, path, opts)
	if next := o.Stats().Next; next.Before(deadline) || next.After(deadline.Add(time.Minute)) {
		t.Errorf("next at %v, want about %v", next, deadline)
	}
}
