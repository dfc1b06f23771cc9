package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	promconfig "github.com/prometheus/common/config"
	yaml "go.yaml.in/yaml/v3"

	"github.com/stampede-exporter/stampede-exporter/internal/strictyaml"
)

// maxFileBytes bounds a configuration file. A real one has a few kilobytes; the
// bound keeps a wrong path, such as a device, from filling the memory.
const maxFileBytes = 1 << 20

// Load reads and checks the file at path. Relative paths in it are taken from
// its folder. An error about the contents is a [*strictyaml.Error].
func Load(path string) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read configuration %q: %w", path, err)
	}
	if len(text) > maxFileBytes {
		return nil, fmt.Errorf("read configuration %q: more than %d bytes", path, maxFileBytes)
	}
	c, err := Parse(text)
	var wrong *strictyaml.Error
	if errors.As(err, &wrong) {
		wrong.File = path
	}
	if err != nil {
		return nil, err
	}
	c.setDirectory(filepath.Dir(path))
	return c, nil
}

// Parse reads and checks text. An error is a [*strictyaml.Error].
func Parse(text []byte) (*Config, error) {
	c := Default()
	if err := strictyaml.Decode(text, c, c.check); err != nil {
		return nil, err
	}
	return c, nil
}

// setDirectory makes relative paths start at dir.
func (c *Config) setDirectory(dir string) {
	if t := c.OTLP.TLS; t != nil {
		t.CertFile = promconfig.JoinDir(dir, t.CertFile)
		t.KeyFile = promconfig.JoinDir(dir, t.KeyFile)
		t.ClientCAFile = promconfig.JoinDir(dir, t.ClientCAFile)
	}
	if a := c.Alertmanager; a != nil {
		a.HTTP.SetDirectory(dir)
	}
	for i := range c.Probes {
		p := &c.Probes[i]
		p.PasswordFile = promconfig.JoinDir(dir, p.PasswordFile)
		p.SentinelPasswordFile = promconfig.JoinDir(dir, p.SentinelPasswordFile)
		p.TLS.SetDirectory(dir)
	}
}

// String returns c as YAML with every secret replaced, fit to be shown.
func (c *Config) String() string {
	text, err := yaml.Marshal(c)
	if err != nil {
		return fmt.Sprintf("# cannot show the configuration: %v\n", err)
	}
	return string(text)
}
