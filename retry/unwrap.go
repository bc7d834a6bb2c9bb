package retry

import "net/http"

// leadsToHTTP reports whether requests given to rt are sent by an
// *http.Transport as they are: rt is one, or says so by a method
//
//	Unwrap() http.RoundTripper
//
// which returns one. A RoundTripper that has it promises to pass on each request
// once, with nothing changed but header fields of its own added, as one that
// watches does. Then this package can prevent hidden replays through it.
func leadsToHTTP(rt http.RoundTripper) bool {
	for {
		switch t := rt.(type) {
		case *http.Transport:
			return true
		case interface{ Unwrap() http.RoundTripper }:
			rt = t.Unwrap()
		default:
			return false
		}
	}
}
