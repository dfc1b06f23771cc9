package redis

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

func pushed(parts ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(parts))
	for _, p := range parts {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(p), p)
	}
	return b.String()
}

func TestParsePush(t *testing.T) {
	tests := []struct {
		name, text string
		want       string // parts, joined
		n          int
		err        string
	}{
		{"an event", pushed("message", "__keyevent@0__:set", "feed:1"), "message|__keyevent@0__:set|feed:1", -1, ""},
		{"a key with line ends in it", pushed("message", "c", "a\r\n*3\r\n"), "message|c|a\r\n*3\r\n", -1, ""},
		{"an empty key", pushed("message", "c", ""), "message|c|", -1, ""},
		{"a confirmation", "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n", "subscribe|c|1", -1, ""},
		{"a pong", pushed("pong", ""), "pong|", -1, ""},
		{"a reply", "+OK\r\n", "OK", -1, ""},
		{"an error", "-NOPERM no\r\n", "NOPERM no", -1, ""},
		{"nothing", "", "", 0, ""},
		{"half a header", "*3\r", "", 0, ""},
		{"half a key", pushed("message", "c", "feed:1")[:30], "", 0, ""},
		{"another protocol", "HTTP/1.1 400 Bad Request\r\n", "", 0, "not Redis"},
		{"a line without end", strings.Repeat("*", 5000), "", 0, "more than 4096 bytes"},
		{"too many parts", "*4\r\n", "", 0, "want 1 to 3"},
		{"no parts", "*0\r\n", "", 0, "want 1 to 3"},
		{"an absurd length", "*1\r\n$99999999999\r\n", "", 0, "bytes"},
		{"a negative length", "*1\r\n$-2\r\n", "", 0, "bytes"},
		{"a part of the wrong length", "*1\r\n$1\r\nab\r\n", "", 0, "does not end"},
		{"a part that is an array", "*1\r\n*1\r\n", "", 0, "starts with"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			m, n, err := parsePush([]byte(tc.text))
			if tc.n < 0 {
				tc.n = len(tc.text)
			}
			if got := string(bytes.Join(m.parts[:m.n], []byte("|"))); got != tc.want || n != tc.n {
				t.Errorf("got %q of %d bytes, want %q of %d", got, n, tc.want, tc.n)
			}
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("got error %v, want %q", err, tc.err)
			}
		})
	}
}

func FuzzParsePush(f *testing.F) {
	f.Add([]byte(pushed("message", "__keyevent@0__:set", "feed:1")))
	f.Add([]byte("*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"))
	f.Add([]byte("*1\r\n$4194305\r\n"))
	f.Add([]byte("-ERR\r\n+OK\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, n, err := parsePush(b)
		if n < 0 || n > len(b) || n > 0 && err != nil || m.n > len(m.parts) || (n > 0) != (m.n > 0) {
			t.Fatalf("got %+v, %d of %d bytes, %v", m, n, len(b), err)
		}
		for cut := range n { // no part of a message is a message
			if _, short, err := parsePush(b[:cut]); short != 0 || err != nil {
				t.Fatalf("the first %d of %d bytes are %d bytes of a message, %v", cut, n, short, err)
			}
		}
	})
}

// TestPushReaderKeepsWhatADeadlineCutOff feeds messages in small pieces, with a
// deadline after each.
func TestPushReaderKeepsWhatADeadlineCutOff(t *testing.T) {
	huge := strings.Repeat("k", maxPart+1)
	text := pushed("message", "c", "first") + pushed("message", "c", strings.Repeat("k", maxPart)) + pushed("message", "c", huge) + pushed("message", "c", "last")
	near, far := net.Pipe()
	defer near.Close()
	go func() {
		defer far.Close()
		for b := []byte(text); len(b) > 0; {
			n := min(len(b), 100_003)
			_, _ = far.Write(b[:n])
			b = b[n:]
		}
	}()
	p := pushReader{conn: near}
	var got []string
	for {
		m, ok, err := p.next()
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			got = append(got, fmt.Sprintf("%d+%d", len(m.parts[2]), m.over))
			continue
		}
		if _, err := p.fill(time.Now().Add(time.Second)); err != nil {
			break // the end
		}
	}
	want := fmt.Sprintf("[5+0 %d+0 0+%d 4+0]", maxPart, maxPart+3)
	if fmt.Sprint(got) != want {
		t.Errorf("got keys of %v bytes, want %s", got, want)
	}
}
