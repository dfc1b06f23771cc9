package goredis

import (
	"encoding"
	"net"
	"reflect"
	"strconv"
	"time"
)

// text returns a command's argument as the client sends it, and false for one
// it cannot send. It allocates unless arg is a string.
func text(arg any) (string, bool) {
	switch v := arg.(type) {
	case string:
		return v, true
	case nil:
		return "", true
	case *string:
		if v == nil {
			return "", true
		}
		return *v, true
	case []byte:
		return string(v), true
	case net.IP:
		return string(v), true
	case time.Time:
		return v.Format(time.RFC3339Nano), true
	case *time.Time:
		if v == nil {
			v = new(time.Time)
		}
		return v.Format(time.RFC3339Nano), true
	case encoding.BinaryMarshaler:
		return marshal(v)
	}
	return scalar(reflect.ValueOf(arg))
}

// marshal calls somebody else's code, which a client that was not reached, or
// was replaced by a stub, may not have called before: hence the recover.
func marshal(v encoding.BinaryMarshaler) (s string, ok bool) {
	defer func() {
		if recover() != nil {
			s, ok = "", false
		}
	}()
	b, err := v.MarshalBinary()
	return string(b), err == nil
}

// scalar returns a number or truth value, or what a pointer to one points to.
func scalar(v reflect.Value) (string, bool) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v = reflect.Zero(v.Type().Elem())
		} else {
			v = v.Elem()
		}
	}
	switch {
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10), true
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10), true
	case v.CanFloat():
		return strconv.FormatFloat(v.Float(), 'f', -1, 64), true
	case v.Kind() == reflect.Bool && v.Bool():
		return "1", true
	case v.Kind() == reflect.Bool:
		return "0", true
	}
	return "", false
}

// integer returns an argument that is a whole number.
func integer(arg any) (int64, bool) {
	switch v := arg.(type) {
	case int64:
		return v, true
	case int:
		return int64(v), true
	}
	s, ok := text(arg)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}
