package docgen

import (
	"io/fs"

	"github.com/stampede-exporter/stampede-exporter/detectors"
)

// All returns every document made here, by its path in the module. root is the
// module's source.
func All(root fs.FS) (map[string][]byte, error) {
	metrics, err := Metrics(root)
	if err != nil {
		return nil, err
	}
	list, err := detectors.All(detectors.Config{})
	if err != nil {
		return nil, err
	}
	docs := make([]detectors.Doc, len(list))
	for i, d := range list {
		docs[i] = d.Doc()
	}
	return map[string][]byte{
		"docs/metrics.md":   metrics,
		"docs/detectors.md": Detectors(docs, detectors.Relations()),
	}, nil
}
