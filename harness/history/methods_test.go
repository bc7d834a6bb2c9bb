package history

import (
	"encoding/json"
	"os"
	"testing"
)

// The methods of the IANA registry, with their marks. The retry client is held to the same file.
func TestMethodsAreTheRegistrys(t *testing.T) {
	text, err := os.ReadFile("../../retry/testdata/idempotent-methods.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Methods []struct {
			Method           string
			Safe, Idempotent bool
		}
	}
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors.Methods) < 40 {
		t.Fatalf("%d methods", len(vectors.Methods))
	}
	for _, m := range vectors.Methods {
		if got := SafeMethod(m.Method); got != m.Safe || (&Call{Method: m.Method}).Writes() == m.Safe {
			t.Errorf("%s: safe %v, want %v", m.Method, got, m.Safe)
		}
		if got := IdempotentMethod(m.Method); got != m.Idempotent {
			t.Errorf("%s: idempotent %v, want %v", m.Method, got, m.Idempotent)
		}
		if !(&Call{Method: m.Method, MayRepeat: true}).Idempotent() {
			t.Errorf("%s: the application's word does not count", m.Method)
		}
	}
	for _, m := range []string{"get", "Put", "FROB", ""} {
		if IdempotentMethod(m) || SafeMethod(m) {
			t.Errorf("%q is not registered, so that nothing is known of it", m)
		}
	}
}
