package faults

import (
	"bytes"
	"compress/gzip"
	"net/http"
)

// The faults of a compressed body that is whole by its Content-Length. A client that has not asked for a
// coding may get one all the same (RFC 9110 §12.5.3).

func gzipTruncated() Entry {
	return Entry{
		Name:      "gzip_truncated",
		Doc:       "a good head with Content-Encoding: gzip and the first half of the compressed body, whole by its Content-Length",
		Category:  Transport,
		Phases:    []Phase{AfterCommit, BeforeCommit, CommitLate},
		Protocols: []string{HTTP1},
		Sees:      "status 200, then io.ErrUnexpectedEOF where http.Transport decompresses; else a body that does not decode",
		Where:     WhereBodyRead,
		Example:   "gzip_truncated",
		deliver: func(d *delivery) error {
			return d.compressed(func(b []byte) []byte { return b[:len(b)/2] })
		},
	}
}

func gzipCorrupted() Entry {
	return Entry{
		Name:      "gzip_corrupted",
		Doc:       "a whole answer with Content-Encoding: gzip and a body that is no gzip, or one whose checksum is wrong",
		Category:  InvalidResponse,
		Phases:    []Phase{AfterCommit, BeforeCommit, CommitLate},
		Protocols: []string{HTTP1},
		Params: []Param{variantParam("what is wrong: checksum: the CRC at its end; header: the first byte",
			"checksum", "checksum", "header")},
		Sees:    "status 200, then gzip.ErrChecksum or gzip.ErrHeader where http.Transport decompresses; else a body that does not decode",
		Where:   WhereBodyRead,
		Example: "gzip_corrupted variant=header",
		deliver: func(d *delivery) error {
			return d.compressed(func(b []byte) []byte {
				at := len(b) - 8 // the CRC, RFC 1952 §2.3.1
				if d.fault.Variant == "header" {
					at = 0
				}
				b[at] ^= 0xff
				return b
			})
		},
	}
}

// compressed sends the reply compressed, as damage leaves it.
func (d *delivery) compressed(damage func([]byte) []byte) error {
	r := reply(d.Reply)
	if len(r.Body) == 0 || d.R.Method == http.MethodHead {
		return ErrNotApplicable
	}
	r.Body = damage(deflated(r.Body))
	r.Header.Set("Content-Encoding", "gzip")
	return d.respond(r)
}

// deflated is b in the gzip coding, without a name or a time.
func deflated(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b) // a buffer takes everything
	_ = w.Close()
	return out.Bytes()
}
