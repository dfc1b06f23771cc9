package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"
	"github.com/prometheus/exporter-toolkit/web"
	webflag "github.com/prometheus/exporter-toolkit/web/kingpinflag"

	"github.com/stampede-exporter/stampede-exporter/internal/config"
	"github.com/stampede-exporter/stampede-exporter/internal/server"
)

// defaultWebAddress is on the loopback interface: pages name caches, key groups
// and services, and are shown to whoever can reach them.
const defaultWebAddress = "127.0.0.1:9917"

// serve is the command that receives, detects and tells.
type serve struct {
	configFile, stateFile string
	grpc, http            string
	web                   *web.FlagConfig
	probes                probeFlags
}

func serveCommand(app *kingpin.Application) command {
	clause := app.Command("serve", "Receive, probe, detect, export and notify. This is what runs if no command is given.").Default()
	s := &serve{web: webflag.AddFlags(clause, defaultWebAddress)}
	clause.Flag("config.file", "Configuration file. Everything in it is optional, and without one the exporter runs on its defaults.").StringVar(&s.configFile)
	clause.Flag("otlp.grpc.listen-address", "Address to receive OTLP over gRPC on.").Default("127.0.0.1:4317").StringVar(&s.grpc)
	clause.Flag("otlp.http.listen-address", "Address to receive OTLP over HTTP on, at /v1/logs.").Default("127.0.0.1:4318").StringVar(&s.http)
	clause.Flag("state.file", "File to keep incidents in, so that they survive a restart; what detectors have learnt goes beside it. Default: none, and a restart forgets both.").StringVar(&s.stateFile)
	s.probes.add(clause)
	return command{clause, s.run}
}

func (s *serve) run(ctx context.Context, env environment) error {
	env.log.Info("Starting "+name, "version", version.Info(), "build", version.BuildContext())
	o := server.Options{
		Web:       s.web,
		GRPC:      s.grpc,
		HTTP:      s.http,
		StateFile: s.stateFile,
		Logger:    env.log,
		Version:   version.Version,
	}
	var read func() (*config.Config, error)
	if s.configFile != "" {
		read = func() (*config.Config, error) { return config.Load(s.configFile) }
		o.Load = s.probes.load(read)
	}
	c, err := s.probes.load(read)()
	if err != nil {
		return err
	}
	o.Config = c
	if err := web.Validate(*s.web.WebConfigFile); err != nil {
		return err
	}
	srv, err := server.New(o)
	if err != nil {
		return err
	}
	defer reloadOnHangup(srv, env)()
	return srv.Run(ctx)
}

// reloadOnHangup reloads the configuration at each SIGHUP until the function it
// returns is called.
func reloadOnHangup(srv *server.Server, env environment) (stop func()) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			case <-hangups:
				if _, err := srv.Reload(); err != nil {
					env.log.Error("The configuration was not reloaded; the old one stays in force", "err", err)
				}
			}
		}
	}()
	return func() {
		signal.Stop(hangups)
		close(quit)
		<-done
	}
}
