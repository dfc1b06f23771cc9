package memcached

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// pieces gives one piece a read, and an error for an empty one.
type pieces struct {
	list []string
	err  error
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.list) == 0 {
		return 0, io.EOF
	}
	s := p.list[0]
	p.list = p.list[1:]
	if s == "" {
		return 0, p.err
	}
	return copy(b, s), nil
}

func TestLinesAreTheSameHoweverTheyCome(t *testing.T) {
	const text = "OK\r\none\ntwo\n\r\n\nlast\n"
	want := []string{"OK", "one", "two", "", "", "last"}
	for name, r := range map[string]io.Reader{
		"at once":                strings.NewReader(text),
		"byte by byte":           iotest.OneByteReader(strings.NewReader(text)),
		"with the end in a read": iotest.DataErrReader(strings.NewReader(text)),
	} {
		l := newLines(r)
		var got []string
		for {
			line, err := l.line()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(line))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestALineGoesOnAfterADeadline(t *testing.T) {
	l := newLines(&pieces{[]string{"half a ", "", "line\n"}, os.ErrDeadlineExceeded})
	if _, err := l.line(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("got %v, want the deadline", err)
	}
	if line, err := l.line(); string(line) != "half a line" || err != nil {
		t.Errorf("got %q and %v", line, err)
	}
}

func TestALineHasABound(t *testing.T) {
	l := newLines(strings.NewReader(strings.Repeat("x", 10*readSize)))
	if _, err := l.line(); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("got %v, want an error that says so", err)
	}
}

func TestAReaderThatGivesNothingIsAnError(t *testing.T) {
	l := newLines(&pieces{[]string{""}, nil})
	if _, err := l.line(); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("got %v", err)
	}
}
