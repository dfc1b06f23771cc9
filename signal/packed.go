package signal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// packedVersion is the first byte of packed intervals. Another layout gets
// another number, so that an old reader refuses it instead of misreading it.
const packedVersion = 1

// An interval takes at least this many bytes: an ID, a start, and the byte that
// holds cause and outcome. It bounds what a claimed count can make us allocate.
const minPackedInterval = 3

const (
	packedCauseBits   = 0x0f
	packedOutcomeBits = 0x70
	packedOutcomeAt   = 4
	packedEnded       = 0x80
)

// AppendIntervals appends ivs to dst in the compact form that docs/wire.md
// describes, and returns the extended slice. No intervals take no bytes.
//
// Starts are written relative to each other and the first to base, which the
// reader must know: it is the Start of the window they belong to. Everything is
// exact to the nanosecond, except that an End before its Start is written as
// equal to it. Intervals in order of Start, whose IDs differ little, pack best.
func AppendIntervals(dst []byte, base Nanos, ivs []Interval) []byte {
	if len(ivs) == 0 {
		return dst
	}
	dst = append(dst, packedVersion)
	dst = binary.AppendUvarint(dst, uint64(len(ivs)))
	id, start := uint64(0), base
	for _, iv := range ivs {
		// Differences may wrap around; so does the addition that undoes them.
		dst = binary.AppendVarint(dst, int64(iv.ID-id))
		dst = binary.AppendVarint(dst, int64(iv.Start-start))
		meta := byte(iv.Cause)&packedCauseBits | byte(iv.Outcome)<<packedOutcomeAt&packedOutcomeBits
		if iv.Running() {
			dst = append(dst, meta)
		} else {
			dst = append(dst, meta|packedEnded)
			dst = binary.AppendUvarint(dst, uint64(max(iv.End, iv.Start)-iv.Start))
		}
		id, start = iv.ID, iv.Start
	}
	return dst
}

// ParseIntervals is the inverse of [AppendIntervals]. It returns the intervals
// in order of Start, then ID, and an error if b holds more than limit of them,
// or anything else it should not. What it allocates is in proportion to b,
// whatever b says.
func ParseIntervals(b []byte, base Nanos, limit int) ([]Interval, error) {
	if len(b) == 0 {
		return nil, nil
	}
	if b[0] != packedVersion {
		return nil, fmt.Errorf("parse intervals: version is %d: want %d", b[0], packedVersion)
	}
	p := packed{rest: b[1:]}
	n := p.uvarint()
	switch {
	case p.bad:
		return nil, fmt.Errorf("parse intervals: %w", errTruncated)
	case n > uint64(max(limit, 0)):
		return nil, fmt.Errorf("parse intervals: count is %d: want at most %d", n, limit)
	case n > uint64(len(p.rest)/minPackedInterval):
		return nil, fmt.Errorf("parse intervals: %w", errTruncated)
	case n == 0 && len(p.rest) == 0:
		return nil, nil
	}
	ivs := make([]Interval, n)
	prev := Interval{Start: base}
	for i := range ivs {
		iv, err := p.interval(prev)
		if err != nil {
			return nil, fmt.Errorf("parse interval %d: %w", i, err)
		}
		ivs[i], prev = iv, iv
	}
	if len(p.rest) > 0 {
		return nil, fmt.Errorf("parse intervals: %d bytes left over", len(p.rest))
	}
	if !slices.IsSortedFunc(ivs, compareIntervals) {
		slices.SortFunc(ivs, compareIntervals)
	}
	return ivs, nil
}

var errTruncated = errors.New("truncated")

// packed reads packed intervals from the front of rest. The first failure sets
// bad, and every read after it returns zero.
type packed struct {
	rest []byte
	bad  bool
}

func (p *packed) interval(prev Interval) (Interval, error) {
	iv := Interval{ID: prev.ID + uint64(p.varint()), Start: prev.Start + Nanos(p.varint())}
	meta := p.byte()
	iv.Cause = Cause(meta & packedCauseBits)
	iv.Outcome = Outcome(meta & packedOutcomeBits >> packedOutcomeAt)
	if meta&packedEnded != 0 {
		iv.End = iv.Start + Nanos(p.uvarint())
	}
	switch {
	case p.bad:
		return Interval{}, errTruncated
	case iv.Cause >= NumCauses:
		return Interval{}, fmt.Errorf("cause is %d: want less than %d", iv.Cause, NumCauses)
	case iv.Outcome >= NumOutcomes:
		return Interval{}, fmt.Errorf("outcome is %d: want less than %d", iv.Outcome, NumOutcomes)
	case iv.Start < 0:
		return Interval{}, errors.New("start is before 1970")
	case meta&packedEnded != 0 && (iv.End < iv.Start || iv.End == 0):
		return Interval{}, errors.New("end is out of range")
	}
	return iv, nil
}

func (p *packed) byte() byte {
	if len(p.rest) == 0 {
		p.bad = true
		return 0
	}
	b := p.rest[0]
	p.rest = p.rest[1:]
	return b
}

func (p *packed) uvarint() uint64 {
	v, n := binary.Uvarint(p.rest)
	p.advance(n)
	return v
}

func (p *packed) varint() int64 {
	v, n := binary.Varint(p.rest)
	p.advance(n)
	return v
}

func (p *packed) advance(n int) {
	if n <= 0 {
		p.bad, p.rest = true, nil
		return
	}
	p.rest = p.rest[n:]
}
