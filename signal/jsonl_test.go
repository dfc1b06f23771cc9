package signal_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

func records() []signal.Record {
	src := signal.Source{Service: "shop", Instance: "shop-1", Build: "v1.2.3"}
	w := signal.Window{
		Source: src, Cache: "feeds", Key: signal.Key{ID: 0xabcdef, Group: "feed:*", Text: "feed:\n</script>"},
		Generation: "g7", Start: epoch, End: epoch + 1_000_000_000, Unknown: signal.UnknownStarts,
		Lookups: signal.Lookups{Hits: 3, Misses: 120}, MissPeak: 120, InFlightPeak: 64, Duplicates: 63,
		Busy: 3 * time.Second, BusyMax: time.Second, Intervals: burst(3), Sampled: true,
		Stores: signal.Stores{Count: 1, ExpiryMin: epoch + 5, ExpiryMax: epoch + 5, TTLMin: 5, TTLMax: 5},
		Shares: []signal.Share{{Source: src, Recomputes: 64, InFlightPeak: 64, MissPeak: 120}},
	}
	w.Recomputes.Started[signal.CauseExpired] = 64
	w.Recomputes.Ended[signal.CauseExpired][signal.OutcomeOK] = 61
	return []signal.Record{
		{Window: &w},
		{Vitals: &signal.Vitals{Source: src, Cache: "feeds", At: epoch, Uptime: time.Minute, Origin: signal.Origin{Name: "db", Budget: 8}, Closing: true}},
	}
}

func TestRecordsComeBack(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := signal.NewWriter(&b)
	for _, r := range records() {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if n := bytes.Count(b.Bytes(), []byte("\n")); n != len(records()) {
		t.Errorf("%d lines: want %d", n, len(records()))
	}
	got, errs := readAll(signal.NewReader(&b))
	if errs != nil {
		t.Fatal(errs)
	}
	if diff := cmp.Diff(records(), got); diff != "" {
		t.Error(diff)
	}
}

func TestWriterRefusesARecordOfNothing(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := signal.NewWriter(&b).Write(signal.Record{}); err == nil || b.Len() > 0 {
		t.Errorf("error is %v, %d bytes written", err, b.Len())
	}
}

// readAll reads to the end, past damaged lines.
func readAll(r *signal.Reader) (recs []signal.Record, errs []string) {
	for {
		rec, err := r.Read()
		var bad *signal.LineError
		switch {
		case errors.As(err, &bad):
			errs = append(errs, err.Error())
		case errors.Is(err, io.EOF):
			return recs, errs
		case err != nil:
			return recs, append(errs, err.Error())
		default:
			recs = append(recs, rec)
		}
	}
}

const vitalsLine = `{"vitals":{"service":"a","cache":"c","at":1,"uptime":1,"lookups":{},"recomputes":{},"tracked":0,"overflowed":0,"dropped":0}}`

func TestReaderGoesOnAfterADamagedLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		in      string
		records int
		errs    []string
	}{
		{"nothing at all", "", 0, nil},
		{"blank lines are no records", "\n  \n" + vitalsLine + "\n\n", 1, nil},
		{"a last line needs no newline", vitalsLine, 1, nil},
		{"carriage returns are blanks", vitalsLine + "\r\n" + vitalsLine + "\r\n", 2, nil},
		{"garbage names its line", vitalsLine + "\nnot json\n" + vitalsLine, 2, []string{"line 2: invalid character 'o' in literal null (expecting 'u')"}},
		{"a cut last line", vitalsLine + "\n" + vitalsLine[:40], 1, []string{"line 2: unexpected end of JSON input"}},
		{"a record of nothing", "\n{}\n" + vitalsLine, 1, []string{`line 2: want exactly one of "window" and "vitals"`}},
		{"a record of both", `{"window":{},"vitals":{}}`, 0, []string{`line 1: want exactly one of "window" and "vitals"`}},
		{"unknown fields are ignored", `{"vitals":{"new":1},"newer":2}`, 1, nil},
		{"an unknown cause", `{"window":{"intervals":[{"id":1,"start":1,"cause":"boredom"}]}}`, 0,
			[]string{`line 1: parse cause "boredom": want one of ["unknown" "expired" "cold" "evicted" "invalidated" "early" "warmup" "negative"]`}},
		{"a line beyond the bound", vitalsLine + "\n" + strings.Repeat("x", signal.MaxLine+1) + "\n" + vitalsLine, 2, []string{"line 2: longer than 4194304 bytes"}},
		{"a line beyond the bound at the end", strings.Repeat("x", 3*signal.MaxLine), 0, []string{"line 1: longer than 4194304 bytes"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			recs, errs := readAll(signal.NewReader(strings.NewReader(tt.in)))
			if len(recs) != tt.records {
				t.Errorf("%d records: want %d", len(recs), tt.records)
			}
			if diff := cmp.Diff(tt.errs, errs); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReaderStopsWhenReadingFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk on fire")
	r := signal.NewReader(io.MultiReader(strings.NewReader(vitalsLine+"\n"), iotest.ErrReader(broken)))
	if _, err := r.Read(); err != nil {
		t.Fatal(err)
	}
	_, err := r.Read()
	if !errors.Is(err, broken) || err.Error() != "read line 2: disk on fire" {
		t.Errorf("error is %v", err)
	}
}

func FuzzReader(f *testing.F) {
	var b bytes.Buffer
	w := signal.NewWriter(&b)
	for _, r := range records() {
		if err := w.Write(r); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(b.Bytes())
	f.Add([]byte("{}\n\nnull\n[]\n" + vitalsLine))
	f.Fuzz(func(t *testing.T, in []byte) {
		recs, errs := readAll(signal.NewReader(bytes.NewReader(in)))
		if lines := bytes.Count(in, []byte("\n")) + 1; len(recs)+len(errs) > lines {
			t.Fatalf("%d records and %d errors from %d lines", len(recs), len(errs), lines)
		}
		var out bytes.Buffer
		w := signal.NewWriter(&out)
		for _, r := range recs {
			if err := w.Write(r); err != nil {
				t.Fatalf("what was read does not write: %v", err)
			}
		}
		again, errs := readAll(signal.NewReader(&out))
		if errs != nil {
			t.Fatalf("what was written does not read: %v", errs)
		}
		if diff := cmp.Diff(recs, again); diff != "" {
			t.Fatal(diff)
		}
	})
}
