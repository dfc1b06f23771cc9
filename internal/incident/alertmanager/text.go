package alertmanager

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stampede-exporter/stampede-exporter/detectors"
)

// printable returns s with everything that does not print escaped as in a Go
// string (line breaks, control and direction characters, broken UTF-8), cut to
// at most max bytes and an ellipsis. Alerts end in chats and mails, and names
// of groups and caches come from the network.
func printable(s string, max int) string {
	var b strings.Builder
	for i, r := range s {
		piece := string(r)
		if broken := r == utf8.RuneError && !strings.HasPrefix(s[i:], piece); broken {
			piece = fmt.Sprintf(`\x%02x`, s[i])
		} else if !unicode.IsPrint(r) {
			piece = strings.Trim(strconv.QuoteRune(r), "'")
		}
		if b.Len()+len(piece) > max {
			b.WriteString("…")
			break
		}
		b.WriteString(piece)
	}
	return b.String()
}

// annotationName returns name as Alertmanager's templates can address it.
func annotationName(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '_'
	}, name)
	if clean == "" || unicode.IsDigit(rune(clean[0])) {
		return "_" + clean
	}
	return clean
}

// formatEvidence returns e for humans, such as "240 recomputes (budget 8)".
func formatEvidence(e detectors.Evidence) string {
	text := formatValue(e.Value, e.Unit)
	if e.Note != "" {
		text += " (" + e.Note + ")"
	}
	return text
}

// formatValue returns v in a UCUM unit for humans.
func formatValue(v float64, unit string) string {
	thing, counts := strings.CutPrefix(unit, "{")
	switch {
	case unit == "" || unit == "1":
		return formatNumber(v)
	case unit == "%":
		return formatNumber(v) + "%"
	case unit == "s" && math.Abs(v) < 1e9: // beyond, a time.Duration overflows
		return formatSeconds(v)
	case counts:
		return formatNumber(v) + " " + plural(strings.TrimSuffix(thing, "}"), v)
	}
	return formatNumber(v) + " " + unit
}

// formatNumber returns whole numbers as they are and others to three digits.
func formatNumber(v float64) string {
	switch abs := math.Abs(v); {
	case v == math.Trunc(v) && abs < 1e15:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case abs >= 100 && abs < 1e15:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// formatSeconds returns a time to about three digits: 412ms, 12.4s, 1h12m5s.
func formatSeconds(v float64) string {
	d := time.Duration(v * float64(time.Second))
	switch abs := d.Abs(); {
	case abs >= 100*time.Second:
		d = d.Round(time.Second)
	case abs >= time.Second:
		d = d.Round(10 * time.Millisecond)
	case abs >= time.Millisecond:
		d = d.Round(10 * time.Microsecond)
	}
	return d.String()
}

// plural returns the English plural of a thing counted, unless v is one.
func plural(thing string, v float64) string {
	if v == 1 || thing == "" {
		return thing
	}
	for _, end := range []string{"s", "x", "sh", "ch"} {
		if strings.HasSuffix(thing, end) {
			return thing + "es"
		}
	}
	if stem, ok := strings.CutSuffix(thing, "y"); ok && !strings.HasSuffix(thing, "key") {
		return stem + "ies"
	}
	return thing + "s"
}
