package memcached

import "testing"

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]version{
		"1.6.18":                 {1, 6, 18},
		"1.6.39_beta":            {1, 6, 39},
		"1.6":                    {1, 6, 0},
		"2":                      {2, 0, 0},
		"":                       {},
		"v1.6":                   {},
		"1..6":                   {1, 0, 0},
		"1.6.18.2":               {1, 6, 18},
		"1.99999999999999999999": {1, 0, 0},
	} {
		if got := parseVersion(text); got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
}

func TestVersionsAreOrderedByNumber(t *testing.T) {
	list := []version{{}, {1, 4, 31}, {1, 6, 9}, {1, 6, 18}, {1, 6, 19}, {1, 10, 0}, {2, 0, 0}}
	for i, a := range list {
		for j, b := range list {
			if got := a.before(b); got != (i < j) {
				t.Errorf("%v before %v is %v", a, b, got)
			}
		}
	}
}
