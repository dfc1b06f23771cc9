package memcached

import (
	"bytes"
	"strconv"
)

// maxKey is the longest key memcached takes, in bytes.
const maxKey = 250

// field cuts the first name=value off a line of them, separated by spaces. It
// returns false at the end of the line, or if what is there has no name.
func field(line []byte) (name, value, rest []byte, ok bool) {
	line = bytes.TrimLeft(line, " ")
	word, rest, _ := bytes.Cut(line, []byte{' '})
	name, value, ok = bytes.Cut(word, []byte{'='})
	return name, value, rest, ok && len(name) > 0
}

// appendKey undoes the percent encoding of a key. It returns false for what no
// memcached would write.
func appendKey(dst, encoded []byte) ([]byte, bool) {
	start := len(dst)
	for len(encoded) > 0 {
		i := bytes.IndexByte(encoded, '%')
		if i < 0 {
			dst = append(dst, encoded...)
			break
		}
		if len(encoded) < i+3 {
			return nil, false
		}
		hi, lo := unhex(encoded[i+1]), unhex(encoded[i+2])
		if hi < 0 || lo < 0 {
			return nil, false
		}
		dst = append(dst, encoded[:i]...)
		dst = append(dst, byte(hi<<4|lo))
		encoded = encoded[i+3:]
	}
	n := len(dst) - start
	return dst, n > 0 && n <= maxKey
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	}
	return -1
}

// number reads a whole number in decimal.
func number(b []byte) (int64, bool) {
	// The compiler keeps this conversion from allocating.
	n, err := strconv.ParseInt(string(b), 10, 64)
	return n, err == nil
}
