package goredis

import (
	"context"
	"fmt"
	"hash/maphash"

	"github.com/redis/go-redis/v9"

	"github.com/stampede-exporter/stampede-exporter/instrument"
)

// Hook tells a monitor what goes through a go-redis client. It never changes a
// command, its reply or its error, never blocks, and is safe for concurrent
// use. One hook may serve several clients of the same cache. A nil *Hook does
// nothing.
type Hook struct {
	m     *instrument.Monitor
	opt   Options
	seed  maphash.Seed
	roles roles
	locks *locks
}

var _ redis.Hook = (*Hook)(nil)

// NewHook returns a hook that reports to m. With a nil m it does nothing.
func NewHook(m *instrument.Monitor, o Options) (*Hook, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("make go-redis hook: %w", err)
	}
	return &Hook{
		m:     m,
		opt:   o,
		seed:  maphash.MakeSeed(),
		locks: newLocks(o.MaxLocks, o.LockKey != nil),
	}, nil
}

func (h *Hook) off() bool { return h == nil || h.m == nil }

// DialHook implements [redis.Hook]. It adds nothing.
func (h *Hook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements [redis.Hook].
func (h *Hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	if h.off() {
		return next
	}
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		h.observe(ctx, cmd, err)
		return err
	}
}

// ProcessPipelineHook implements [redis.Hook], for pipelines and transactions.
func (h *Hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	if h.off() {
		return next
	}
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		h.observeAll(ctx, cmds, err)
		return err
	}
}

// observeAll takes each command by its own error. If the whole failed and no
// command says why, as when another hook refused it, they all did.
func (h *Hook) observeAll(ctx context.Context, cmds []redis.Cmder, whole error) {
	for _, cmd := range cmds {
		if cmd.Err() != nil {
			whole = nil
			break
		}
	}
	for _, cmd := range cmds {
		err := cmd.Err()
		if err == nil {
			err = whole
		}
		h.observe(ctx, cmd, err)
	}
}

// call is a command that came back.
type call struct {
	ctx  context.Context
	cmd  redis.Cmder
	args []any
	err  error
	key  string // args[1]; for a few commands not a key
}

// observe takes one command that came back with err. Nothing is cheaper than a
// GET that found something: it is what a healthy cache sees most.
func (h *Hook) observe(ctx context.Context, cmd redis.Cmder, err error) {
	args := cmd.Args()
	if len(args) < 2 {
		return
	}
	o := opOf(args[0])
	if o == opOther || raw(cmd) {
		return
	}
	key, ok := text(args[1])
	if !ok {
		return
	}
	if o == opGet && err == nil && h.opt.LockKey == nil {
		h.m.Hit(key)
		return
	}
	c := call{ctx: ctx, cmd: cmd, args: args, err: err, key: key}
	switch {
	case o <= opHGetAll:
		h.lookup(o, &c)
	case o <= opHDel:
		h.store(o, &c)
	default:
		h.change(o, &c)
	}
}
