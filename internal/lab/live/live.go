package live

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	rnd "math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

// Options configure a [Rig].
type Options struct {
	// Redis is the host:port of the server to use. Required.
	Redis string
	// Seed of arrivals and of what else is left to chance. It replaces the
	// scenario's, unless it is zero. It does not make a run repeatable: the
	// machine has its say.
	Seed uint64
	// Calm switches off what amplifies load: one attempt a request, results
	// that come late still fill the cache, and no error deletes a key.
	Calm bool
	// Report takes what one process says, from one goroutine at a time, which
	// none of the functions given to [Rig.After] runs beside. It is the
	// receiver's to keep. Nil: the processes are not watched.
	Report func(rig.Report)
}

// Rig is one run. Make it with [New], and run it once.
type Rig struct {
	o      Options
	sc     *scenario.Scenario
	prefix string        // of every key
	admin  *redis.Client // for what no process is told of
	start  time.Time

	origins   []*origin
	caches    []*cache
	workloads []*workload

	ctx  context.Context // of all that the fleet does
	end  context.CancelCauseFunc
	work sync.WaitGroup // all that the fleet does

	begun   chan struct{} // closed once code of others may be called
	outside sync.Mutex    // held while code of others runs
	over    bool          // that code is called no more; guarded by outside
	reports sync.WaitGroup

	mu      sync.Mutex // guards what follows, and the origins, entries and workloads
	account *rig.Account
	choices *rnd.Rand
	slots   []*process // by instance; nil while it is away
	up      []*process // those that take requests
	all     []*process
	figures map[string]float64
	onsets  []rig.Onset
	tally   Tally
}

// reachTimeout is how long the server has to answer at first. One that is not
// there is known at once.
const reachTimeout = 10 * time.Second

// New connects the fleet of sc, which must have passed its checks, to the
// server. The time of the run begins when it returns; call Run at once, for it
// frees what New took.
func New(ctx context.Context, sc *scenario.Scenario, o Options) (_ *Rig, err error) {
	if errs := Check(sc); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if o.Seed == 0 {
		o.Seed = sc.Seed
	}
	r := &Rig{
		o: o, sc: sc,
		prefix:  "stampede-lab:" + rand.Text()[:12] + ":",
		admin:   newClient(o.Redis),
		account: rig.NewAccount(sc.Duration),
		choices: rnd.New(rnd.NewPCG(o.Seed, 3)),
		slots:   make([]*process, sc.Fleet.Instances),
		begun:   make(chan struct{}),
	}
	r.ctx, r.end = context.WithCancelCause(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			close(r.begun)
			err = errors.Join(err, r.close())
		}
	}()
	if err := r.reach(ctx); err != nil {
		return nil, err
	}
	r.build()
	for i := range sc.Fleet.Instances {
		if err := r.startProcess(i); err != nil {
			return nil, fmt.Errorf("start instance %d: %w", i, err)
		}
	}
	r.start = time.Now()
	return r, nil
}

// reach makes sure that the server answers, before anything depends on it.
func (r *Rig) reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	if err := r.admin.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("reach redis at %s: %w", r.o.Redis, err)
	}
	return nil
}

// build makes what the scenario has besides processes.
func (r *Rig) build() {
	byName := map[string]*origin{}
	for _, name := range slices.Sorted(maps.Keys(r.sc.Origins)) {
		byName[name] = newOrigin(r, name, r.sc.Origins[name])
		r.origins = append(r.origins, byName[name])
	}
	for _, name := range slices.Sorted(maps.Keys(r.sc.Caches)) {
		c := r.sc.Caches[name]
		r.caches = append(r.caches, newCache(r, len(r.caches), name, c, byName[c.Origin]))
	}
	for i := range r.sc.Workloads {
		r.workloads = append(r.workloads, newWorkload(r, i))
	}
}

// Now returns the time.
func (r *Rig) Now() time.Time { return time.Now() }

// now returns the nanoseconds since the start.
func (r *Rig) now() int64 { return int64(time.Since(r.start)) }

// After calls f in d from now, unless the run is over by then.
func (r *Rig) After(d time.Duration, f func()) {
	time.AfterFunc(d, func() {
		r.outside.Lock()
		defer r.outside.Unlock()
		if !r.over {
			f()
		}
	})
}

// Run runs to the end, or until ctx is done. A machine that does not keep up makes
// it longer: whoever was to come before the end has come by then. It may be called
// once.
func (r *Rig) Run(ctx context.Context) error {
	close(r.begun)
	stop := context.AfterFunc(ctx, func() { r.end(ctx.Err()) })
	defer stop()
	var due sync.WaitGroup
	for i := range r.sc.Events {
		if e := &r.sc.Events[i]; e.At == 0 { // before anybody reads
			r.happen(e)
		} else {
			due.Go(func() {
				if r.until(int64(e.At)) {
					r.happen(e)
				}
			})
		}
	}
	for _, w := range r.workloads {
		due.Go(w.run)
	}
	done := r.until(int64(r.sc.Duration))
	due.Wait()
	r.settle()
	r.end(nil)
	r.work.Wait()
	err := r.close()
	if !done {
		err = errors.Join(context.Cause(r.ctx), err)
	}
	if err != nil {
		return fmt.Errorf("run scenario %q: %w", r.sc.Name, err)
	}
	return nil
}

// settle closes the account. What ends after it is broken off by the end of the
// run, and is no part of the figures.
func (r *Rig) settle() {
	r.mu.Lock()
	r.figures, r.onsets = r.sum(), slices.Clone(r.account.Onsets(int64(r.sc.Duration)))
	r.mu.Unlock()
	r.outside.Lock()
	r.over = true
	r.outside.Unlock()
}

// fail ends the run because of err, unless what failed was broken off.
func (r *Rig) fail(ctx context.Context, doing string, err error) {
	if err != nil && ctx.Err() == nil {
		r.end(fmt.Errorf("%s: %w", doing, err))
	}
}

// close lets the processes say their last words, deletes what the run has
// written, and closes the connections.
func (r *Rig) close() error {
	r.end(nil)
	for _, p := range r.all {
		p.close()
	}
	r.reports.Wait()
	return errors.Join(r.clean(), r.admin.Close())
}

// until waits for an instant, and reports whether it came before the end of the
// run.
func (r *Rig) until(at int64) bool { return pause(r.ctx, time.Duration(at-r.now())) }

// pause waits, and reports whether ctx lasted that long.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
