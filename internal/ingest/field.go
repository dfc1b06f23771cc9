package ingest

import (
	"math"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
)

// field sets one field of a T to the value of an attribute, or returns why it
// cannot.
type field[T any] func(dst *T, v *commonpb.AnyValue) (reason string)

// integer is a field that holds a count, an instant or a duration: none is ever
// negative.
func integer[T any, N ~int | ~int64 | ~uint16 | ~uint32 | ~uint64](at func(*T) *N) field[T] {
	return func(dst *T, v *commonpb.AnyValue) string {
		i, ok := v.GetValue().(*commonpb.AnyValue_IntValue)
		if !ok {
			return ReasonWrongType
		}
		n := N(i.IntValue)
		if i.IntValue < 0 || int64(n) != i.IntValue {
			return ReasonOutOfRange
		}
		*at(dst) = n
		return ""
	}
}

// name is a field that holds a short printable text.
func name[T any](limit int, at func(*T) *string) field[T] {
	return func(dst *T, v *commonpb.AnyValue) string {
		s, ok := v.GetValue().(*commonpb.AnyValue_StringValue)
		if !ok {
			return ReasonWrongType
		}
		if reason := checkName(s.StringValue, limit); reason != "" {
			return reason
		}
		*at(dst) = s.StringValue
		return ""
	}
}

// document is a field that holds a text of a form of its own, checked later.
func document[T any](limit int, at func(*T) *string) field[T] {
	return func(dst *T, v *commonpb.AnyValue) string {
		s, ok := v.GetValue().(*commonpb.AnyValue_StringValue)
		if !ok {
			return ReasonWrongType
		}
		if len(s.StringValue) > limit {
			return ReasonTooLong
		}
		*at(dst) = s.StringValue
		return ""
	}
}

// octets is a field that may hold any bytes.
func octets[T any](limit int, set func(*T, []byte)) field[T] {
	return func(dst *T, v *commonpb.AnyValue) string {
		b, ok := v.GetValue().(*commonpb.AnyValue_BytesValue)
		if !ok {
			return ReasonWrongType
		}
		if len(b.BytesValue) > limit {
			return ReasonTooLong
		}
		set(dst, b.BytesValue)
		return ""
	}
}

// real is a field that holds a finite number that is not negative.
func real[T any](at func(*T) *float64) field[T] {
	return func(dst *T, v *commonpb.AnyValue) string {
		d, ok := v.GetValue().(*commonpb.AnyValue_DoubleValue)
		if !ok {
			return ReasonWrongType
		}
		if !(d.DoubleValue >= 0 && d.DoubleValue <= math.MaxFloat64) {
			return ReasonOutOfRange
		}
		*at(dst) = d.DoubleValue
		return ""
	}
}

// flag is a field that holds a truth.
func flag[T any](at func(*T) *bool) field[T] {
	return func(dst *T, v *commonpb.AnyValue) string {
		b, ok := v.GetValue().(*commonpb.AnyValue_BoolValue)
		if !ok {
			return ReasonWrongType
		}
		*at(dst) = b.BoolValue
		return ""
	}
}
