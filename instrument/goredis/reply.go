package goredis

import (
	"errors"

	"github.com/redis/go-redis/v9"
)

// result is how a lookup ended.
type result uint8

const (
	unseen result = iota // the reply cannot be read
	hit
	miss
	failed
)

// resultOf returns what an error says about the lookup of one value.
func resultOf(err error) result {
	switch {
	case err == nil:
		return hit
	case isNil(err):
		return miss
	}
	return failed
}

// isNil reports whether err is the server's answer that there is no value.
func isNil(err error) bool { return err == redis.Nil || errors.Is(err, redis.Nil) }

// elements returns the values of a reply that is a list.
func elements(cmd redis.Cmder) ([]any, bool) {
	switch c := cmd.(type) {
	case *redis.SliceCmd:
		return c.Val(), true
	case *redis.Cmd:
		v, ok := c.Val().([]any)
		return v, ok
	}
	return nil, false
}

// resultAt returns what the i-th of a reply's values says.
func resultAt(values []any, i int) result {
	if i >= len(values) {
		return unseen
	}
	switch v := values[i].(type) {
	case nil:
		return miss
	case error:
		return resultOf(v)
	}
	return hit
}

// resultOfAny returns what a reply's values say about the hash they are of.
func resultOfAny(values []any) result {
	all := unseen
	for i := range values {
		if r := resultAt(values, i); r != miss {
			return r
		}
		all = miss
	}
	return all
}

// resultOfAll returns what a whole hash says: an empty one is none.
func resultOfAll(cmd redis.Cmder) result {
	n := -1
	switch c := cmd.(type) {
	case *redis.MapStringStringCmd:
		n = len(c.Val())
	case *redis.Cmd:
		switch v := c.Val().(type) {
		case map[any]any:
			n = len(v)
		case []any:
			n = len(v)
		}
	}
	switch {
	case n < 0:
		return unseen
	case n == 0:
		return miss
	}
	return hit
}

// number returns a reply that is a number or a truth value. A nil reply is
// zero. It returns false if the reply is something else, or there is none.
func number(cmd redis.Cmder, err error) (int64, bool) {
	if err != nil {
		return 0, isNil(err)
	}
	var value any
	switch c := cmd.(type) {
	case *redis.IntCmd:
		return c.Val(), true
	case *redis.BoolCmd:
		value = c.Val()
	case *redis.Cmd:
		value = c.Val()
	default:
		return 0, false
	}
	switch v := value.(type) {
	case int64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case nil:
		return 0, true
	}
	return 0, false
}

// succeeded reports whether a command that answers OK, or how much it did, did
// anything.
func succeeded(cmd redis.Cmder, err error) bool {
	n, ok := number(cmd, err)
	return err == nil && (!ok || n > 0)
}

// raw reports whether cmd's reply is not parsed, so that nil and errors in it
// go unnoticed.
func raw(cmd redis.Cmder) bool {
	switch cmd.(type) {
	case *redis.RawCmd, *redis.RawWriteToCmd:
		return true
	}
	return false
}
