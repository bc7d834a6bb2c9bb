package faults_test

import (
	"io"
	"time"

	"github.com/retrychaos/retrychaos/faults"
)

// A serverSide is the server of an exchange, put together by a test: what it leaves out must not be asked for,
// but for what a fault may tell to nobody.
type serverSide struct {
	receive   func(io.Reader) error
	forgo     func()
	quota     func() (bool, time.Duration)
	commit    func()
	delivered func()
	answered  func(status int, retryAfter []string, notBefore time.Time)
}

func (s *serverSide) Receive(r io.Reader) error    { return s.receive(r) }
func (s *serverSide) Forgo()                       { s.forgo() }
func (s *serverSide) Quota() (bool, time.Duration) { return s.quota() }
func (s *serverSide) Commit()                      { s.commit() }
func (s *serverSide) Delivered()                   { s.delivered() }
func (s *serverSide) Unread(int)                   {}
func (s *serverSide) Over()                        {}
func (s *serverSide) Store(faults.Reply) bool      { return false }

func (s *serverSide) Answered(status int, retryAfter []string, notBefore time.Time) {
	s.answered(status, retryAfter, notBefore)
}
