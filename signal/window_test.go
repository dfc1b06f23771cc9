package signal_test

import (
	"encoding"
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

func TestShiftThereAndBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := window(t)
		d := time.Duration(rapid.Int64Range(-int64(epoch)+1, int64(epoch)).Draw(t, "by"))
		before := clone(w)
		w.Shift(d)
		shifted := clone(w)
		w.Shift(-d)
		if diff := gocmp.Diff(before, w); diff != "" {
			t.Fatalf("there and back by %v (-before +after):\n%s", d, diff)
		}
		for i, iv := range shifted.Intervals {
			was := before.Intervals[i]
			if iv.Start.Sub(was.Start) != d || iv.Running() != was.Running() || (!iv.Running() && iv.End.Sub(was.End) != d) {
				t.Fatalf("interval %+v shifted by %v is %+v", was, d, iv)
			}
		}
	})
}

func TestShiftLeavesAloneWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	w := signal.Window{Start: epoch, End: epoch + 1, Generation: "1790000000", Intervals: []signal.Interval{{ID: 1, Start: epoch}}}
	w.Shift(time.Second)
	want := signal.Window{Start: epoch.Add(time.Second), End: epoch.Add(time.Second) + 1, Generation: "1790000000",
		Intervals: []signal.Interval{{ID: 1, Start: epoch.Add(time.Second)}}}
	if diff := gocmp.Diff(want, w); diff != "" {
		t.Errorf("shifted (-want +got):\n%s", diff)
	}
}

func TestInstants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := signal.Nanos(rapid.Int64().Draw(t, "instant"))
		if got := signal.At(n.Time()); got != n {
			t.Fatalf("%d comes back as %d", n, got)
		}
		if n != 0 && n.Time().Location() != time.UTC {
			t.Fatal("its time is not in UTC")
		}
	})
	if !signal.Nanos(0).Time().IsZero() || signal.At(time.Time{}) != 0 || signal.Nanos(0).Add(time.Second) != 0 {
		t.Error("an unknown instant does not stay unknown")
	}
}

func TestLookupsAddUp(t *testing.T) {
	t.Parallel()
	l := signal.Lookups{Hits: 1, Misses: 2, Stale: 3, Errors: 4}
	l.Add(signal.Lookups{Hits: 10, Misses: 20, Stale: 30, Errors: 40})
	if l != (signal.Lookups{Hits: 11, Misses: 22, Stale: 33, Errors: 44}) || l.Total() != 110 {
		t.Errorf("%+v, %d in all", l, l.Total())
	}
}

func TestRecomputesAreCountedByCause(t *testing.T) {
	t.Parallel()
	var r signal.Recomputes
	if !r.IsZero() {
		t.Error("nothing is something")
	}
	for c := range signal.NumCauses {
		r.Started[c] = 1
		r.Ended[c][signal.OutcomeOK] = uint64(c)
	}
	if r.Starts() != 8 || r.Provoked() != 5 || r.Ends(signal.OutcomeOK) != 28 || r.Ends(signal.OutcomeFailed) != 0 || r.IsZero() {
		t.Errorf("%d started, %d provoked, %d ended well, %d failed", r.Starts(), r.Provoked(), r.Ends(signal.OutcomeOK), r.Ends(signal.OutcomeFailed))
	}
}

func TestUnknownIsASet(t *testing.T) {
	t.Parallel()
	u := signal.UnknownStarts | signal.UnknownLocks
	for f, want := range map[signal.Unknown]bool{
		signal.UnknownStarts: true, signal.UnknownLocks: true, u: true, 0: true,
		signal.UnknownEarly: false, signal.UnknownEarly | signal.UnknownStarts: false,
	} {
		if u.Has(f) != want {
			t.Errorf("%b has %b: %v, want %v", u, f, !want, want)
		}
	}
}

// text is what has a text form.
type text interface {
	encoding.TextMarshaler
	fmt.Stringer
}

func TestTextFormsComeBack(t *testing.T) {
	t.Parallel()
	comesBack := func(t interface{ Fatalf(string, ...any) }, v text, back encoding.TextUnmarshaler, same func() bool) {
		b, err := v.MarshalText()
		if err != nil || string(b) != v.String() {
			t.Fatalf("%v is written as %q, %v", v, b, err)
		}
		if err := back.UnmarshalText(b); err != nil || !same() {
			t.Fatalf("%q comes back as %v, %v", b, back, err)
		}
	}
	for c := range signal.NumCauses {
		var back signal.Cause
		comesBack(t, c, &back, func() bool { return back == c })
	}
	for o := range signal.NumOutcomes {
		var back signal.Outcome
		comesBack(t, o, &back, func() bool { return back == o })
	}
	rapid.Check(t, func(t *rapid.T) {
		id := signal.KeyID(rapid.Uint64().Draw(t, "id"))
		var back signal.KeyID
		comesBack(t, id, &back, func() bool { return back == id })
	})
}

func TestNumbersFromTheFutureHaveANameThatIsNotTakenBack(t *testing.T) {
	t.Parallel()
	var c signal.Cause
	if got := (signal.NumCauses + 1).String(); got != "cause(9)" || c.UnmarshalText([]byte(got)) == nil {
		t.Errorf("cause 9 is called %q, and taken back as %v", got, c)
	}
	var o signal.Outcome
	if got := signal.NumOutcomes.String(); got != "outcome(5)" || o.UnmarshalText([]byte(got)) == nil {
		t.Errorf("outcome 5 is called %q, and taken back as %v", got, o)
	}
}

func FuzzUnmarshalText(f *testing.F) {
	for _, s := range []string{"", "expired", "ok", "timed_out", "Expired", "expired ", "cause(9)", "0123456789abcdef", "0123456789ABCDEF",
		"0x23456789abcdef", "+123456789abcdef", "0123_56789abcdef", "0123456789abcdeg", "\xff\x00", strings.Repeat("f", 17)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		check := func(v text, err error, same func(a, b string) bool) {
			if err == nil && !same(v.String(), string(b)) {
				t.Errorf("%q is taken for %v", b, v)
			}
			if err != nil && v.String() != zeroOf(v) {
				t.Errorf("%q is refused, and %v left behind", b, v)
			}
		}
		equal := func(a, b string) bool { return a == b }
		var c signal.Cause
		check(&c, c.UnmarshalText(b), equal)
		var o signal.Outcome
		check(&o, o.UnmarshalText(b), equal)
		var id signal.KeyID
		check(&id, id.UnmarshalText(b), strings.EqualFold)
	})
}

// zeroOf returns the text of v's zero.
func zeroOf(v text) string {
	if _, ok := v.(*signal.KeyID); ok {
		return "0000000000000000"
	}
	return "unknown"
}
