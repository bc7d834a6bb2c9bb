package faults_test

import (
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/retrychaos/retrychaos/faults"
	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	sec := time.Second
	for _, tc := range []struct {
		text string
		want faults.Fault
		form string // canonical text, where it is another
	}{
		{"ok", faults.Fault{Name: "ok"}, ""},
		{" ok  times=3 ", faults.Fault{Name: "ok", Times: 3}, "ok times=3"},
		{"503", faults.Fault{Name: "status", Phase: before, Status: 503}, ""},
		{"status code=503", faults.Fault{Name: "status", Phase: before, Status: 503}, "503"},
		{"503@before_commit times=1", faults.Fault{Name: "status", Phase: before, Status: 503}, "503"},
		{"503@after_commit times=forever", faults.Fault{Name: "status", Phase: after, Status: 503, Times: faults.Forever}, ""},
		{"502@commit_late", faults.Fault{Name: "status", Phase: late, Status: 502, Late: sec}, ""},
		{"502@commit_late late=1s", faults.Fault{Name: "status", Phase: late, Status: 502, Late: sec}, "502@commit_late"},
		{"429 retry-after=2m", faults.Fault{Name: "status", Phase: before, Status: 429,
			RetryAfter: []faults.RetryAfter{{Delay: 2 * time.Minute}}}, ""},
		{`429 retry-after=imf+5s retry-after=rfc850-10s retry-after=asctime+1h retry-after=0 retry-after="1.5"`,
			faults.Fault{Name: "status", Phase: before, Status: 429, RetryAfter: []faults.RetryAfter{
				{Form: faults.IMF, Delay: 5 * sec}, {Form: faults.RFC850, Delay: -10 * sec},
				{Form: faults.Asctime, Delay: time.Hour}, {}, {IsRaw: true, Raw: "1.5"}}},
			`429 retry-after=imf+5s retry-after=rfc850-10s retry-after=asctime+1h retry-after=0s retry-after="1.5"`},
		{`500 header="x-foo:  bar " header="X-Foo: baz" header="A: b" body="no \"luck\""`,
			faults.Fault{Name: "status", Phase: before, Status: 500, Body: `no "luck"`, HasBody: true,
				Header: http.Header{"X-Foo": {"bar", "baz"}, "A": {"b"}}},
			`500 header="A: b" header="X-Foo: bar" header="X-Foo: baz" body="no \"luck\""`},
		{"500 stored=true", faults.Fault{Name: "status", Phase: before, Status: 500, Stored: true}, ""},
		{`500 body=""`, faults.Fault{Name: "status", Phase: before, Status: 500, HasBody: true}, ""},
		{"500 body=bare", faults.Fault{Name: "status", Phase: before, Status: 500, Body: "bare", HasBody: true}, `500 body="bare"`},
		{"latency delay=200ms", faults.Fault{Name: "latency", Phase: before, Delay: 200 * time.Millisecond}, ""},
		{"hang@after_commit on=reused times=2", faults.Fault{Name: "hang", Phase: after, On: faults.Reused, Times: 2}, ""},
		{"truncated_body", faults.Fault{Name: "truncated_body", Phase: after, End: faults.EndFIN}, ""},
		{"truncated_body@after_commit after=1 end=rst", faults.Fault{Name: "truncated_body", Phase: after,
			End: faults.EndRST, After: faults.Amount{Set: true, Bytes: 1}}, "truncated_body after=1 end=rst"},
		{"truncated_body after=1.0", faults.Fault{Name: "truncated_body", Phase: after, End: faults.EndFIN,
			After: faults.Amount{Set: true, IsFraction: true, Fraction: 1}}, ""},
		{"stall_body", faults.Fault{Name: "stall_body", Phase: after, End: faults.EndHang}, ""},
		{"stall_body end=hang delay=0s", faults.Fault{Name: "stall_body", Phase: after, End: faults.EndHang}, "stall_body"},
		{"stall_body delay=5s", faults.Fault{Name: "stall_body", Phase: after, Delay: 5 * sec, End: faults.EndNormal}, ""},
		{"stall_body@before_commit delay=5s end=fin", faults.Fault{Name: "stall_body", Phase: before, Delay: 5 * sec, End: faults.EndFIN}, ""},
		{"malformed_json", faults.Fault{Name: "malformed_json", Phase: after, Variant: "truncated"}, "malformed_json variant=truncated"},
	} {
		got, err := faults.Parse(tc.text)
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		if !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", tc.text, got, tc.want)
		}
		form := tc.form
		if form == "" {
			form = tc.text
		}
		if got.String() != form {
			t.Errorf("%s is written %s, want %s", tc.text, got, form)
		}
		if err := got.Validate(); err != nil {
			t.Errorf("%s: Validate: %v", tc.text, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tc := range []struct {
		text string
		col  int
		msg  string
		near string
	}{
		{"", 1, "no fault given", ""},
		{"   ", 4, "no fault given", ""},
		{"@after_commit", 1, "name is missing", ""},
		{"conection_reset", 1, `unknown fault "conection_reset"`, "connection_reset"},
		{"reset", 1, "unknown fault", "connection_reset"},
		{"OK", 1, "unknown fault", "ok"},
		{"xyzzy", 1, "unknown fault", ""},
		{"200", 1, "use ok", "ok"},
		{"100", 1, "no final answer", ""},
		{"600", 1, "no status of HTTP", ""},
		{"50", 1, "no status code", ""},
		{"0503", 1, "no status code", ""},
		{"99999999999999999999", 1, "no status code", ""},
		{"status", 1, "status needs code=", ""},
		{"503 code=504", 5, "code is given twice", ""},
		{"status code=204", 13, "use ok", "ok"},
		{"ok@after_commit", 4, "ok takes no phase", ""},
		{"ok on=fresh", 4, "ok takes no parameter on", ""},
		{"connect_refused@after_commit", 17, "connect_refused cannot strike at after_commit", "before_commit"},
		{"tls_bad_certificate@commit_late", 21, "cannot strike at commit_late", "before_commit"},
		{"dns_temporary times=2 on=reused", 26, "strikes while a connection is made", ""},
		{"close_at_accept end=hang", 21, "hang", ""},
		{"tls_bad_certificate variant=expird", 29, "expird", "expired"},
		{"503@after", 5, `unknown phase "after"`, "after_commit"},
		{"503@after_comit", 5, "unknown phase", "after_commit"},
		{"503@", 5, "unknown phase", ""},
		{"503 after_commit", 5, "503@after_commit", ""},
		{"503 @after_commit", 5, "503@after_commit", ""},
		{"429@after_commit", 5, "must not say that it refused", ""},
		{"404@commit_late", 5, "must not say that it refused", ""},
		{"503 late=1s", 10, "only with commit_late", ""},
		{"503@commit_late late=0s", 22, "too short", ""},
		{"503@commit_late stored=true", 24, "still at work has no outcome", ""},
		{"503 stored=false", 12, "unknown value of stored", ""},
		{"503@commit_late late=-1s", 22, "negative", ""},
		{"latency", 1, "latency needs delay=", ""},
		{"latency delay=-1s", 15, "negative", ""},
		{"latency delay=5", 15, "no duration", "5s"},
		{"latency delay=0s", 15, "too short", ""},
		{"latency delay=9999h", 15, "too long", ""},
		{"latency@commit_late delay=1s late=1s", 30, "takes no late", ""},
		{"latency delay=1s delay=2s", 18, "given twice", ""},
		{"latency delay= 1s", 15, "needs a value", ""},
		{"latency dealy=1s", 9, "unknown parameter", "delay"},
		{"hang after=10", 6, "hang takes no parameter after", ""},
		{"hang times=0", 12, "want a number from 1", ""},
		{"hang times=-1", 12, "want a number from 1", ""},
		{"hang times=for_ever", 12, "or forever", "forever"},
		{"hang times=10001", 12, "want a number from 1", ""},
		{"hang on=old", 9, "unknown connection state", ""},
		{"hang on=resued", 9, "unknown connection state", "reused"},
		{"truncated_body after=-1", 22, "want bytes", ""},
		{"truncated_body after=1.5", 22, "want a fraction", ""},
		{"truncated_body after=.5", 22, "want a fraction", ""},
		{"truncated_body after=99999999999", 22, "want bytes", ""},
		{"truncated_body end=hang", 20, "unknown end", ""},
		{"stall_body end=fin", 16, "never reached", ""},
		{"stall_body end=hang delay=1s", 16, "no meaning", ""},
		{"stall_body@before_commit delay=1s", 12, "lie", ""},
		{"stall_body@commit_late delay=1s end=normal", 12, "lie", ""},
		{"malformed_json variant=nul", 24, "unknown variant", "null"},
		{"503 retry-after=soon", 17, "no Retry-After", ""},
		{"503 retry-after=2", 17, "no Retry-After", "2s"},
		{"503 retry-after=-1s", 17, "negative", ""},
		{"503 retry-after=1.5s", 17, "whole seconds", ""},
		{"503 retry-after=imf", 17, "a date is written", ""},
		{`503 retry-after="a\nb"`, 17, "control character", ""},
		{`503 header="X-Foo"`, 12, "a header is written", ""},
		{`503 header="X Foo: a"`, 12, "no field name", ""},
		{`503 header="X-Foo: a\r\nb: c"`, 12, "control character", ""},
		{`503 header="content-length: 3"`, 12, "framing", ""},
		{`503 header="Retry-After: 3"`, 12, "retry-after=", ""},
		{`503 body="open`, 10, "does not end", ""},
		{`503 body="a"b`, 13, "a blank is missing", ""},
		{`503 body=a"b`, 11, "a quote inside", ""},
		{`304 body="a"`, 10, "has no body", ""},
		{"503 body=" + strings.Repeat("x", 70000), 10, "more than 65536", ""},
		{"503 \x00", 5, "control character", ""},
		{"503 body=\"äöü\" hdr=", 16, "unknown parameter", ""},
	} {
		_, err := faults.Parse(tc.text)
		var se *faults.SyntaxError
		if !errors.As(err, &se) {
			t.Errorf("%.40q: %v, want a SyntaxError", tc.text, err)
			continue
		}
		if se.Col != tc.col || !strings.Contains(se.Msg, tc.msg) || se.Near != tc.near || se.Text != tc.text {
			t.Errorf("%.40q: col %d, near %q: %s\nwant col %d, near %q: %s", tc.text, se.Col, se.Near, se.Msg, tc.col, tc.near, tc.msg)
		}
	}
	_, err := faults.Parse("conection_reset")
	if want := `unknown fault "conection_reset" at column 1; did you mean "connection_reset"?`; err.Error() != want {
		t.Errorf("got %s, want %s", err, want)
	}
}

func TestSequence(t *testing.T) {
	text := `["503", "429 retry-after=2s", "connection_reset@after_commit", "ok"]`
	fs, err := faults.ParseSequence(text)
	if err != nil || faults.FormatSequence(fs) != text {
		t.Errorf("%v %v", fs, err)
	}
	for in, want := range map[string]string{
		"[]":                                 `[]`,
		" [ 503 ,ok, ] ":                     `["503", "ok"]`,
		`['503 body="it''s"']`:               `["503 body=\"it's\""]`,
		`["429 retry-after=\"-1\"", "hang"]`: `["429 retry-after=\"-1\"", "hang"]`,
		"[\n  hang@after_commit,\n  503\n]":  `["hang@after_commit", "503"]`,
	} {
		fs, err := faults.ParseSequence(in)
		if err != nil || faults.FormatSequence(fs) != want {
			t.Errorf("%s: %s, %v", in, faults.FormatSequence(fs), err)
		}
	}
	for in, want := range map[string]struct {
		col int
		msg string
	}{
		"":                             {1, `starts with "["`},
		"503":                          {1, `starts with "["`},
		"[503":                         {5, `want "," or "]"`},
		"[":                            {2, "does not end"},
		"[503 ok]":                     {6, "want key=value"},
		"[503,,ok]":                    {6, "missing"},
		"[503] x":                      {7, "text after"},
		`["503", "hung"]`:              {10, "unknown fault"},
		`["503 body=\"ä\"", "hung"]`:   {21, "unknown fault"},
		`["503 body=\"\\\"\" tims=3"]`: {21, "unknown parameter"},
		`['503 body="''" tims=3']`:     {17, "unknown parameter"},
		`["503]`:                       {2, "does not end"},
		`['503]`:                       {2, "does not end"},
		`["hang times=forever", "ok"]`: {24, "no attempt gets here"},
	} {
		_, err := faults.ParseSequence(in)
		var se *faults.SyntaxError
		if !errors.As(err, &se) || se.Col != want.col || !strings.Contains(se.Msg, want.msg) {
			t.Errorf("%s: %v, want %+v", in, err, want)
		}
	}
}

func TestValidateByHand(t *testing.T) {
	for _, f := range []faults.Fault{
		{}, {Name: "ok"}, {Name: "status", Status: 503, Body: "x"}, {Name: "hang", Times: 1},
		{Name: "stall_body", Delay: time.Second}, {Name: "malformed_json"},
	} {
		if err := f.Validate(); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
	}
	for _, f := range []faults.Fault{
		{Name: "nonsense"}, {Name: "status"}, {Name: "status", Status: 200}, {Name: "hang", Status: 503},
		{Name: "hang", Delay: time.Second}, {Name: "hang", Times: -2}, {Name: "latency"}, {Name: "hang", Phase: "never"},
		{Name: "status", Status: 503, Header: http.Header{"x-low": {"a"}}}, {Status: 503},
		{Name: "status", Status: 503, RetryAfter: []faults.RetryAfter{{IsRaw: true, Raw: "a\r\nb"}}},
		{Name: "hang on=fresh"}, {Name: "503"}, {Name: "hang", Late: time.Second}, {Name: "hang", On: "x y"},
		{Name: "status", Status: 503, RetryAfter: []faults.RetryAfter{{Delay: time.Millisecond}}},
	} {
		if err := f.Validate(); err == nil {
			t.Errorf("%+v is valid", f)
		}
	}
}

// roundTrip is the property of every text: it is refused with a column inside the text, or what it means has
// a canonical text that means the same.
func roundTrip(t interface{ Fatalf(string, ...any) }, text string) {
	f, err := faults.Parse(text)
	if err != nil {
		var se *faults.SyntaxError
		if !errors.As(err, &se) || se.Col < 1 || se.Col > utf8.RuneCountInString(text)+1 || se.Msg == "" {
			t.Fatalf("%q: %#v", text, err)
		}
		return
	}
	g, err := faults.Parse(f.String())
	if err != nil || !reflect.DeepEqual(f, g) || f.String() != g.String() || f.Validate() != nil {
		t.Fatalf("%q means %+v, its text %q means %+v (%v, %v)", text, f, f, g, err, f.Validate())
	}
	fs, err := faults.ParseSequence(faults.FormatSequence([]faults.Fault{f}))
	if err != nil || !reflect.DeepEqual(fs, []faults.Fault{f}) {
		t.Fatalf("%q in a sequence means %+v (%v)", text, fs, err)
	}
	_, _ = f.Category(), f.Blocks()
}

func FuzzParse(f *testing.F) {
	for _, e := range faults.Catalogue() {
		f.Add(e.Example)
	}
	for _, s := range []string{"ok", `503 header="X-Foo: \xff" body="\u00e4"`, "truncated_body after=0.30000000000000004",
		`429 retry-after=asctime-1h retry-after="\t"`, "stall_body delay=5s end=rst on=fresh times=forever"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) { roundTrip(t, text) })
}

func FuzzParseSequence(f *testing.F) {
	f.Add(`["503", '429 retry-after="1"', ok]`)
	f.Add(`["503 body=\"\\\"\u00e4\xff\" tims=3"]`)
	f.Fuzz(func(t *testing.T, text string) {
		fs, err := faults.ParseSequence(text)
		if err != nil {
			var se *faults.SyntaxError
			if !errors.As(err, &se) || se.Col < 1 || se.Col > utf8.RuneCountInString(text)+1 {
				t.Fatalf("%q: %#v", text, err)
			}
			return
		}
		if again, err := faults.ParseSequence(faults.FormatSequence(fs)); err != nil || len(again) != len(fs) {
			t.Fatalf("%q: %v", text, err)
		}
	})
}

// TestRoundTripProperty builds texts that are nearly always valid, which a fuzzer seldom does.
func TestRoundTripProperty(t *testing.T) {
	var valid, total int
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom(append(faults.Names(), "503", "429", "301", "ok")).Draw(t, "word")
		text := word
		if word != "ok" && rapid.Bool().Draw(t, "phase?") {
			text += "@" + rapid.SampledFrom([]string{"before_commit", "after_commit", "commit_late"}).Draw(t, "phase")
		}
		params := faults.CommonParams()
		if e, ok := faults.Lookup(word); ok {
			params = append(params, e.Params...)
		} else if word != "ok" {
			e, _ := faults.Lookup("status")
			params = append(params, e.Params[1:]...)
		}
		for _, p := range params {
			n := rapid.IntRange(0, 2).Draw(t, "how often")
			if p.Required || n > 0 && !p.Repeatable {
				n = 1
			}
			for range n {
				text += " " + p.Name + "=" + drawValue(t, p)
			}
		}
		total++
		if _, err := faults.Parse(text); err == nil {
			valid++
		}
		roundTrip(t, text)
	})
	if valid*20 < total {
		t.Errorf("only %d of %d texts were valid: the property tests nothing", valid, total)
	}
}

func drawValue(t *rapid.T, p faults.Param) string {
	dur := func() string {
		return time.Duration(rapid.Int64Range(0, int64(30*time.Hour)).Draw(t, "ns")).String()
	}
	secs := func() string { return (time.Duration(rapid.IntRange(0, 9999).Draw(t, "s")) * time.Second).String() }
	quoted := func() string { return quoteGo(rapid.StringN(0, 12, 20).Draw(t, "text")) }
	switch p.Kind {
	case faults.KindCode:
		return rapid.StringMatching("[2-6][0-9][0-9]").Draw(t, "code")
	case faults.KindDuration:
		return dur()
	case faults.KindAmount:
		return rapid.StringMatching(`[0-9]{1,5}|0\.[0-9]{1,20}`).Draw(t, "amount")
	case faults.KindCount:
		return rapid.SampledFrom([]string{"1", "2", "7", "forever"}).Draw(t, "count")
	case faults.KindWord:
		return rapid.SampledFrom(p.Values).Draw(t, "word")
	case faults.KindHeader:
		return quoteGo(rapid.StringMatching(`[A-Za-z][A-Za-z0-9-]{0,8}: ?[ -~]{0,10}`).Draw(t, "header"))
	case faults.KindRetryAfter:
		switch rapid.IntRange(0, 2).Draw(t, "form") {
		case 0:
			return secs()
		case 1:
			return rapid.SampledFrom([]string{"imf", "rfc850", "asctime"}).Draw(t, "date") +
				rapid.SampledFrom([]string{"+", "-"}).Draw(t, "sign") + secs()
		}
		return quoteGo(rapid.StringMatching(`[ -~äö]{0,9}`).Draw(t, "raw"))
	}
	return quoted()
}

func quoteGo(s string) string { return strconv.Quote(s) }
