package scenarios

import "strings"

const (
	// MinBodySize is the smallest BodySize: the JSON around the text.
	MinBodySize = len(bodyHead + bodyTail)
	maxBodySize = 32 << 20

	bodyHead = `{"data":"`
	bodyTail = `"}`
)

// Payload returns the bytes that each call of the group sends, nil for none. What BodySize asks for is a JSON
// object with a text in it that does not repeat itself, so that a piece that is lost, doubled or out of its place makes
// other bytes.
func (g Group) Payload() []byte {
	switch {
	case g.BodySize >= MinBodySize:
		const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
		b := make([]byte, 0, g.BodySize)
		b = append(b, bodyHead...)
		x := uint32(1)
		for range g.BodySize - MinBodySize {
			x = x*1664525 + 1013904223 // Numerical Recipes' generator; the upper bits are the good ones
			b = append(b, letters[x>>26])
		}
		return append(b, bodyTail...)
	case g.Body != "":
		return []byte(g.Body)
	}
	return nil
}

// expectField validates a request field Expect, the one field of the connection that a scenario can set: it has
// one meaning, and only where there is a body (RFC 9110 §10.1.1).
func (v *validator) expectField(path string, g *Group) {
	switch lines := g.Header["Expect"]; {
	case len(lines) != 1 || !strings.EqualFold(lines[0], "100-continue"):
		v.add(path, "Expect has one value that means something: 100-continue")
	case g.Body == "" && g.BodySize == 0:
		v.add(path, "there is no body to wait with for a 100: give one, or take Expect out")
	}
}
