package semconv

import "strings"

// AlertName returns the name of the alert of the detector called id:
// StampedeHotKeyExpiry for hot-key-expiry. An alert that is pushed and one that
// a Prometheus rule raises are the same alert only if they are called the same.
func AlertName(id string) string {
	name := "Stampede"
	for word := range strings.SplitSeq(id, "-") {
		if word != "" {
			name += strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return name
}
