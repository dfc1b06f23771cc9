package memcached

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// at is an instant in the lines below.
func at(s int64, us int64) signal.Nanos {
	return signal.Nanos(time.Duration(s)*time.Second + time.Duration(us)*time.Microsecond)
}

// line is one of a real server's log.
const line = "ts=1796077317.480070 gid=4 type=item_store key=a%3A1 status=stored cmd=set ttl=5 clsid=1 cfd=25 size=1"

func TestParseRecordReadsWhatARealServerWrites(t *testing.T) {
	tests := []struct {
		name, line string
		want       record
	}{
		{"a get that finds nothing", "ts=1796077317.419985 gid=2 type=item_get key=nope status=not_found clsid=0 cfd=25 size=0",
			record{gid: 2, at: at(1796077317, 419985), conn: 25, kind: got, key: []byte("nope")}},
		{"microseconds are not padded", "ts=1796077318.41243 gid=19 type=item_get key=noexp status=found clsid=1 cfd=25 size=1",
			record{gid: 19, at: at(1796077318, 41243), conn: 25, kind: got, found: value, key: []byte("noexp")}},
		{"a get that finds a value past its expiry", "ts=1796077371.670809 gid=973 type=item_get key=hot status=expired clsid=0 cfd=26 size=0",
			record{gid: 973, at: at(1796077371, 670809), conn: 26, kind: got, found: outdated, key: []byte("hot")}},
		{"a get that finds a value from before a flush", "ts=1796077371.670903 gid=974 type=item_get key=fl status=flushed clsid=0 cfd=26 size=0",
			record{gid: 974, at: at(1796077371, 670903), conn: 26, kind: got, found: flushed, key: []byte("fl")}},
		{"a store", line,
			record{gid: 4, at: at(1796077317, 480070), conn: 25, kind: stored, ttl: 5, key: []byte("a:1")}},
		{"an add that is refused", "ts=1796077317.628832 gid=9 type=item_store key=a status=not_stored cmd=add ttl=5 clsid=1 cfd=25 size=1",
			record{gid: 9, at: at(1796077317, 628832), conn: 25, kind: refused, ttl: 5, key: []byte("a")}},
		{"an append makes no new value", "ts=1796077317.628832 gid=9 type=item_store key=a status=stored cmd=append ttl=5 clsid=1 cfd=25 size=1",
			record{gid: 9, at: at(1796077317, 628832), conn: 25, kind: refused, ttl: 5, key: []byte("a")}},
		{"a time to live that is over comes unsigned", "ts=1796077317.990794 gid=18 type=item_store key=neg status=stored cmd=set ttl=4294967232 clsid=1 cfd=25 size=1",
			record{gid: 18, at: at(1796077317, 990794), conn: 25, kind: stored, ttl: -64, key: []byte("neg")}},
		{"a value that is too large, with a connection that is none", "ts=1796077323.220433 gid=57 type=item_store key=big status=too_large cmd=set ttl=0 clsid=25 cfd=-1417565536 size=0",
			record{gid: 57, at: at(1796077323, 220433), conn: -1417565536, kind: failed, key: []byte("big")}},
		{"a binary key", "ts=1796077322.726396 gid=46 type=item_store key=%00%01%20%FF status=stored cmd=set ttl=60 clsid=1 cfd=25 size=2",
			record{gid: 46, at: at(1796077322, 726396), conn: 25, kind: stored, ttl: 60, key: []byte("\x00\x01 \xff")}},
		{"an eviction", "ts=1796077400.5 gid=90 type=eviction key=k fetch=no ttl=-1 la=7 clsid=3 size=100",
			record{gid: 90, at: at(1796077400, 5), kind: evicted, ttl: -1, key: []byte("k")}},
		{"a deletion", "ts=1796077400.5 gid=91 type=deleted key=k cmd=md clsid=3 size=100",
			record{gid: 91, at: at(1796077400, 5), kind: deleted, key: []byte("k")}},
		{"lines that were left out", "skipped=12", record{kind: skipped, count: 12}},
		{"a line of another type", "ts=1.5 gid=9 type=slab_move src=1 dst=2", record{}},
		{"a line of another type whose fields look odd", "ts=1.5 gid=9 type=proxy_req cfd=x ttl=y key=%", record{}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var buf []byte
			got, ok := parseRecord([]byte(tc.line), &buf)
			if !ok {
				t.Fatal("refused")
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(record{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRecordRefusesWhatNoMemcachedWrites(t *testing.T) {
	replace := func(old, new string) string { return strings.Replace(line, old, new, 1) }
	tests := []struct{ name, line string }{
		{"nothing", ""},
		{"something else", "HTTP/1.1 400 Bad Request"},
		{"no instant", replace("ts=1796077317.480070 ", "")},
		{"an instant without a fraction", replace(".480070", "")},
		{"more than a second of microseconds", replace(".480070", ".1000000")},
		{"an instant beyond time", replace("1796077317", "9223372036854775807")},
		{"no number", replace("gid=4 ", "")},
		{"a number below zero", replace("gid=4", "gid=-4")},
		{"no type", replace("type=item_store ", "")},
		{"no key", replace("key=a%3A1 ", "")},
		{"an empty key", replace("a%3A1", "")},
		{"a key that is cut", replace("a%3A1", "a%3")},
		{"a key that is no hexadecimal", replace("%3A", "%3G")},
		{"a key that is too long", replace("a%3A1", strings.Repeat("x", 251))},
		{"a time to live that is no number", replace("ttl=5", "ttl=x")},
		{"a time to live that is too long", replace("ttl=5", "ttl=4294967296")},
		{"a connection that is no number", replace("cfd=25", "cfd=")},
		{"no lines left out", "skipped=0"},
		{"lines left out that are no number", "skipped=many"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var buf []byte
			if got, ok := parseRecord([]byte(tc.line), &buf); ok {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestParseRecordDoesNotAllocate(t *testing.T) {
	buf := make([]byte, 0, maxKey)
	text := []byte(line)
	allocs := testing.AllocsPerRun(100, func() {
		if _, ok := parseRecord(text, &buf); !ok {
			t.Fatal("refused")
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations a line, want none", allocs)
	}
}

func FuzzParseRecord(f *testing.F) {
	f.Add([]byte(line))
	f.Add([]byte("skipped=12"))
	f.Add([]byte("ts=1.1 gid=1 type=item_get key=%00 status=expired cfd=1"))
	f.Add([]byte("ts=1.1 gid=1 type=eviction key=%"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var buf []byte
		r, ok := parseRecord(b, &buf)
		if !ok {
			return
		}
		switch r.kind {
		case ignored:
		case skipped:
			if r.count == 0 {
				t.Error("no lines were skipped")
			}
		default:
			if len(r.key) == 0 || len(r.key) > maxKey || r.at <= 0 {
				t.Errorf("got %+v", r)
			}
		}
	})
}
