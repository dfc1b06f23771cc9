package detectors

import "fmt"

// Config holds the configuration of every detector, by its id. The zero value
// gives each its defaults.
type Config struct {
	HotKeyExpiry HotKeyExpiryConfig `yaml:"hot-key-expiry,omitempty"`
}

// All returns a fresh instance of every detector, in the order of their ids. It
// fails if a configuration is out of range, and names the field.
func All(c Config) ([]Detector, error) {
	hotKeyExpiry, err := NewHotKeyExpiry(c.HotKeyExpiry)
	if err != nil {
		return nil, fmt.Errorf("configure %s: %w", hotKeyExpiryID, err)
	}
	return []Detector{
		hotKeyExpiry,
	}, nil
}

// Docs returns what every detector says of itself, in the order of their ids.
func Docs() []Doc {
	return []Doc{
		hotKeyExpiryDoc,
	}
}
