package signal

import (
	"encoding/binary"
	"errors"
	"fmt"
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
	u, err := newUnpacker(b, packedVersion)
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

// unpacker reads varints until one is wrong.
type unpacker struct {
	b       []byte
	version byte
	err     error
}

// newUnpacker checks that the version byte is at most newest; nothing at all is
// an empty message.
func newUnpacker(b []byte, newest byte) (*unpacker, error) {
	if len(b) == 0 {
		return &unpacker{}, nil
	}
	if b[0] == 0 || b[0] > newest {
		return nil, fmt.Errorf("version %d: want at most %d", b[0], newest)
	}
	return &unpacker{b: b[1:], version: b[0]}, nil
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

// text reads a length of at most limit, and so many bytes.
func (u *unpacker) text(limit int) string {
	n := u.uint()
	if n > uint64(min(limit, len(u.b))) {
		u.skip(0)
		return ""
	}
	s := string(u.b[:n])
	u.b = u.b[n:]
	return s
}

func (u *unpacker) skip(n int) {
	if n <= 0 {
		u.err, u.b = errors.New("cut, or a number or text too long"), nil
		return
	}
	u.b = u.b[n:]
}
