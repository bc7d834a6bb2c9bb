package faults

import (
	"errors"
	"net"
	"syscall"
)

func connectRefused() Entry {
	return Entry{
		Name:      "connect_refused",
		Doc:       "nobody listens: the SYN is answered with RST, and there is no connection",
		Category:  Transport,
		Phases:    []Phase{BeforeCommit},
		Protocols: []string{HTTP1},
		Sees:      "syscall.ECONNREFUSED in a *net.OpError whose Op is dial; nothing was sent",
		Where:     WhereDo,
		Example:   "connect_refused times=2",
		Level:     LevelConnection,
		check:     neverReused,
		dial: func(d *dialling) (net.Conn, error) {
			err := d.refused()
			if !errors.Is(err, syscall.ECONNREFUSED) {
				return d.failed(err)
			}
			d.Delivered()
			d.Over()
			return nil, err
		},
	}
}

// neverReused is the check of entries of LevelConnection.
func neverReused(f Fault) (about, msg string) {
	if f.On == Reused {
		return "on", f.Name + " strikes while a connection is made: an attempt on a reused one cannot meet it"
	}
	return "", ""
}
