package build

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// board is a dashboard.
type board struct {
	uid, title, description string
	rows                    []row
}

// row is a line of panels, or several, under a heading.
type row struct {
	title  string
	panels []panel
}

// panel is one picture. It is a graph over time unless stat is set.
type panel struct {
	title       string
	description string // how to read it, and what is bad
	unit        string // as Grafana calls it
	width       uint32 // of 24; those of a line must fill it
	stat        bool   // one big figure
	noValue     string // what a figure shows without data
	max         *float64
	warn, alarm *float64 // where a value turns orange, and red
	queries     []query
}

// Heights of panels, in units of Grafana's grid.
const (
	statHeight  = 4
	graphHeight = 8
)

// build makes the dashboard.
func (b board) build() (dashboard.Dashboard, error) {
	d := dashboard.NewDashboardBuilder(b.title).
		Uid(b.uid).
		Description(b.description).
		Tags([]string{"cache", "stampede"}).
		Readonly().
		Refresh("10s").
		Time("now-30m", "now").
		Timezone(common.TimeZoneBrowser).
		Tooltip(dashboard.DashboardCursorSyncCrosshair)
	for _, v := range variables() {
		d.WithVariable(v)
	}
	var id uint32
	for _, r := range b.rows {
		id++
		d.WithRow(dashboard.NewRowBuilder(r.title).Id(id))
		for _, p := range r.panels {
			id++
			d.WithPanel(p.builder(id))
		}
	}
	return d.Build()
}

func (p panel) builder(id uint32) cog.Builder[dashboard.Panel] {
	if p.stat {
		return p.figure(id)
	}
	return p.graph(id)
}

func (p panel) figure(id uint32) *stat.PanelBuilder {
	color := common.BigValueColorModeValue
	if p.warn == nil && p.alarm == nil {
		color = common.BigValueColorModeNone // green would say that it is good
	}
	b := stat.NewPanelBuilder().
		Id(id).
		Title(p.title).
		Description(p.description).
		Datasource(source()).
		Unit(p.unit).
		Span(p.width).
		Height(statHeight).
		NoValue(p.noValue).
		Thresholds(p.thresholds()).
		ColorMode(color).
		GraphMode(common.BigValueGraphModeArea).
		Orientation(common.VizOrientationAuto).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}))
	for i, q := range p.queries {
		b.WithTarget(q.builder(i))
	}
	return b
}

func (p panel) graph(id uint32) *timeseries.PanelBuilder {
	b := timeseries.NewPanelBuilder().
		Id(id).
		Title(p.title).
		Description(p.description).
		Datasource(source()).
		Unit(p.unit).
		Span(p.width).
		Height(graphHeight).
		Min(0).
		FillOpacity(10).
		ShowPoints(common.VisibilityModeNever).
		Legend(common.NewVizLegendOptionsBuilder().
			ShowLegend(true).
			DisplayMode(common.LegendDisplayModeList).
			Placement(common.LegendPlacementBottom)).
		Tooltip(common.NewVizTooltipOptionsBuilder().
			Mode(common.TooltipDisplayModeMulti).
			Sort(common.SortOrderDescending))
	if p.max != nil {
		b.Max(*p.max)
	}
	if p.alarm != nil {
		b.Thresholds(p.thresholds()).
			ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed))
	}
	for i, q := range p.queries {
		b.WithTarget(q.builder(i))
	}
	return b
}

// thresholds are green, then orange from warn and red from alarm.
func (p panel) thresholds() *dashboard.ThresholdsConfigBuilder {
	steps := []dashboard.Threshold{{Color: "green"}}
	if p.warn != nil {
		steps = append(steps, dashboard.Threshold{Value: p.warn, Color: "orange"})
	}
	if p.alarm != nil {
		steps = append(steps, dashboard.Threshold{Value: p.alarm, Color: "red"})
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)
}

// builder makes the i-th query of a panel.
func (q query) builder(i int) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().
		RefId(string(rune('A' + i))).
		Datasource(source()).
		Expr(q.expr).
		LegendFormat(q.legend).
		Range()
}

// source refers to the Prometheus that the variable datasource names.
func source() common.DataSourceRef {
	return common.DataSourceRef{Type: new("prometheus"), Uid: new("${datasource}")}
}
