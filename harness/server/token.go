package server

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/scenarios"
)

// TokenPath gives a token for a POST and belongs to no call: {"token": "..."}. What the token is worth is the
// scenario's choice.
const TokenPath = "/_retrychaos/token"

// The tokens of a scenario that has them. What a call starts with is StaleToken.
const (
	StaleToken   = "stale"
	freshToken   = "fresh"
	revokedToken = "revoked"
)

// token answers a request for a token. Whoever asks more often than a call may make attempts is held until the
// world is closed, like a call over its cap.
func (s *Server) token(w http.ResponseWriter, stream faults.Stream, r *http.Request) {
	text := func(status int, field, value, body string) {
		s.say(w, stream, r, faults.Reply{Status: status, Body: []byte(body + "\n"),
			Header: http.Header{field: {value}, "Content-Type": {"text/plain; charset=utf-8"}}})
	}
	s.active.Add(1)
	defer s.active.Done()
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, maxBody))
	s.mu.Lock()
	s.tokens++
	capped := s.tokens > s.cfg.AttemptCap*max(1, len(s.order))
	s.mu.Unlock()
	switch {
	case capped:
		s.stonewall(stream, r)
	case s.cfg.Token == scenarios.TokenNone:
		s.unmatched(w, stream, r)
	case r.Method != http.MethodPost:
		text(http.StatusMethodNotAllowed, "Allow", http.MethodPost, "a token is asked for by POST")
	case s.cfg.Token == scenarios.TokenLocked:
		text(http.StatusUnauthorized, "WWW-Authenticate", "Basic", "no token for you")
	default:
		token := freshToken
		if s.cfg.Token == scenarios.TokenRevoked {
			token = revokedToken
		}
		body, _ := json.Marshal(map[string]string{"token": token}) // a map of strings always has a JSON form
		s.say(w, stream, r, faults.Reply{Body: body})
	}
}

// authorized reports whether the server takes the request's token, where the scenario has tokens.
func (s *Server) authorized(r *http.Request) bool {
	return s.cfg.Token == scenarios.TokenNone || r.Header.Get("Authorization") == "Bearer "+freshToken
}
