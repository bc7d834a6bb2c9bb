package check

import (
	"testing"

	"github.com/retrychaos/retrychaos/harness/history"
)

func TestKeyStable(t *testing.T) {
	pair := func(a, b string, mods ...func(*history.Call)) *history.Call {
		c := with(call("c1", try(0, "503", key(a)), try(s, "ok", key(b))), mods...)
		return c
	}
	wants := func(c *history.Call) { c.Keyed, c.KeyHonoured = true, true }
	given := func(text string) func(*history.Call) {
		return func(c *history.Call) { c.Keyed, c.KeyHonoured, c.KeyText = true, true, text }
	}
	two := func(text string) *history.Call { return with(call("c2", try(0, "ok", key(`"k"`))), given(text)) }
	table(t, keyStable, []row{
		{"the application's, bare", run(pair("k", "k", given("k"))), Pass, ""},
		{"the application's, as a string", run(pair(`"k\"\\"`, `"k\"\\"`, given(`k"\`))), Pass, ""},
		{"not the application's", run(pair("l", "l", given("k"))), Fail, `carried the key l, and not "k", which the application had given it`},
		{"shared by the application", run(pair(`"k"`, `"k"`, given("k")), two("k")), Pass, "2 calls"},
		{"shared by the client", run(pair(`"k"`, `"k"`, wants), two("k")), Fail, "share the key"},
		{"one key", run(pair("k", "k", wants)), Pass, "1 call"},
		{"new key on the retry", run(pair("k", "l", wants)), Fail, "2 keys in 2 attempts: k, l"},
		{"lost on the retry", run(pair("k", "", wants)), Fail, "only 1 of 2 attempts"},
		{"none at all", run(pair("", "", wants)), Fail, "no key in 2 attempts, though the application asked for one"},
		{"none, and none needed", run(pair("", "", wants, method("PUT"))), Skipped, "its method needs none"},
		{"not asked for", run(pair("", "")), Skipped, "no call asked"},
		{"not asked for, and unstable", run(pair("k", "l")), Fail, "2 keys"},
		{"shared", run(pair("k", "k", wants), with(call("c2", try(0, "ok", key("k"))), wants)), Fail, `calls c1 and c2 share the key "k"`},
		{"nothing arrived", run(with(call("c1"), wants)), Skipped, ""},
	})
}

func TestBodyIntact(t *testing.T) {
	body := func(hash string, n int) func(*history.Attempt) {
		return func(a *history.Attempt) { a.BodyHash, a.BodyLen = hash, n }
	}
	broken := func(n int) func(*history.Attempt) {
		return func(a *history.Attempt) { a.BodyBroken, a.BodyLen, a.BodyHash, a.Delivered = true, n, "x", false }
	}
	unread := func(a *history.Attempt) { a.BodyUnread, a.BodyLen, a.BodyHash = true, 3, "" }
	second := func(mods ...func(*history.Attempt)) *history.History {
		return run(call("c1", try(0, "503"), try(s, "ok", mods...)))
	}
	slow := run(call("c1", try(0, "503"), try(s, "hang", broken(3))))
	cut := run(with(call("c1", try(0, "503"), try(s, "503", broken(3))), cancelled(s)))
	only := run(with(call("c1", try(s, "503", broken(3))), cancelled(s)))
	redirected := run(with(call("c1", try(0, "503"), try(s, "ok", body("", 0), func(a *history.Attempt) { a.Method = "GET" }))))
	table(t, bodyIntact, []row{
		{"the same", second(), Pass, "2 attempts"},
		{"empty", second(body("", 0)), Fail, "attempt 2 came without its body of 7 bytes"},
		{"shorter", second(body("x", 5)), Fail, "5 bytes instead of 7"},
		{"longer", second(body("x", 9)), Fail, "9 bytes instead of 7"},
		{"other bytes", second(body("x", 7)), Fail, "other ones"},
		{"announced and lost", second(broken(0)), Fail, "broke off after 0 of 7 bytes"},
		{"field lost", second(func(a *history.Attempt) { a.HeaderDiff = []string{"Content-Type"} }), Fail, "Content-Type"},
		{"left while sending", slow, Pass, "as the client went away"},
		{"cancelled while sending", cut, Pass, "as the client went away"},
		{"nothing came whole", only, Unknown, "no attempt was received whole"},
		{"nothing came", run(call("c1")), Skipped, ""},
		{"left unread by its fault", run(call("c1", try(0, "503", unread), try(s, "ok"))), Pass, "1 attempt"},
		{"left unread, and then lost", run(call("c1", try(0, "503", unread), try(s, "ok", body("", 0)))), Fail, "attempt 2 came without its body"},
		{"nothing was read", run(call("c1", try(0, "503", unread))), Skipped, "its fault came first"},
		{"redirected to GET", redirected, Pass, "1 attempt"},
	})
}
