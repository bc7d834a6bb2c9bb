package server

import (
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
func (s *Server) token(x *faults.Exchange) {
	s.active.Add(1)
	defer s.active.Done()
	_, _ = io.Copy(io.Discard, io.LimitReader(x.R.Body, maxBody))
	s.mu.Lock()
	s.tokens++
	capped := s.tokens > s.cfg.AttemptCap*max(1, len(s.order))
	s.mu.Unlock()
	plain := func(status int, name, value, text string) {
		say(x, faults.Reply{Status: status, Header: http.Header{name: {value}, "Content-Type": {"text/plain; charset=utf-8"}}, Body: []byte(text + "\n")})
	}
	switch {
	case capped:
		s.stonewall(x)
	case s.cfg.Token == scenarios.TokenNone:
		s.unmatched(x)
	case x.R.Method != http.MethodPost:
		plain(http.StatusMethodNotAllowed, "Allow", http.MethodPost, "a token is asked for by POST")
	case s.cfg.Token == scenarios.TokenLocked:
		plain(http.StatusUnauthorized, "Www-Authenticate", "Basic", "no token for you")
	default:
		token := freshToken
		if s.cfg.Token == scenarios.TokenRevoked {
			token = revokedToken
		}
		say(x, faults.Reply{Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
			Body: []byte(`{"token":"` + token + `"}` + "\n")})
	}
}

// authorized reports whether the server takes the request's token, where the scenario has tokens.
func (s *Server) authorized(r *http.Request) bool {
	return s.cfg.Token == scenarios.TokenNone || r.Header.Get("Authorization") == "Bearer "+freshToken
}
