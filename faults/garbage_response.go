package faults

import "fmt"

// garbage is what is sent byte for byte, by variant.
func garbage() map[string]string {
	return map[string]string{
		"banner": "SSH-2.0-OpenSSH_9.9\r\n",
		"html":   "<html><body>404 page not found</body></html>\r\n",
		"binary": "\x15\x03\x03\x00\x02\x02\x46",
	}
}

func garbageResponse() Entry {
	return Entry{
		Name:      "garbage_response",
		Doc:       "bytes that are no HTTP in place of an answer, then the connection is closed (FIN)",
		Category:  InvalidResponse,
		Phases:    []Phase{BeforeCommit, AfterCommit, CommitLate},
		Protocols: []string{HTTP1},
		Params: []Param{variantParam("what comes: banner: another protocol's greeting; html: a page without a head, as HTTP/0.9 had it; "+
			"binary: a TLS alert", "banner", "banner", "html", "binary")},
		Sees:    "malformed HTTP response, or status code for html (errors without a type of their own)",
		Where:   WhereDo,
		Example: "garbage_response variant=html",
		deliver: func(d *delivery) error { return d.sendBytes(garbage()[d.fault.Variant]) },
	}
}

// sendBytes sends an answer that has no status to speak of, and closes the connection.
func (d *delivery) sendBytes(text string) error {
	if text == "" {
		return fmt.Errorf("unknown variant %q", d.fault.Variant)
	}
	if err := d.hijack(); err != nil {
		return err
	}
	if err := d.write([]byte(text)); err != nil {
		return err
	}
	return d.finish(EndFIN)
}
