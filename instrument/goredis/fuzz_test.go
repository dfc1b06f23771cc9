package goredis_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stampede-exporter/stampede-exporter/instrument/goredis"
)

// bytesReader deals out fuzzed bytes, and zeros when there are none left.
type bytesReader struct{ data []byte }

func (r *bytesReader) next() int {
	if len(r.data) == 0 {
		return 0
	}
	b := r.data[0]
	r.data = r.data[1:]
	return int(b)
}

func (r *bytesReader) text() string {
	n := min(r.next(), len(r.data))
	s := string(r.data[:n])
	r.data = r.data[n:]
	return s
}

var words = []string{
	"get", "GetEx", "mget", "hget", "hmget", "hgetall", "set", "SETEX", "psetex", "setnx", "getset", "mset", "msetnx",
	"msetex", "hset", "hmset", "hsetnx", "hdel", "expire", "pexpire", "expireat", "pexpireat", "persist", "del", "unlink",
	"getdel", "delex", "eval", "EVALSHA", "ex", "px", "exat", "PXAT", "keepttl", "nx", "XX", "ifeq", "1", "-1", "lock:k", "k", "token",
}

// value returns any argument or reply.
func (r *bytesReader) value() any {
	switch r.next() % 16 {
	case 0:
		return nil
	case 1:
		return r.text()
	case 2:
		return []byte(r.text())
	case 3:
		return int64(r.next()) - 128
	case 4:
		return -1 << 63
	case 5:
		return (*hostile)(nil)
	case 6:
		return []any{r.value(), nil, "v"}
	case 7:
		return map[any]any{"f": r.next()}
	case 8:
		return redis.Nil
	case 9:
		return r.next()%2 == 0
	case 10:
		return time.Duration(r.next())
	case 11:
		return (*time.Time)(nil)
	case 12:
		return struct{ f func() }{}
	}
	return words[r.next()%len(words)]
}

// command returns any command with any reply.
func (r *bytesReader) command() redis.Cmder {
	args := make([]any, r.next()%9)
	for i := range args {
		args[i] = r.value()
	}
	ctx := context.Background()
	switch r.next() % 10 {
	case 0:
		return redis.NewStatusCmd(ctx, args...)
	case 1:
		return redis.NewStringCmd(ctx, args...)
	case 2:
		return number(int64(r.next())-128, args...)
	case 3:
		return truth(r.next()%2 == 0, args...)
	case 4:
		return list([]any{r.value(), r.value()}, args...)
	case 5:
		return hash(map[string]string{}, args...)
	case 6:
		return redis.NewRawCmd(ctx, args...)
	case 7:
		return redis.NewXMessageSliceCmd(ctx, args...)
	}
	return anything(r.value(), args...)
}

var replies = []error{nil, nil, nil, redis.Nil, redis.TxFailedErr, context.Canceled, errors.Join(redis.Nil, errServer), errServer}

// FuzzHook sends arbitrary commands with arbitrary replies. The hook must
// survive them, hand on the error as it is and leave the command alone.
func FuzzHook(f *testing.F) {
	f.Add([]byte("a command"))
	for i := range len(words) {
		f.Add([]byte{6, 14, byte(i), 14, 40, 14, 41, 14, 29, 14, 37, 14, 34, 9, 3, 1})
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &bytesReader{data}
		o := goredis.Options{MaxLocks: 2}
		switch r.next() % 3 {
		case 1:
			o.LockKey = isLock
		case 2:
			o.HashFields = func(string) bool { return true }
		}
		w := newWatch(t, o)
		var batch []redis.Cmder
		for range 1 + r.next()%8 {
			cmd, err := r.command(), replies[r.next()%len(replies)]
			before := fmt.Sprint(cmd.Args())
			if got := w.run(cmd, err); got != err {
				t.Errorf("the hook returned %v, want %v", got, err)
			}
			if cmd.Err() != nil {
				t.Errorf("the hook set an error: %v", cmd.Err())
			}
			if after := fmt.Sprint(cmd.Args()); after != before {
				t.Errorf("the hook changed %s to %s", before, after)
			}
			w.clock.Step(time.Duration(r.next()) * time.Second)
			batch = append(batch, cmd)
		}
		whole := replies[r.next()%len(replies)]
		pipeline := w.hook.ProcessPipelineHook(func(context.Context, []redis.Cmder) error { return whole })
		if got := pipeline(context.Background(), batch); got != whole {
			t.Errorf("the hook returned %v for a pipeline, want %v", got, whole)
		}
		w.monitor.Flush()
	})
}
