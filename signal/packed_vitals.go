package signal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// AppendDurations appends h to dst in compact form: a version byte, then for
// each bucket that is not empty how many were skipped, and its count, as
// varints. An empty histogram takes no bytes.
func AppendDurations(dst []byte, h *Durations) []byte {
	skipped, begun := uint64(0), false
	for _, n := range h {
		if n == 0 {
			skipped++
			continue
		}
		if !begun {
			dst, begun = append(dst, packedVersion), true
		}
		dst = binary.AppendUvarint(dst, skipped)
		dst = binary.AppendUvarint(dst, n)
		skipped = 0
	}
	return dst
}

// ParseDurations is the inverse of [AppendDurations].
func ParseDurations(b []byte) (Durations, error) {
	var h Durations
	u, err := newUnpacker(b)
	at := uint64(0)
	for err == nil && len(u.b) > 0 {
		at += min(u.uint(), DurationBuckets)
		n := u.uint()
		if err = u.err; err == nil && (at >= DurationBuckets || n == 0) {
			err = errors.New("a bucket that does not exist, or is empty")
		}
		if err == nil {
			h[at] = n
			at++
		}
	}
	if err != nil {
		return Durations{}, fmt.Errorf("parse durations: %w", err)
	}
	return h, nil
}

// AppendExpiries appends bins, in order of At, to dst in compact form: a version
// byte, then for each bin its distance from the one before (the first from base)
// and its width, both in seconds, and its count, as varints. Bins start on whole
// seconds. No bins take no bytes.
func AppendExpiries(dst []byte, base Nanos, bins []ExpiryBin) []byte {
	if len(bins) == 0 {
		return dst
	}
	dst = append(dst, packedVersion)
	last := base / Nanos(time.Second)
	for _, bin := range bins {
		at := bin.At / Nanos(time.Second)
		dst = binary.AppendVarint(dst, int64(at-last))
		dst = binary.AppendUvarint(dst, uint64(bin.Width/time.Second))
		dst = binary.AppendUvarint(dst, uint64(bin.Keys))
		last = at
	}
	return dst
}

// MaxExpiryBins is the most bins [ParseExpiries] accepts: more than there are
// between now and [ExpiryFar].
const MaxExpiryBins = 1024

// ParseExpiries is the inverse of [AppendExpiries].
func ParseExpiries(b []byte, base Nanos) ([]ExpiryBin, error) {
	var bins []ExpiryBin
	u, err := newUnpacker(b)
	at := int64(base / Nanos(time.Second))
	for err == nil && len(u.b) > 0 {
		step, width, keys := u.int(), u.uint(), u.uint()
		switch {
		case u.err != nil:
			err = u.err
		case step > int64(ExpiryFar/time.Second)*2 || step < -int64(ExpiryFar/time.Second)*2:
			err = errors.New("a bin too far away")
		case width == 0 || width > uint64(ExpiryFar/time.Second) || keys > 1<<32-1:
			err = errors.New("a width or count out of range")
		case len(bins) == MaxExpiryBins:
			err = errors.New("too many bins")
		default:
			at += step
			bins = append(bins, ExpiryBin{At: Nanos(at) * Nanos(time.Second), Width: time.Duration(width) * time.Second, Keys: uint32(keys)})
		}
	}
	if err != nil {
		return nil, fmt.Errorf("parse expiries: %w", err)
	}
	return bins, nil
}

// unpacker reads varints until one is wrong.
type unpacker struct {
	b   []byte
	err error
}

// newUnpacker checks the version byte; nothing at all is an empty message.
func newUnpacker(b []byte) (*unpacker, error) {
	if len(b) == 0 {
		return &unpacker{}, nil
	}
	if b[0] != packedVersion {
		return nil, fmt.Errorf("version %d: want %d", b[0], packedVersion)
	}
	return &unpacker{b: b[1:]}, nil
}

func (u *unpacker) uint() uint64 {
	v, n := binary.Uvarint(u.b)
	u.skip(n)
	return v
}

func (u *unpacker) int() int64 {
	v, n := binary.Varint(u.b)
	u.skip(n)
	return v
}

func (u *unpacker) skip(n int) {
	if n <= 0 {
		u.err, u.b = errors.New("cut or oversized number"), nil
		return
	}
	u.b = u.b[n:]
}
