package memcached

import "time"

// budgetBurst is how long a log may be read at any pace before its budget
// counts, if it kept to it before: the start of a stampede is a burst.
const budgetBurst = 5 * time.Second

// budget allows so many lines a second on average. When it is used up it is not
// renewed until it is whole again: so that what is read is a stretch of time
// that tells of bursts, and not a line here and there.
type budget struct {
	rate    float64 // lines a second
	left    float64
	at      time.Time // when left was so
	resting bool
}

func newBudget(rate int, now time.Time) *budget {
	return &budget{rate: float64(rate), left: float64(rate) * budgetBurst.Seconds(), at: now}
}

// renew adds what now allows, and reports whether the log may be read.
func (b *budget) renew(now time.Time) bool {
	whole := b.rate * budgetBurst.Seconds()
	b.left = min(whole, b.left+b.rate*now.Sub(b.at).Seconds())
	b.at = now
	if b.left >= whole {
		b.resting = false
	}
	return !b.resting
}

// spend takes one line off, and reports whether there is more.
func (b *budget) spend() bool {
	b.left--
	if b.left < 0 {
		b.resting = true
	}
	return !b.resting
}
