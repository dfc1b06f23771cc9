package web

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// How many characters of a text from outside are shown: of a name, and of a
// sentence.
const (
	maxName     = 200
	maxSentence = 1000
)

// shown makes a name from outside fit to be read: see [cut].
func shown(s string) string { return cut(s, maxName) }

// cut makes a text from outside fit to be read: what does not print (control
// characters, newlines, marks that turn the direction of writing) is spelled
// out, and what follows the first limit characters is left out. Escaping for
// HTML is the template's part.
func cut(s string, limit int) string {
	var b strings.Builder
	n := 0
	for i, r := range s {
		if n++; n > limit {
			b.WriteString("…")
			break
		}
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}

// moment is an instant as the pages show it. The zero moment is unknown.
type moment struct {
	ISO   string // for machines
	Clock string // for people
	Ago   string
}

func momentOf(n signal.Nanos, now time.Time) moment {
	if n == 0 {
		return moment{}
	}
	t := n.Time()
	clock := t.Format("15:04:05")
	if t.Format(time.DateOnly) != now.UTC().Format(time.DateOnly) {
		clock = t.Format("2006-01-02 15:04:05")
	}
	return moment{ISO: t.Format(time.RFC3339Nano), Clock: clock, Ago: ago(now.Sub(t))}
}

func ago(d time.Duration) string {
	if d < time.Second {
		return "just now"
	}
	return span(d) + " ago"
}

// span returns d in the unit that fits it, with as many digits as matter.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + span(-d)
	case d < time.Millisecond:
		return strconv.FormatInt(d.Microseconds(), 10) + " µs"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < 10*time.Second:
		return digits(d.Seconds(), 3) + " s"
	case d < 2*time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < 2*time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + " h"
	}
	return strconv.Itoa(int(d.Hours()/24)) + " d"
}

// digits returns v with n significant digits, without an exponent where a
// person would not write one, and without trailing zeros.
func digits(v float64, n int) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v), math.IsInf(v, 0):
		return "unknown"
	case v == math.Trunc(v) && a < 1e15:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= math.Pow10(n) && a < 1e15:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	s := strconv.FormatFloat(v, 'g', n, 64)
	if strings.Contains(s, ".") && !strings.Contains(s, "e") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// quantity splits a number with a UCUM unit into what is shown big and what is
// shown beside it.
func quantity(v float64, unit string) (value, beside string) {
	noun, annotated := strings.CutPrefix(unit, "{")
	switch {
	case unit == "s" && math.Abs(v) < 1: // false for what is no number
		value, beside, _ = strings.Cut(span(time.Duration(v*float64(time.Second))), " ")
		return value, beside
	case annotated:
		return digits(v, 3), plural(strings.TrimSuffix(noun, "}"), v)
	case unit == "1":
		return digits(v, 3), ""
	}
	return digits(v, 3), unit
}

func plural(noun string, n float64) string {
	switch {
	case n == 1:
		return noun
	case strings.HasSuffix(noun, "y"):
		return strings.TrimSuffix(noun, "y") + "ies"
	}
	return noun + "s"
}

// percent returns part of whole in percent. All but a few of many is not all.
func percent(part, whole uint64) string {
	switch p := float64(part) / float64(whole) * 100; {
	case part < whole && p > 99.9:
		return "> 99.9 %"
	default:
		return digits(p, 3) + " %"
	}
}
