package live

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/instrument/goredis"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// process is one life of one instance.
type process struct {
	r        *Rig
	instance int
	ctx      context.Context // of its life
	die      context.CancelFunc
	plain    *redis.Client   // without a hook: for looks that are no lookups
	hooked   []*redis.Client // by cache
	monitors []*instrument.Monitor
	out      *outbox
	flights  singleflight.Group // by the text of keys
	room     waitingRoom
}

// newClient returns a client with patience: a machine that is busy is no failure
// of the server. It sends nothing twice: a lock that was taken would be refused to
// whoever took it.
func newClient(addr string) *redis.Client {
	const patience = 20 * time.Second
	return redis.NewClient(&redis.Options{
		Addr: addr, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1,
		PoolSize: 8, DialTimeout: patience, PoolTimeout: patience, ReadTimeout: patience, WriteTimeout: patience,
	})
}

// startProcess puts a new process in the place of instance i.
func (r *Rig) startProcess(i int) error {
	p := &process{r: r, instance: i, plain: newClient(r.o.Redis), out: &outbox{r: r}}
	p.ctx, p.die = context.WithCancel(r.ctx)
	r.mu.Lock()
	r.all = append(r.all, p)
	r.mu.Unlock()
	for _, c := range r.caches {
		if err := p.connect(c); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slots[i] = p
	r.listUp()
	return nil
}

// connect gives p a client of c, and a monitor unless nobody watches.
func (p *process) connect(c *cache) error {
	r := p.r
	var m *instrument.Monitor // nil does nothing
	if r.o.Report != nil {
		var err error
		if m, err = instrument.New(c.name, p.options(c)); err != nil {
			return err
		}
		m.Attach(p.out)
	}
	p.monitors = append(p.monitors, m)
	hook, err := goredis.NewHook(m, goredis.Options{LockKey: func(key string) (string, bool) {
		guarded, ok := strings.CutPrefix(key, r.prefix+lockPart)
		return r.prefix + valuePart + guarded, ok
	}})
	if err != nil {
		return err
	}
	rdb := newClient(r.o.Redis)
	rdb.AddHook(hook)
	p.hooked = append(p.hooked, rdb)
	return rdb.Ping(p.ctx).Err() // so that nobody waits for a connection later
}

// options are those of the monitor of c.
func (p *process) options(c *cache) instrument.Options {
	o := signal.Origin{Name: c.origin.name}
	if c.origin.cfg.Declared {
		o.Budget = c.origin.cfg.Concurrency
	}
	return instrument.Options{
		Service:    rig.Service,
		Instance:   fmt.Sprintf("lab-%02d", p.instance),
		Build:      p.r.sc.Fleet.Build,
		Origin:     o,
		Claims:     rig.Claims(&c.cfg, c.cfg.Protect),
		MaxKeys:    max(64, 8*len(c.entries)),
		MaxBytes:   1 << 30,
		MaxWindows: max(1024, len(c.entries)),
		Privacy:    instrument.PrivacyRaw,
		Salt:       rig.Service,
		// The prefix is the lab's own affair.
		Group: func(key string) string { return instrument.Pattern(p.r.textOf(key)) },
	}
}

// textOf returns what the scenario calls a key on the server.
func (r *Rig) textOf(key string) string { return strings.TrimPrefix(key, r.prefix+valuePart) }

// kill ends p without a word, and with it all that it is doing; another takes
// its place after down.
func (p *process) kill(down time.Duration) {
	r := p.r
	p.out.mute()
	r.mu.Lock()
	serving := r.slots[p.instance] == p
	if serving {
		r.slots[p.instance] = nil
		r.listUp()
	}
	r.mu.Unlock()
	p.die()
	if !serving {
		return
	}
	r.work.Go(func() {
		if pause(r.ctx, down) {
			r.fail(r.ctx, "start an instance", r.startProcess(p.instance))
		}
	})
}

// listUp lists the processes that take requests. r.mu is held.
func (r *Rig) listUp() {
	r.up = nil
	for _, p := range r.slots {
		if p != nil {
			r.up = append(r.up, p)
		}
	}
}

// close says p's last words, and frees what it has. Its work must have ended.
func (p *process) close() {
	p.die()
	for _, m := range p.monitors {
		_ = m.Close() // it returns nil
	}
	for _, c := range append(p.hooked, p.plain) {
		_ = c.Close() // nothing is under way
	}
}
