package memcached

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseItem(t *testing.T) {
	const real = "key=k%2525%2C exp=1796077382 la=1796077322 cas=17 fetch=no cls=1 size=70"
	tests := []struct {
		name, line string
		want       *item // nil if it is refused
	}{
		{"a line of a real server", real, &item{[]byte("k%25,"), at(1796077382, 0)}},
		{"fields in another order", "exp=7 key=a", &item{[]byte("a"), at(7, 0)}},
		{"a value that never expires", "key=a exp=-1 la=1", &item{[]byte("a"), 0}},
		{"a line of a later version", real + " flags=0 ext_page=1 ext_offset=2 ", &item{[]byte("k%25,"), at(1796077382, 0)}},
		{"nothing", "", nil},
		{"no key", "exp=7 la=1", nil},
		{"no expiry", "key=a la=1", nil},
		{"an expiry below never", "key=a exp=-2", nil},
		{"an expiry beyond time", "key=a exp=9223372036854775807", nil},
		{"an expiry that is no number", "key=a exp=soon", nil},
		{"a key that is cut", "key=%0 exp=7", nil},
		{"a key that is too long", "key=" + strings.Repeat("%41", 251) + " exp=7", nil},
		{"the answer of another server", "+OK", nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var buf []byte
			got, ok := parseItem([]byte(tc.line), &buf)
			if ok != (tc.want != nil) {
				t.Fatalf("taken is %v, got %+v", ok, got)
			}
			if ok {
				if diff := cmp.Diff(*tc.want, got, cmp.AllowUnexported(item{})); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

func FuzzParseItem(f *testing.F) {
	f.Add([]byte("key=a exp=-1"))
	f.Add([]byte("key=%FF exp=1796077382 la=1796077322"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var buf []byte
		it, ok := parseItem(b, &buf)
		if ok && (len(it.key) == 0 || len(it.key) > maxKey || it.expiry < 0) {
			t.Errorf("got %+v", it)
		}
	})
}
