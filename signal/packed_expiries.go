package signal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// groupedVersion is the first byte of expiries that name groups. Those that
// name none are packed as before there were any, so that an older reader takes
// them.
const groupedVersion = 2

const (
	// MaxExpiryBins is the most bins [ParseExpiries] accepts. Between now and
	// [ExpiryFar] there are 630 for each group.
	MaxExpiryBins = 2048
	// MaxExpiryGroups is the most groups they may be of.
	MaxExpiryGroups = 256
)

// AppendExpiries appends bins, in order of At, to dst in compact form: a version
// byte; if any bin names a group, how many names there are, and each as its
// length and its bytes; then for each bin its distance from the one before (the
// first from base) and its width, both in seconds, its count and, if there are
// names, the number of its own, the first being 1, or 0 for none; all numbers as
// varints. Bins start on whole seconds. No bins take no bytes.
func AppendExpiries(dst []byte, base Nanos, bins []ExpiryBin) []byte {
	if len(bins) == 0 {
		return dst
	}
	groups := expiryGroups(bins)
	if len(groups) == 0 {
		dst = append(dst, packedVersion)
	} else {
		dst = append(dst, groupedVersion)
		dst = binary.AppendUvarint(dst, uint64(len(groups)))
		for _, g := range groups {
			dst = binary.AppendUvarint(dst, uint64(len(g)))
			dst = append(dst, g...)
		}
	}
	last := base / Nanos(time.Second)
	for _, bin := range bins {
		at := bin.At / Nanos(time.Second)
		dst = binary.AppendVarint(dst, int64(at-last))
		dst = binary.AppendUvarint(dst, uint64(bin.Width/time.Second))
		dst = binary.AppendUvarint(dst, uint64(bin.Keys))
		if len(groups) > 0 {
			i, named := slices.BinarySearch(groups, bin.Group)
			if i++; !named {
				i = 0
			}
			dst = binary.AppendUvarint(dst, uint64(i))
		}
		last = at
	}
	return dst
}

// expiryGroups returns the names of the groups of bins, in order.
func expiryGroups(bins []ExpiryBin) []string {
	var groups []string
	for i := range bins {
		if g := bins[i].Group; g != "" && (i == 0 || g != bins[i-1].Group) {
			groups = append(groups, g)
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// ParseExpiries is the inverse of [AppendExpiries]. It refuses names of groups
// that are empty, too long, not UTF-8 or hold control characters.
func ParseExpiries(b []byte, base Nanos) ([]ExpiryBin, error) {
	u, err := newUnpacker(b, groupedVersion)
	if err != nil {
		return nil, fmt.Errorf("parse expiries: %w", err)
	}
	var groups []string
	if u.version == groupedVersion {
		if groups, err = u.groups(); err != nil {
			return nil, fmt.Errorf("parse expiries: %w", err)
		}
	}
	var bins []ExpiryBin
	at := base / Nanos(time.Second) * Nanos(time.Second)
	for len(u.b) > 0 {
		bin, err := u.expiry(at, groups)
		if err == nil && len(bins) == MaxExpiryBins {
			err = errors.New("too many bins")
		}
		if err != nil {
			return nil, fmt.Errorf("parse expiries: %w", err)
		}
		bins = append(bins, bin)
		at = bin.At
	}
	return bins, nil
}

// groups reads the names of groups.
func (u *unpacker) groups() ([]string, error) {
	n := u.uint()
	if n > MaxExpiryGroups {
		return nil, errors.New("too many groups")
	}
	var names []string
	for range n {
		name := u.text(MaxExpiryGroup)
		switch {
		case u.err != nil:
			return nil, u.err
		case name == "" || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
			return nil, errors.New("a group without a name, or with an unprintable one")
		}
		names = append(names, name)
	}
	return names, u.err
}

// expiry reads the bin that follows one at last.
func (u *unpacker) expiry(last Nanos, groups []string) (ExpiryBin, error) {
	const far = uint64(ExpiryFar / time.Second)
	step, width, keys := u.int(), u.uint(), u.uint()
	group := uint64(0)
	if groups != nil {
		group = u.uint()
	}
	switch {
	case u.err != nil:
		return ExpiryBin{}, u.err
	case step > 2*int64(far) || step < -2*int64(far):
		return ExpiryBin{}, errors.New("a bin too far away")
	case width == 0 || width > far || keys > math.MaxUint32:
		return ExpiryBin{}, errors.New("a width or count out of range")
	case group > uint64(len(groups)):
		return ExpiryBin{}, errors.New("a group that has no name")
	}
	bin := ExpiryBin{At: last + Nanos(step)*Nanos(time.Second), Width: time.Duration(width) * time.Second, Keys: uint32(keys)}
	if group > 0 {
		bin.Group = groups[group-1]
	}
	return bin, nil
}
