package controls

import (
	"fmt"
	"hash/crc32"
	"net/http"
	"strings"
)

const keyField = "Idempotency-Key"

// requestDefects send something else the second time.
func requestDefects() []defect {
	return []defect{
		{
			name:   "regenerates-key",
			breaks: "key.stable",
			doc: "Makes the key inside the loop, a new one for each attempt. effects.once follows: a server that " +
				"honours keys takes the repeat for another operation.",
			follows: []string{"effects.once"},
			wrong: func(p *policy) {
				p.prepare = func(req *http.Request, n int) {
					if key := req.Header.Get(keyField); key != "" && n > 1 {
						req.Header.Set(keyField, fmt.Sprintf("%q", fmt.Sprintf("%s-%d", strings.Trim(key, `"`), n)))
					}
				}
			},
		},
		{
			name:   "drops-key-on-retry",
			breaks: "key.stable",
			doc: "Sends the key with the first attempt only. effects.once follows: a server that honours keys takes " +
				"the repeat for another operation. effects.no-phantom follows: one that requires them answers the " +
				"repeat with 400, which is given back although the first attempt was carried out. " +
				"attempts.unsafe-not-repeated follows: the second repeat comes after an attempt without a key.",
			follows: []string{"effects.once", "effects.no-phantom", "attempts.unsafe-not-repeated"},
			wrong: func(p *policy) {
				p.prepare = func(req *http.Request, n int) {
					if n > 1 {
						req.Header.Del(keyField)
					}
				}
			},
		},
		{
			name:   "ignores-given-key",
			breaks: "key.stable",
			doc: "Makes a key of its own, one for a call, also where the application has given it one: the call that " +
				"is taken up again after a crash becomes another.",
			wrong: func(p *policy) {
				p.prepare = func(req *http.Request, _ int) {
					if key := req.Header.Get(keyField); key != "" {
						req.Header.Set(keyField, fmt.Sprintf("\"own-%08x\"", crc32.ChecksumIEEE([]byte(key+req.URL.Path))))
					}
				}
			},
		},
		{
			name:   "one-key-for-all",
			breaks: "key.stable",
			doc:    "Makes one key when it is built and sends it with every call that wants one.",
			wrong: func(p *policy) {
				p.prepare = func(req *http.Request, _ int) {
					if req.Header.Get(keyField) != "" {
						req.Header.Set(keyField, `"5f1c0a7e-0000-4000-8000-000000000001"`)
					}
				}
			},
		},
		{
			name:   "loses-body",
			breaks: "body.intact",
			doc: "Keeps the body of a call with a key, and reads that of any other from one reader for all attempts: " +
				"the first one empties it.",
			wrong: func(p *policy) {
				p.prepare = func(req *http.Request, n int) {
					if n > 1 && req.Header.Get(keyField) == "" {
						req.Body, req.ContentLength = nothing{}, 0
					}
				}
			},
		},
		{
			name:   "drops-header",
			breaks: "body.intact",
			doc:    "Builds the repeat anew and forgets a header field that the application has set.",
			wrong: func(p *policy) {
				p.prepare = func(req *http.Request, n int) {
					if n > 1 {
						req.Header.Del("Accept")
					}
				}
			},
		},
	}
}
