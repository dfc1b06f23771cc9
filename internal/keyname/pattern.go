package keyname

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxGroupName is the longest name of a group, in bytes.
const maxGroupName = 64

// maxSegment is the longest part of a key that is taken for the name of a
// family.
const maxSegment = 32

// Pattern names the family of a key by convention: keys start with the name of
// what they hold, then a separator (one of : / | . #), then what tells them
// apart. It keeps the first part, if that reads like a name, and a version in
// front of it, and nothing else, because the rest may be private:
//
//	feed:42          feed:*
//	v2:feed:home     v2:feed:*
//	homepage         homepage
//	alice@example.eu *
//
// Keys that are made otherwise need a function of their own.
func Pattern(key string) string {
	if key == "" {
		return "(empty)"
	}
	head, rest, more := cutSegment(key)
	if more && isVersion(head) {
		second, _, deeper := cutSegment(rest)
		switch {
		case !isName(second):
			return head + key[len(head):len(head)+1] + "*"
		case !deeper:
			return key
		}
		n := len(head) + 1 + len(second) + 1
		return key[:n] + "*"
	}
	switch {
	case !isName(head):
		return "*"
	case !more:
		return key
	}
	return key[:len(head)+1] + "*"
}

// cutSegment splits key at its first separator.
func cutSegment(key string) (head, rest string, found bool) {
	if i := strings.IndexAny(key[:min(len(key), maxSegment+1)], ":/|.#"); i >= 0 {
		return key[:i], key[i+1:], true
	}
	return key, "", false
}

// isName reports whether s reads like a word a programmer chose: letters, and
// dashes or underscores between them.
func isName(s string) bool {
	if s == "" || len(s) > maxSegment {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c != '-' && c != '_') {
			return false
		}
	}
	return true
}

// isVersion reports whether s is a v and one or two digits.
func isVersion(s string) bool {
	if len(s) < 2 || len(s) > 3 || s[0] != 'v' {
		return false
	}
	return strings.Trim(s[1:], "0123456789") == ""
}

// Safe makes s fit to be a label and to be shown: valid, printable, at most
// maxGroupName bytes.
func Safe(s string) string {
	if s == "" {
		return "(empty)"
	}
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s[:min(len(s), 4*maxGroupName)])
	for len(s) > maxGroupName {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return s
}
