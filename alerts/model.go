package alerts

// File is a Prometheus rule file.
type File struct {
	Groups []Group `yaml:"groups"`
}

// Group is a list of rules that are evaluated one after another.
type Group struct {
	Name     string `yaml:"name"`
	Interval string `yaml:"interval,omitempty"` // default: that of the server
	Rules    []Rule `yaml:"rules"`
}

// Rule is one alerting rule. Durations are as Prometheus writes them: "1m30s".
type Rule struct {
	Alert         string            `yaml:"alert"`
	Expr          string            `yaml:"expr"`
	For           string            `yaml:"for,omitempty"`
	KeepFiringFor string            `yaml:"keep_firing_for,omitempty"`
	Labels        map[string]string `yaml:"labels,omitempty"`
	Annotations   map[string]string `yaml:"annotations"`
}

// Severities, the values of the label severity, as detectors name them.
const (
	page   = "page"
	ticket = "ticket"
)

// annotations are what every alert tells a human. The texts are templates of
// Prometheus.
func annotations(summary, description, runbook string) map[string]string {
	return map[string]string{
		"summary":     summary,
		"description": description,
		"runbook_url": runbook,
	}
}
