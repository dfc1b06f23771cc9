package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"
	"github.com/prometheus/exporter-toolkit/web"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/demo"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
	"github.com/stampede-exporter/stampede-exporter/internal/server"
)

// demoScenario is the only one so far: one hot key that expires again and again.
const demoScenario = "hot-key"

// demoCommand returns the command that shows a dogpile being caught.
func demoCommand(app *kingpin.Application) command {
	clause := app.Command("demo", "Run a real fleet under load, watch a dogpile being caught, and hold what is found against what happened. Exit with 1 if they differ.")
	d := &demoRun{}
	clause.Flag("for", "How long to keep the load up.").Default("60s").DurationVar(&d.lasts)
	clause.Flag("protect", "What keeps readers from recomputing at once: none, singleflight or xfetch.").Default(demo.ProtectNone).EnumVar(&d.o.Protect, demo.Protections()...)
	clause.Flag("redis.addr", "Redis to use, host:port; one key of it, which is deleted at the end. Default: one inside the process.").StringVar(&d.o.Redis)
	clause.Flag("instances", "Application instances.").Default("20").IntVar(&d.o.Instances)
	clause.Flag("rate", "Reads per second, of all instances together.").Default("300").Float64Var(&d.o.Rate)
	clause.Flag("recompute", "How long it takes to make a value anew.").Default("400ms").DurationVar(&d.o.Recompute)
	clause.Flag("ttl", "How long a value lives.").Default("3s").DurationVar(&d.o.TTL)
	clause.Flag("budget", "How many recomputes the origin can run at once.").Default("8").IntVar(&d.o.Budget)
	clause.Flag("seed", "Seed of the arrivals.").Default("1").Uint64Var(&d.o.Seed)
	clause.Flag("web.listen-address", "Address of the pages. If it is taken, and not set, any free port.").Default(defaultWebAddress).IsSetByUser(&d.addressSet).StringVar(&d.address)
	clause.Flag("output", "text or json.").Default("text").EnumVar(&d.output, "text", "json")
	return command{clause, d.run}
}

// demoRun is one run of the demo.
type demoRun struct {
	o          demo.Options
	lasts      time.Duration
	address    string
	addressSet bool
	output     string
}

// settled is how long nothing may have changed before the exporter is taken to
// have had its last look at the fleet: an episode is final, and its waste
// counted, two seconds after it ended.
const settled = 3500 * time.Millisecond

func (d *demoRun) run(ctx context.Context, env environment) error {
	if err := d.o.Validate(); err != nil {
		return err
	}
	show := newDemoScreen(env.stdout, d.output == "text")
	defer show.close()
	srv, err := d.exporter(env)
	if err != nil {
		return err
	}
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	var exporter sync.WaitGroup
	var failed error
	exporter.Go(func() { failed = srv.Run(serving) })
	defer exporter.Wait()
	defer stopServing()

	result, err := d.load(ctx, srv, show)
	if err == nil {
		err = d.report(env, show, result)
	}
	stopServing()
	exporter.Wait()
	return errors.Join(err, failed)
}

// exporter returns one that receives on free ports.
func (d *demoRun) exporter(env environment) (*server.Server, error) {
	start := func(address string) (*server.Server, error) {
		noFile, noSystemd := "", false
		return server.New(server.Options{
			Web:  &web.FlagConfig{WebListenAddresses: &[]string{address}, WebSystemdSocket: &noSystemd, WebConfigFile: &noFile},
			GRPC: "127.0.0.1:0", HTTP: "127.0.0.1:0",
			Logger:  slog.New(slog.NewTextHandler(env.stderr, &slog.HandlerOptions{Level: slog.LevelError})),
			Version: version.Version,
		})
	}
	srv, err := start(d.address)
	if err != nil && !d.addressSet {
		return start("127.0.0.1:0")
	}
	return srv, err
}

// load puts the fleet under load and returns what came of it.
func (d *demoRun) load(ctx context.Context, srv *server.Server, show *demoScreen) (*demo.Result, error) {
	d.o.Endpoint = srv.Addresses().GRPC.String()
	d.o.OnCycle = show.cycle
	rig, err := demo.New(ctx, d.o)
	if err != nil {
		return nil, err
	}
	show.intro(d, srv.Addresses().Web.String())
	loading, stop := context.WithTimeout(ctx, d.lasts)
	defer stop()
	var watching sync.WaitGroup
	watching.Go(func() { d.watch(loading, srv, show) })
	err = rig.Run(loading)
	watching.Wait()
	// From here on a second Ctrl-C ends the program at once.
	signal.Reset(os.Interrupt)
	ending := context.WithoutCancel(ctx)
	if err = errors.Join(err, rig.Drain(ending)); err != nil {
		return nil, errors.Join(err, rig.Close(ending))
	}
	settle(srv)
	r := &demo.Result{Scenario: demoScenario, Protect: d.o.Protect, Findings: findings(srv.Incidents()), Truth: rig.Truth()}
	r.Reads, r.Failed = rig.Reads()
	r.Found = demo.Account(srv.Totals(), r.Findings)
	r.Judge(d.o)
	return r, rig.Close(ending)
}

// watch shows each incident as it opens.
func (d *demoRun) watch(ctx context.Context, srv *server.Server, show *demoScreen) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	seen := map[string]bool{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, i := range srv.Incidents() {
			if !seen[i.ID] {
				seen[i.ID] = true
				show.incident(&i)
			}
		}
		show.status()
	}
}

// settle waits until the exporter has looked at everything.
func settle(srv *server.Server) {
	last, since := demo.Found{}, time.Now()
	for time.Since(since) < settled {
		time.Sleep(100 * time.Millisecond)
		if f := demo.Account(srv.Totals(), nil); f != last {
			last, since = f, time.Now()
		}
	}
}

// findings lists incidents, each with what it brought about.
func findings(incidents []incident.Incident) []demo.Finding {
	out := make([]demo.Finding, 0, len(incidents))
	for _, i := range incidents {
		out = append(out, demo.Finding{
			Detector: i.Detector, Cache: i.Cache, Key: i.Key.Group, Severity: i.Worst.Severity.String(),
			Onset: i.Onset, Detected: i.Opened, Cleared: i.Closed, Evidence: figures(i.Worst.Evidence),
		})
		for _, c := range i.Children {
			out = append(out, demo.Finding{
				Detector: c.Detector, Cache: c.Cache, Key: c.Key.Group, Severity: c.Severity.String(),
				Onset: c.Onset, Detected: c.Detected, Cleared: c.Cleared, Evidence: figures(c.Evidence),
			})
		}
	}
	return out
}

func figures(evidence []detectors.Evidence) map[string]float64 {
	out := make(map[string]float64, len(evidence))
	for _, e := range evidence {
		out[e.Name] = e.Value
	}
	return out
}

// report says what came of it; its error is that the two accounts differ.
func (d *demoRun) report(env environment, show *demoScreen, r *demo.Result) error {
	if d.output == "json" {
		enc := json.NewEncoder(env.stdout)
		enc.SetIndent("", "  ")
		if err := enc.Encode(r); err != nil {
			return fmt.Errorf("write result: %w", err)
		}
	} else {
		show.result(d, r)
	}
	if !r.OK {
		return errors.New("what the exporter found differs from what happened")
	}
	return nil
}
