package signal

import "time"

// PeakWindow is the length of the fixed windows that [Peak] keeps.
const PeakWindow = 10 * time.Second

// Peak keeps the highest value seen in fixed windows of 10 s: the current one
// and the two before. Only time resets it, so any number of scrapers see every
// peak, as long as each comes at least every 20 s. The zero Peak is ready. It is
// not safe for concurrent use.
type Peak struct {
	index Nanos
	most  [3]uint32
}

// Observe notes that the value was v at at.
func (p *Peak) Observe(at Nanos, v uint32) {
	p.roll(at)
	p.most[0] = max(p.most[0], v)
}

// Value returns the highest value of the last 20 to 30 s before at.
func (p *Peak) Value(at Nanos) uint32 {
	p.roll(at)
	return max(p.most[0], p.most[1], p.most[2])
}

func (p *Peak) roll(at Nanos) {
	i := at / Nanos(PeakWindow)
	if i-p.index >= Nanos(len(p.most)) {
		p.index, p.most = i, [3]uint32{}
	}
	for ; p.index < i; p.index++ {
		p.most[2], p.most[1], p.most[0] = p.most[1], p.most[0], 0
	}
}
