package instrument

import "github.com/stampede-exporter/stampede-exporter/internal/keyname"

// Pattern names the family of a key by convention: keys start with the name of
// what they hold, then a separator (one of : / | . #), then what tells them
// apart. It keeps the first part, if that reads like a name, and a version in
// front of it, and nothing else, because the rest may be private:
//
//	feed:42          feed:*
//	v2:feed:home     v2:feed:*
//	homepage         homepage
//	alice@example.eu *
//
// Give [Options.Group] where keys are made otherwise.
func Pattern(key string) string { return keyname.Pattern(key) }
