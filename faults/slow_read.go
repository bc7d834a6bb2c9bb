package faults

func slowRead() Entry {
	return Entry{
		Name: "slow_read",
		Doc: "the request's body is read at a rate, and then answered well; nothing is committed for a client that goes " +
			"before all of it has been read",
		Category:   None,
		Phases:     []Phase{BeforeCommit},
		Protocols:  []string{HTTP1},
		BeforeBody: true,
		Params:     []Param{rateParam("bytes per second at which the body is read")},
		Sees: "a good answer, or its own timeout (context.DeadlineExceeded, Timeout() is true) where that is shorter; a " +
			"large body gets stuck in the windows meanwhile",
		Where:   WhereNowhere,
		Example: "slow_read rate=64KiB",
		run: func(d *delivery) error {
			if d.R.ContentLength == 0 {
				return ErrNotApplicable // there is no body
			}
			d.delivered() // the slowness begins
			if err := d.receive(paced{d, d.R.Body, d.fault.Rate}); err != nil {
				return err
			}
			d.Commit()
			return d.answer(d.Reply)
		},
	}
}
