package keyspace

import (
	"fmt"
	"strings"
)

// captureMark stands in a lock pattern for the key the lock guards.
const captureMark = "{key}"

// LockPattern says which keys are locks. Its form is a prefix and a suffix with
// one mark between them: "*" for anything, or "{key}" for the key that the lock
// guards, such as "lock:{key}" or "{key}:lock".
type LockPattern struct {
	prefix, suffix string
	capture        bool
}

// ParseLockPattern reads a lock pattern.
func ParseLockPattern(s string) (LockPattern, error) {
	mark := "*"
	if strings.Contains(s, captureMark) {
		mark = captureMark
	}
	prefix, suffix, ok := strings.Cut(s, mark)
	if !ok || prefix == "" && suffix == "" || strings.Contains(suffix, "*") || strings.Contains(suffix, captureMark) || strings.Contains(prefix, "*") {
		return LockPattern{}, fmt.Errorf("lock pattern %q: want one * or {key}, and text before or after it, such as lock:{key}", s)
	}
	return LockPattern{prefix, suffix, mark == captureMark}, nil
}

// match reports whether key is a lock, and what it guards; empty if the pattern
// does not say.
func (p LockPattern) match(key string) (guarded string, ok bool) {
	if len(key) <= len(p.prefix)+len(p.suffix) || !strings.HasPrefix(key, p.prefix) || !strings.HasSuffix(key, p.suffix) {
		return "", false
	}
	if !p.capture {
		return "", true
	}
	return key[len(p.prefix) : len(key)-len(p.suffix)], true
}

// Matches reports whether key is a lock.
func (p LockPattern) Matches(key []byte) bool {
	_, ok := p.match(string(key))
	return ok
}
