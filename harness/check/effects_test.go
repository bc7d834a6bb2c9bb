package check

import (
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
)

func TestEffectsOnce(t *testing.T) {
	late := run(
		with(call("old", try(0, "hang")), method("PUT"), ends(1*s)),
		with(call("new", try(2*s, "ok")), method("PUT"), func(c *history.Call) { c.Started = 2 * s }),
	)
	for _, c := range late.Calls {
		c.Resource = "/thing"
	}
	late.Effects[0].Resource = "/thing"
	effect(late, late.Calls[0], late.Calls[0].Attempts[0], 5*s)
	late.Effects[1].Late = true

	lied := run(call("c1", try(0, "204")))
	lied.Calls[0].Outcome = history.Outcome{OK: true, Status: 204}
	undecoded := run(with(call("c1", try(0, "malformed_json")), outcome(history.Outcome{OK: true})))
	process := run(with(call("c1", try(0, "malformed_json")), outcome(history.Outcome{OK: true})))
	process.Declared.Process = true

	expiring := func(h *history.History) *history.History {
		h.KeyExpiry = 5 * s
		return h
	}

	table(t, effectsOnce, []row{
		{"the key had expired", expiring(run(with(call("c1", try(0, "connection_reset+"), try(5*s, "ok")), keyed))), Pass, "keeps a key for 5s, had forgotten it"},
		{"the key had not expired", expiring(run(with(call("c1", try(0, "connection_reset+"), try(4*s, "ok")), keyed))), Fail, "had 2 effects"},
		{"expired once of two", expiring(run(with(call("c1", try(0, "connection_reset+"), try(5*s, "connection_reset+"), try(6*s, "ok")), keyed))), Fail, "had 3 effects"},
		{"another key", expiring(run(with(call("c1", try(0, "connection_reset+", key("a")), try(5*s, "ok", key("b"))), keyed))), Fail, "had 2 effects"},
		{"no key to expire", expiring(run(call("c1", try(0, "connection_reset+"), try(5*s, "ok")))), Fail, "had 2 effects"},
		{"a POST that may happen twice", run(with(call("c1", try(0, "connection_reset+"), try(s, "ok")), func(c *history.Call) { c.MayRepeat = true })), Pass, ""},
		{"one effect", run(call("c1", try(0, "503"), try(s, "ok"))), Pass, "all 1 that reported success had one"},
		{"failed without effect", run(call("c1", try(0, "503"))), Pass, ""},
		{"charged twice", run(call("c1", try(0, "connection_reset+"), try(s, "ok"))), Fail, "call c1 (POST) had 2 effects, by attempts 1, 2"},
		{"put twice", run(with(call("c1", try(0, "connection_reset+"), try(s, "ok")), method("PUT"))), Pass, ""},
		{"unknown method twice", run(with(call("c1", try(0, "connection_reset+"), try(s, "ok")), method("FROB"))), Fail, "FROB"},
		{"success without effect", run(with(call("c1", try(0, "503")), outcome(history.Outcome{OK: true}))), Fail, "reported success and had no effect"},
		{"put without effect", run(with(call("c1", try(0, "503")), method("PUT"), outcome(history.Outcome{OK: true}))), Fail, "no effect"},
		{"given up and charged twice", run(with(call("c1", try(0, "connection_reset+"), try(s, "hang+")), givenUp)), Fail, "2 effects"},
		{"given up", run(with(call("c1", try(0, "hang+")), givenUp)), Pass, ""},
		{"the server lied", lied, Pass, "by schedule"},
		{"taken for success", undecoded, Fail, "no effect"},
		{"a command does not decode", process, Pass, "cannot be decoded"},
		{"only reads", run(with(call("c1", try(0, "503")), method("GET"))), Skipped, "no call had a method that writes"},
		{"stale write", late, Pass, "stale write: effect 2 of the older call old overwrote that of call new"},
	})
	v := effectsOnce.judge(run(
		call("c1", try(0, "connection_reset+"), try(s, "ok")),
		call("c2", try(0, "connection_reset+"), try(s, "502+"), try(2*s, "ok"))))
	if len(v.Calls) != 2 || v.Calls[0] != "c2" || len(v.Evidence) != 2 {
		t.Errorf("worst first is wanted: %+v", v)
	}
}

// refused is an attempt whose connection was refused.
func refused(at time.Duration) *history.Attempt {
	return &history.Attempt{At: at, Ended: at, Method: "POST", Fault: "connect_refused", FaultName: "connect_refused",
		Category: "transport", Connection: true, Unsent: true, Closed: true, Delivered: true}
}

func TestNoPhantom(t *testing.T) {
	stranger := run(call("c1", try(0, "ok")))
	stranger.Effects = append(stranger.Effects, history.Effect{N: 2, Call: "c9", Attempt: 1})
	unborn := run(call("c1"))
	unborn.Effects = []history.Effect{{N: 1, Call: "c1", Attempt: 1}}
	missing := run(call("c1", try(0, "ok")))
	missing.Effects[0].Attempt = 7
	table(t, effectsNoPhantom, []row{
		{"as reported", run(call("c1", try(0, "ok")), call("c2", try(0, "400"))), Pass, "1 effect"},
		{"nothing", run(call("c1", try(0, "400"))), Pass, "nothing happened"},
		{"no such call", stranger, Fail, `"c9"`},
		{"no attempt", unborn, Fail, "of which no attempt arrived"},
		{"no such attempt", missing, Fail, "attempt 7"},
		{"409 from its own first try", run(call("c1", try(0, "connection_reset+"), try(s, "409"))), Fail, "definitely failed (status 409), but attempt 1"},
		{"409 while at work", run(call("c1", try(0, "connection_reset+"), try(s, "409", func(a *history.Attempt) { a.InFlight = true }))), Pass, ""},
		{"412 claims nothing", run(call("c1", try(0, "503+"), try(s, "412"))), Pass, ""},
		{"503 claims nothing", run(call("c1", try(0, "connection_reset+"), try(s, "503"))), Pass, ""},
		{"429 claims nothing", run(call("c1", try(0, "connection_reset+"), try(s, "429"))), Pass, ""},
		{"the answer lied of itself", run(call("c1", try(0, "400+"))), Pass, "the server answered 400 although attempt 1"},
		{"says nothing was sent", run(with(call("c1", try(0, "connection_reset+")), outcome(says("x", 0, history.TraitNotSent)))), Fail, "nothing was sent"},
		{"says so after a reset", run(with(call("c1", try(0, "connection_reset+"), refused(s)), keyed, outcome(says("x", 0, history.TraitRefused, history.TraitNotSent)))), Fail, "nothing was sent"},
		{"reset, then refused", run(with(call("c1", try(0, "connection_reset+"), refused(s)), keyed, outcome(says("x", 0, history.TraitRefused)))), Pass, "none for the 0 calls"},
		{"502, then refused", run(with(call("c1", try(0, "502+"), refused(s)), keyed, outcome(says("x", 0, history.TraitRefused)))), Pass, "none for the 0 calls"},
		{"reset, then a dial that nobody saw", run(with(call("c1", try(0, "connection_reset+")), outcome(says("x", 0, history.TraitRefused)))), Pass, ""},
		{"an answer, then refused", run(with(call("c1", try(0, "malformed_json+"), refused(s)), keyed, outcome(says("x", 0, history.TraitRefused)))), Fail, "connection refused"},
		{"refused, and nothing else", run(call("c1", try(0, "ok")), with(call("c2", refused(0), refused(s)), outcome(says("x", 0, history.TraitRefused)))), Pass, "none for the 1 call"},
		{"400 to a keyed repeat", run(with(call("c1", try(0, "connection_reset+"), try(s, "400")), keyed)), Pass, "answered 400 to attempt 2, a repeat in order of attempt 1"},
		{"400 to a repeated PUT", run(with(call("c1", try(0, "connection_reset+"), try(s, "400")), method("PUT"))), Pass, "a repeat in order"},
		{"400 to a repeat with another key", run(with(call("c1", try(0, "connection_reset+", key("a")), try(s, "400", key("b"))), keyed)), Fail, "definitely failed (status 400)"},
		{"400 to a repeat without its key", run(with(call("c1", try(0, "connection_reset+"), try(s, "400")), keyed, func(c *history.Call) { c.Attempts[1].Key = "" })), Fail, "definitely failed (status 400)"},
		{"400 to a repeat after an answer", run(with(call("c1", try(0, "malformed_json+"), try(s, "400")), keyed)), Fail, "definitely failed (status 400)"},
		{"refused, and the reset is told", run(with(call("c1", try(0, "connection_reset+")), outcome(says("x", 0, history.TraitRefused, history.TraitReset)))), Pass, ""},
		{"given up", run(with(call("c1", try(0, "connection_reset+"), try(s, "409")), givenUp)), Pass, ""},
	})
}
