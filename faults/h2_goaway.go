package faults

// The values of last= and then=.
const (
	lastBelow      = "below"
	lastAt         = "at"
	lastAbove      = "above"
	lastMax        = "max"
	lastTwiceLower = "twice_lower"
	lastRaised     = "raised"

	thenClose = "close"
	thenOpen  = "open"
)

// maxStream is the highest stream identifier, which a graceful GOAWAY names (RFC 9113 §6.8).
const maxStream = 1<<31 - 1

func h2GoAway() Entry {
	return Entry{
		Name: "h2_goaway",
		Doc: "GOAWAY with a last stream id below the request's stream (it was not processed), at or above it (it may have been), " +
			"or 2^31-1 (graceful notice); then the connection is closed, or left open and, where the stream is covered, the good answer follows",
		Category:  Transport,
		Phases:    []Phase{BeforeCommit, AfterCommit, CommitLate},
		Protocols: []string{HTTP2},
		Params: []Param{
			wordParam("last", "the last stream id: below, at or above the request's own; max (2^31-1); "+
				"twice_lower (max, a round trip, then below); raised (below, then at: a broken server, RFC 9113 §6.8)",
				lastBelow, func(f *Fault) *string { return &f.Last },
				lastBelow, lastAt, lastAbove, lastMax, lastTwiceLower, lastRaised),
			codeWordParam("NO_ERROR", "NO_ERROR", "INTERNAL_ERROR", "ENHANCE_YOUR_CALM", "PROTOCOL_ERROR"),
			wordParam("then", "what becomes of the connection", thenClose, func(f *Fault) *string { return &f.Then }, thenClose, thenOpen),
		},
		Sees: "below, twice_lower and raised: net/http sends the request again by itself, on a new connection and without a bound, " +
			"where it has GetBody or no body; with an error code on a connection's first stream it does not, and gives an error without " +
			"a type of its own. at, above, max: the good answer (open), or an unexported error type that tells of the GOAWAY (close)",
		Where:   WhereDo,
		Example: "h2_goaway last=below code=ENHANCE_YOUR_CALM then=open",
		check: func(f Fault) (about, msg string) {
			switch {
			case f.unprocessed() && f.Phase != BeforeCommit:
				return "phase", "last=" + f.Last + " says that the request was not processed, which " + string(f.Phase) +
					" would make a lie (RFC 9113 §6.8): use last=at, above or max"
			case f.Last == lastMax && f.Code != "NO_ERROR":
				return "code", "the graceful notice of last=max has code NO_ERROR (RFC 9113 §6.8)"
			case !f.unprocessed() && f.Then == thenOpen && f.Phase != AfterCommit:
				return "phase", "then=open is followed by the good answer, which " + string(f.Phase) +
					" would make a lie: use after_commit, or then=close"
			}
			return "", ""
		},
		category: func(f Fault) Category {
			if !f.unprocessed() && f.Then == thenOpen {
				return None
			}
			return Transport
		},
		deliver: deliverGoAway,
	}
}

func deliverGoAway(d *delivery) error {
	if err := d.needStream(); err != nil {
		return err
	}
	s, f := d.Stream, d.fault
	id, code := s.ID(), h2Code(f.Code)
	below := max(id, 2) - 2
	type notice struct{ last, code uint32 }
	var notices []notice
	switch f.Last {
	case lastBelow:
		notices = []notice{{below, code}}
	case lastAt:
		notices = []notice{{id, code}}
	case lastAbove:
		notices = []notice{{id + 2, code}}
	case lastMax:
		notices = []notice{{maxStream, code}}
	case lastTwiceLower:
		notices = []notice{{maxStream, h2Code("NO_ERROR")}, {below, code}}
	case lastRaised:
		if err := s.RaiseGoAway(below, id, code); err != nil {
			return err
		}
	}
	for i, n := range notices {
		if i > 0 {
			// §6.8: long enough for streams that were on their way to arrive.
			if err := s.RoundTrip(); err != nil {
				return err
			}
		}
		if err := s.GoAway(n.last, n.code); err != nil {
			return err
		}
	}
	if f.Then == thenOpen && !f.unprocessed() {
		return d.answer(d.Reply)
	}
	if f.Then == thenClose {
		if err := s.CloseConn(EndFIN); err != nil {
			return err
		}
	}
	d.delivered()
	return nil
}

// Unprocessed reports whether the wire effect itself tells the client that its request was not processed, so
// that it may be sent again whatever its method (RFC 9113 §8.7): a refused stream before anything was
// answered, and a GOAWAY whose last stream id is below the request's.
func (f Fault) Unprocessed() bool { return f.filled().unprocessed() }

func (f Fault) unprocessed() bool {
	switch f.Name {
	case "h2_goaway":
		return f.Last == lastBelow || f.Last == lastTwiceLower || f.Last == lastRaised
	case "h2_rst_stream":
		return f.Code == refusedStream && f.At == AtStart
	}
	return false
}
