package otlp

import (
	"regexp"
	"strconv"
)

// The SDK's exporters report a receiver that refused some records of a request
// as an error, of a type they keep to themselves. Its text is all there is to
// tell it from a request that failed.
var partialSuccess = regexp.MustCompile(`(?s)^OTLP partial success: .*\((\d+) logs rejected\)$`)

// rejected returns how many records the receiver refused, and whether err says
// that it answered at all.
func rejected(err error) (n uint64, answered bool) {
	m := partialSuccess.FindStringSubmatch(err.Error())
	if m == nil {
		return 0, false
	}
	n, err = strconv.ParseUint(m[1], 10, 64)
	return n, err == nil
}
