package nearest_test

import (
	"strings"
	"testing"

	"github.com/retrychaos/retrychaos/internal/nearest"
)

func TestWord(t *testing.T) {
	words := []string{"effects.once", "key.stable", "retry-additive", "connection_reset", "ok"}
	for _, c := range []struct{ text, want string }{
		{"conection_reset", "connection_reset"},
		{"connection-reset", "connection_reset"},
		{"CONNECTION_RESET", "connection_reset"},
		{"efects.once", "effects.once"},
		{"once", "effects.once"},
		{"kye.stable", "key.stable"},
		{"ko", "ok"},
		{"zzzzzz", ""},
		{"", ""},
		{strings.Repeat("x", 10000), ""},
	} {
		if got := nearest.Word(c.text, words); got != c.want {
			t.Errorf("Word(%.20q) = %q, want %q", c.text, got, c.want)
		}
	}
	if got := nearest.Hint("kye.stable", words); got != `; did you mean "key.stable"?` {
		t.Errorf("Hint = %s", got)
	}
}
