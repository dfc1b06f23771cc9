package signal_test

import (
	"reflect"
	"testing"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

func TestEveryFieldOfClaimsCounts(t *testing.T) {
	for i := range reflect.TypeFor[signal.Claims]().NumField() {
		var c signal.Claims
		f := reflect.ValueOf(&c).Elem().Field(i)
		switch f.Kind() {
		case reflect.Slice:
			f.Set(reflect.ValueOf([]string{signal.ProtectLock}))
		case reflect.Float64:
			f.SetFloat(0.5)
		default:
			f.SetInt(1)
		}
		name := reflect.TypeFor[signal.Claims]().Field(i).Name
		if c.IsZero() {
			t.Errorf("with a %s, claims are said to be empty", name)
		}
		if c.Equal(signal.Claims{}) || (signal.Claims{}).Equal(c) {
			t.Errorf("with a %s, claims are said to equal empty ones", name)
		}
		if !c.Equal(c) {
			t.Errorf("with a %s, claims are said not to equal themselves", name)
		}
	}
}
