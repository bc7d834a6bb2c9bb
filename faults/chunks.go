package faults

import (
	"fmt"
	"net/http"
)

// The faults of the chunked coding (RFC 9112 §7.1).

const defaultChunk = 8

func chunkParam() Param {
	return numberParam("chunk", "bytes in a chunk", 1, maxBody, defaultChunk, func(f *Fault) *int { return &f.Chunk })
}

func brokenStream() Entry {
	return Entry{
		Name: "broken_stream",
		Doc: "a good head and a chunked body that stops, inside the chunk or between two as after= says; then silence, " +
			"FIN or RST",
		Category:  Transport,
		Phases:    []Phase{AfterCommit, BeforeCommit, CommitLate},
		Protocols: []string{HTTP1},
		Params:    []Param{afterParam("0.5", sentFirst), chunkParam(), openEnds()},
		Sees:      "status 200, then io.ErrUnexpectedEOF (fin), syscall.ECONNRESET (rst) or its own timeout (hang)",
		Where:     WhereBodyRead,
		Example:   "broken_stream after=16 end=rst",
		blocks:    func(f Fault) bool { return f.End == EndHang },
		deliver: func(d *delivery) error {
			r, n, err := d.part()
			if err != nil {
				return err
			}
			return d.sendChunked(r, chunked(r.Body, d.fault.Chunk, n))
		},
	}
}

func missingFinalChunk() Entry {
	return Entry{
		Name: "missing_final_chunk",
		Doc: "the whole body in chunks and no last chunk, without which it is not complete (RFC 9112 §8); then silence, " +
			"FIN or RST",
		Category:  Transport,
		Phases:    []Phase{AfterCommit, BeforeCommit, CommitLate},
		Protocols: []string{HTTP1},
		Params:    []Param{chunkParam(), openEnds()},
		Sees:      "status 200, then io.ErrUnexpectedEOF (fin), syscall.ECONNRESET (rst) or its own timeout (hang), with all of the body in hand",
		Where:     WhereBodyRead,
		Example:   "missing_final_chunk",
		blocks:    func(f Fault) bool { return f.End == EndHang },
		deliver: func(d *delivery) error {
			r, _, err := d.part()
			if err != nil {
				return err
			}
			return d.sendChunked(r, chunked(r.Body, d.fault.Chunk, len(r.Body)))
		},
	}
}

func malformedChunk() Entry {
	return Entry{
		Name:      "malformed_chunk",
		Doc:       "a good head, one good chunk, and then one that is none (RFC 9112 §7.1); then the connection is closed (FIN)",
		Category:  InvalidResponse,
		Phases:    []Phase{AfterCommit, BeforeCommit, CommitLate},
		Protocols: []string{HTTP1},
		Params: []Param{chunkParam(), variantParam("what is wrong: size: the size is no number; length: the chunk is longer than its size; "+
			"huge: a size that no number holds", "size", "size", "length", "huge")},
		Sees:    "status 200, then invalid byte in chunk length, malformed chunked encoding or http chunk length too large (errors without a type of their own)",
		Where:   WhereBodyRead,
		Example: "malformed_chunk variant=length",
		deliver: func(d *delivery) error {
			r, _, err := d.part()
			if err != nil {
				return err
			}
			n := min(d.fault.Chunk, len(r.Body)-1)
			b, rest := chunked(r.Body[:n], n, n), string(r.Body[n:])
			switch d.fault.Variant {
			case "size":
				b = fmt.Appendf(b, "%s\r\n%s\r\n", "zz", rest)
			case "length":
				b = fmt.Appendf(b, "%x\r\n%s\r\n", len(rest)-1, rest)
			case "huge":
				b = fmt.Appendf(b, "%s\r\n%s\r\n", "fffffffffffffffff", rest)
			}
			d.fault.End = EndFIN
			return d.sendChunked(r, b)
		},
	}
}

// openEnds are the ends of an answer that is not complete.
func openEnds() Param {
	return endParam(func(Fault) End { return EndFIN }, string(EndFIN), EndFIN, EndRST, EndHang)
}

// chunked codes the first n bytes of body in chunks of size bytes, without the last chunk. Where n lies inside
// a chunk, that one announces its whole length.
func chunked(body []byte, size, n int) []byte {
	var b []byte
	for at := 0; at < n; at += size {
		end := min(at+size, len(body))
		b = fmt.Appendf(b, "%x\r\n%s", end-at, body[at:min(end, n)])
		if end <= n {
			b = append(b, "\r\n"...)
		}
	}
	return b
}

// sendChunked sends the head of r with the chunked coding, then coded, and leaves the connection as the fault
// says.
func (d *delivery) sendChunked(r Reply, coded []byte) error {
	r.Header.Del("Content-Length")
	r.Header.Set("Transfer-Encoding", "chunked")
	r.Body = coded
	if d.R.Method == http.MethodHead {
		return ErrNotApplicable
	}
	if err := d.sendRaw(r, len(coded)); err != nil {
		return err
	}
	return d.finish(d.fault.End)
}
