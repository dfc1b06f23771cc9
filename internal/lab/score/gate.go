package score

import (
	"errors"
	"fmt"
)

// Gate is what a score must come to, at least.
type Gate struct {
	// FalsePages is how many there may be.
	FalsePages int
	// PageRecall is the least share of the pages that are expected which must
	// come, from 0 to 1. If none is expected, it asks for nothing.
	PageRecall float64
	// DoublePages is how many pages a restart of the exporter may repeat.
	DoublePages int
}

// Check returns an error that says all that s does not come to.
func (s *Score) Check(g Gate) error {
	var errs []error
	if s.Runs == 0 {
		errs = append(errs, errors.New("nothing was run"))
	}
	if n := s.Pages.False; n > g.FalsePages {
		errs = append(errs, fmt.Errorf("%d false pages: want at most %d", n, g.FalsePages))
	}
	if r := s.Pages.Recall; r != nil && *r < g.PageRecall {
		errs = append(errs, fmt.Errorf("%d of %d expected pages came, which is %.3f of them: want at least %g", s.Pages.Found, s.Pages.Expected, *r, g.PageRecall))
	}
	if r := s.Restart; r != nil && r.DoublePages > g.DoublePages {
		errs = append(errs, fmt.Errorf("%d pages repeated after a restart: want at most %d", r.DoublePages, g.DoublePages))
	}
	return errors.Join(errs...)
}
