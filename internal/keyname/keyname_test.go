package keyname_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stampede-exporter/stampede-exporter/internal/keyname"
)

func TestPatternKeepsANameAndNothingElse(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"feed:42":           "feed:*",
		"v2:feed:home":      "v2:feed:*",
		"v2:42:home":        "v2:*",
		"v2:feed":           "v2:feed",
		"homepage":          "homepage",
		"alice@example.eu":  "*",
		"4711:orders":       "*",
		"a key with spaces": "*",
		"\x00\xff":          "*",
		"":                  "(empty)",
	} {
		if got := keyname.Pattern(key); got != want {
			t.Errorf("the pattern of %q is %q, want %q", key, got, want)
		}
	}
}

func TestAnIDDependsOnSaltAndWholeKey(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, salt := range []string{"", "a", "ab"} {
		for _, key := range []string{"", "b", "bc", strings.Repeat("k", 1<<20), strings.Repeat("k", 1<<20) + "k"} {
			id := keyname.ID(keyname.Sum(salt, key)).String()
			if other, twice := seen[id]; twice {
				t.Errorf("key of %d bytes with salt %q has the id of %s", len(key), salt, other)
			}
			seen[id] = salt + "/" + key[:min(len(key), 8)]
		}
	}
	// Records of different releases are joined by it: it does not change.
	if got := keyname.ID(keyname.Sum("", "feed:42")).String(); got != "5e29a2475cb26bc2" {
		t.Errorf("the id of feed:42 is %s", got)
	}
}

func FuzzSafe(f *testing.F) {
	f.Add("feed:*")
	f.Add("\x00\xff\u202e")
	f.Add(strings.Repeat("\u00e9", 100))
	f.Fuzz(func(t *testing.T, name string) {
		got := keyname.Safe(name)
		if got == "" || len(got) > 64 || !utf8.ValidString(got) {
			t.Errorf("%q becomes %q", name, got)
		}
		if again := keyname.Safe(got); again != got {
			t.Errorf("%q becomes %q, and that %q", name, got, again)
		}
	})
}
