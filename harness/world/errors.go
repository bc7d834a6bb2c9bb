package world

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
)

// canceledError and timeoutError are what net.Dialer puts in its *net.OpError
// when the context ends; package net exports neither.
type canceledError struct{}

func (canceledError) Error() string        { return "operation was canceled" }
func (canceledError) Is(target error) bool { return target == context.Canceled }

type timeoutError struct{}

func (timeoutError) Error() string        { return "i/o timeout" }
func (timeoutError) Timeout() bool        { return true }
func (timeoutError) Temporary() bool      { return true }
func (timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// contextError maps the error of an ended context as net.Dialer does.
func contextError(ctx context.Context) error {
	switch err := ctx.Err(); {
	case errors.Is(err, context.Canceled):
		return canceledError{}
	case errors.Is(err, context.DeadlineExceeded):
		return timeoutError{}
	default:
		return err
	}
}

func refused(network string, addr *net.TCPAddr) error {
	return dialError(network, addr, os.NewSyscallError("connect", syscall.ECONNREFUSED))
}

// dialError builds the error of a failed dial. A nil addr must become a nil
// interface, since OpError prints whatever is not nil.
func dialError(network string, addr *net.TCPAddr, err error) error {
	e := &net.OpError{Op: "dial", Net: network, Err: err}
	if addr != nil {
		e.Addr = addr
	}
	return e
}
