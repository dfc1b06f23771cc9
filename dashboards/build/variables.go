package build

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
)

// variables are what a reader may choose: the Prometheus to ask, the job of the
// exporter, and the caches to look at. The caches are those an exporter or an
// application reports on.
func variables() []cog.Builder[dashboard.VariableModel] {
	return []cog.Builder[dashboard.VariableModel]{
		dashboard.NewDatasourceVariableBuilder("datasource").
			Label("Data source").
			Type("prometheus"),
		choice("job", "Exporter job", labelValues(series(semconv.FleetKeys), "job")),
		choice("cache", "Cache", labelValues(
			fmt.Sprintf(`{__name__=~"%s|%s"}`, semconv.InstancesReporting.Name, semconv.TrackedKeys.Name), semconv.LabelCache)),
	}
}

// choice is a variable with any number of the values a query finds; all of them
// at first.
func choice(name, label, query string) *dashboard.QueryVariableBuilder {
	return dashboard.NewQueryVariableBuilder(name).
		Label(label).
		Datasource(source()).
		Query(dashboard.StringOrMap{String: new(query)}).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
		Sort(dashboard.VariableSortAlphabeticalAsc).
		Multi(true).
		IncludeAll(true).
		AllValue(".*").
		Current(dashboard.VariableOption{
			Selected: new(true),
			Text:     dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}},
			Value:    dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
		})
}

func labelValues(series, label string) string {
	return fmt.Sprintf("label_values(%s, %s)", series, label)
}
