package server

import (
	"encoding/json"
	"io"
	"net/http"

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
func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	s.active.Add(1)
	defer s.active.Done()
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, maxBody))
	s.mu.Lock()
	s.tokens++
	capped := s.tokens > s.cfg.AttemptCap*max(1, len(s.order))
	s.mu.Unlock()
	switch {
	case capped:
		s.stonewall(r)
	case s.cfg.Token == scenarios.TokenNone:
		s.unmatched(w, r)
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "a token is asked for by POST", http.StatusMethodNotAllowed)
	case s.cfg.Token == scenarios.TokenLocked:
		w.Header().Set("WWW-Authenticate", "Basic")
		http.Error(w, "no token for you", http.StatusUnauthorized)
	default:
		token := freshToken
		if s.cfg.Token == scenarios.TokenRevoked {
			token = revokedToken
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"token": token}) // a client that has gone needs none
	}
}

// authorized reports whether the server takes the request's token, where the scenario has tokens.
func (s *Server) authorized(r *http.Request) bool {
	return s.cfg.Token == scenarios.TokenNone || r.Header.Get("Authorization") == "Bearer "+freshToken
}
