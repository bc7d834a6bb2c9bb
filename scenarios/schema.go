package scenarios

import (
	"bytes"
	_ "embed"
)

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema (draft 2020-12) of a file of scenarios, for editors. It knows words and
// types; what Load checks beyond them, such as the parameters of a fault or a call that never ends, it does
// not know.
func Schema() []byte { return bytes.Clone(schema) }
