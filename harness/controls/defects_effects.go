package controls

import "github.com/retrychaos/retrychaos/harness"

// effectDefects lie about what happened.
func effectDefects() []defect {
	return []defect{
		{
			name:   "believes-any-response",
			breaks: "effects.once",
			doc: "Looks at the error only: a response that it may not or will not ask for again counts as success, " +
				"whatever its status, although nothing has happened.",
			wrong: func(p *policy) {
				p.report = func(_ harness.Call, f *failure, o harness.Outcome) harness.Outcome {
					if f != nil && f.kind == status {
						return harness.Outcome{OK: true, Status: f.status, Attempts: o.Attempts}
					}
					return o
				}
			},
		},
		{
			name:   "believes-the-status",
			breaks: "effects.once",
			doc: "Takes a good status for success and does not look at the body, so that it reports success for " +
				"what never happened.",
			wrong: func(p *policy) { p.decode = func(harness.Call, []byte) error { return nil } },
		},
		{
			name:   "claims-nothing-was-sent",
			breaks: "effects.no-phantom",
			doc: "Tells the application that nothing was sent whenever no response came, so that it starts over " +
				"what has happened.",
			wrong: func(p *policy) {
				p.report = func(_ harness.Call, f *failure, o harness.Outcome) harness.Outcome {
					o.NotSent = o.NotSent || f != nil && f.kind == transport
					return o
				}
			},
		},
	}
}
