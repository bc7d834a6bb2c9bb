package scenarios

import (
	"strings"
	"testing"
)

func TestMatrix(t *testing.T) {
	list, err := Load("m.yaml", []byte(`family: fam
scenarios:
  - name: "{method}-{fault}-{keys}"
    matrix:
      method: {put: PUT, post: POST}
      fault:
        two: ["503", "502"]
        reset: [connection_reset@after_commit]
      keys: [honour, ignore]
    summary: A {method} to /charges/{call}.
    rule: key.stable
    source: x
    server: {keys: "{keys}"}
    calls: [{method: "{method}", path: "/{method}/{call}", body: '{"a":1}'}]
    faults: "{fault}"
`))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range list {
		names = append(names, s.Name)
	}
	want := "fam/put-two-honour fam/put-two-ignore fam/put-reset-honour fam/put-reset-ignore " +
		"fam/post-two-honour fam/post-two-ignore fam/post-reset-honour fam/post-reset-ignore"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	s := list[1]
	if s.Calls[0].Method != "PUT" || s.Calls[0].Path != "/PUT/{call}" || s.Server.Keys != Ignore || len(s.Faults) != 2 ||
		s.Summary != "A PUT to /charges/{call}." || s.Calls[0].Body != `{"a":1}` {
		t.Errorf("got %+v", s)
	}
}

func TestMatrixRefuses(t *testing.T) {
	long := "[" + strings.Repeat("a, ", 40) + "b]"
	for _, c := range []struct {
		name, title, matrix, rest string
		want                      []string
	}{
		{"no mapping", "x", "[a]", "", []string{":4:13: matrix wants a mapping from axis to values, like {keys: [honour, require]}"}},
		{"empty", "x", "{}", "", []string{":4:13: matrix wants a mapping from axis to values, like {keys: [honour, require]}"}},
		{"no values", "x-{a}", "{a: []}", "", []string{":4:17: the axis a has no values: give a list of words, or a mapping from word to value"}},
		{"reserved", "x-{call}", "{call: [a]}", "", []string{`:4:14: an axis needs a name of lower-case letters, digits, '-' and '_' other than call, not "call"`}},
		{"not in the name", "x", "{a: [b, c]}", "", []string{":4:14: the axis a is not in the name, so that scenarios would share one: put {a} into name"}},
		{"unknown axis", "x-{conn}", "{conn: [b]}", `connection: "{con}"`, []string{`:8:17: {con} is no axis of the matrix: there is conn; did you mean "conn"?`}},
		{"word that cannot be in a name", "x-{a}", "{a: [b c]}", "", []string{`:4:18: "b c" cannot be part of a name: write the axis as a mapping from word to value`}},
		{"list in a text", "x-{a}", "{a: {b: [ok]}}", `why: "because {a}"`, []string{":8:10: {a} stands for a list or a mapping, which cannot be part of a text"}},
		{"bad value, told where it stands", "x-{a}", "{a: {b: hang, c: hang@after}}", `faults: ["{a}", "{a}"]`,
			[]string{`:4:35: unknown phase "after" (one of: before_commit, after_commit, commit_late) (in fam/x-c); did you mean "after_commit"?`}},
		{"bad template, told once", "x-{a}", "{a: [b, c]}", `labels: ["{a}-é"]`, []string{`:8:14: the label "b-é" is no word of letters, digits, '-' and '_' (in fam/x-b)`,
			`:8:14: the label "c-é" is no word of letters, digits, '-' and '_' (in fam/x-c)`}},
		{"the same for all, told once", "x-{a}", "{a: [b, c]}", `labels: ["é"]`, []string{`:8:14: the label "é" is no word of letters, digits, '-' and '_' (in fam/x-b)`}},
		{"doubles", "x-{a}", "{a: [b, b]}", "", []string{":3:11: the name fam/x-b is used twice: it is already at m.yaml:3:11"}},
		{"too many", "x-{a}-{b}", "{a: " + long + ", b: " + long + "}", "", []string{":4:13: the matrix makes more than 1000 scenarios: split it"}},
		{"placeholder without matrix", "x-{a}", "", "", []string{`:3:11: the name "fam/x-{a}" is not like family/words-of-the-name: letters, digits, '-' between them, one '/'`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "family: fam\nscenarios:\n  - name: \"" + c.title + "\"\n    matrix: " + c.matrix + "\n    summary: s\n    rule: key.stable\n    source: x\n    " + c.rest + "\n"
			if c.matrix == "" {
				text = strings.Replace(text, "    matrix: \n", "", 1)
			}
			list, err := Load("m.yaml", []byte(text))
			if err == nil {
				t.Fatalf("got %+v", list)
			}
			want := "m.yaml" + strings.Join(c.want, "\nm.yaml")
			if got := err.Error(); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}
