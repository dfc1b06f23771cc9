package config

import (
	"fmt"
	"time"

	promconfig "github.com/prometheus/common/config"
	yaml "go.yaml.in/yaml/v3"

	"github.com/stampede-exporter/stampede-exporter/alerts"
	"github.com/stampede-exporter/stampede-exporter/internal/strictyaml"
)

// Default returns the configuration of an empty file.
func Default() *Config {
	return &Config{
		RunbookURL: alerts.DefaultRunbooks,
		OTLP:       OTLP{MaxRequestBytes: 16 << 20},
		Fleet:      Fleet{MaxKeys: 100_000, MaxSources: 20_000, Lateness: 2 * time.Second},
	}
}

// UnmarshalYAML fills in defaults for what the file leaves out. It has the
// form with a function because the form with a node would decode without the
// check for unknown fields.
func (a *Alertmanager) UnmarshalYAML(unmarshal func(any) error) error {
	*a = Alertmanager{MinSeverity: "ticket", Resend: 30 * time.Second, Timeout: 10 * time.Second, HTTP: promconfig.DefaultHTTPClientConfig}
	type plain Alertmanager
	return strictyaml.At(unmarshal((*plain)(a)), "alertmanager", "http_config")
}

// UnmarshalYAML refuses what is not a whole number, which the decoder would
// round.
func (c *Count) UnmarshalYAML(n *yaml.Node) error {
	if tag := n.ShortTag(); tag != "!!int" {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: cannot unmarshal %s `%s` into int", n.Line, tag, n.Value)}}
	}
	return n.Decode((*int)(c))
}
