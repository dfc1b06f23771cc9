package ingest

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds on texts, in bytes.
const (
	maxSourceText = 256 // service, instance, build
	maxCacheText  = 200 // cache, origin
	maxGroupText  = 128
	maxKeyText    = 512
	maxGeneration = 256
)

// checkName returns why s is no good as a name, or "". Names end up on pages, in
// alerts and as labels: each place escapes what it shows, but a name with control
// characters is never meant, and refusing it here is one place and not ten.
func checkName(s string, limit int) (reason string) {
	if len(s) > limit {
		return ReasonTooLong
	}
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' {
			return checkUnicode(s[i:])
		}
	}
	return ""
}

func checkUnicode(s string) (reason string) {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return ReasonBadText
	}
	return ""
}
