package ingest

import (
	"bytes"
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// A log record, or an attribute, can be two bytes on the wire and over a hundred
// in memory: a request of 16 MiB, which gzip makes 16 KiB of, would take 2 GiB.
// So messages are counted before they are decoded. A window of ours has one for
// each 18 bytes or so.
const bytesPerMessage = 16

// maxDepth bounds how deep messages nest: attributes of ours take six levels.
const maxDepth = 64

var (
	errTooDense = errors.New("the body holds too many messages for its size limit")
	errTooDeep  = errors.New("the body is nested too deep")
)

// messageKind says which fields of a protobuf message are messages themselves.
type messageKind map[protowire.Number]messageKind

// requestKind is the logs request of OTLP, as far as it is made of messages.
var requestKind = func() messageKind {
	value, keyValue := messageKind{}, messageKind{}
	keyValue[2] = value                          // KeyValue.value
	value[5] = messageKind{1: value}             // AnyValue.array_value, ArrayValue.values
	value[6] = messageKind{1: keyValue}          // AnyValue.kvlist_value, KeyValueList.values
	resource := messageKind{1: keyValue, 3: {}}  // Resource.attributes, .entity_refs
	scope := messageKind{3: keyValue}            // InstrumentationScope.attributes
	record := messageKind{5: value, 6: keyValue} // LogRecord.body, .attributes
	scopeLogs := messageKind{1: scope, 2: record}
	resourceLogs := messageKind{1: resource, 2: scopeLogs}
	return messageKind{1: resourceLogs}
}()

// weighProto fails if the protobuf b holds more than limit messages, or is
// nested too deep. What is no protobuf at all is for the decoder to refuse.
func weighProto(b []byte, limit int) error {
	_, err := weigh(b, requestKind, limit, 0)
	return err
}

// weigh takes the messages in b off limit.
func weigh(b []byte, kind messageKind, limit, depth int) (left int, err error) {
	if depth > maxDepth {
		return 0, errTooDeep
	}
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return limit, nil
		}
		b = b[n:]
		if typ != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
				return limit, nil
			}
			b = b[n:]
			continue
		}
		inner, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return limit, nil
		}
		b = b[n:]
		if child, ok := kind[num]; ok {
			if limit--; limit < 0 {
				return 0, errTooDense
			}
			if limit, err = weigh(inner, child, limit, depth+1); err != nil {
				return 0, err
			}
		}
	}
	return limit, nil
}

// weighJSON is weighProto for JSON, in which a message is an object. Braces in
// texts count too, for which there is room.
func weighJSON(b []byte, limit int) error {
	if bytes.Count(b, []byte("{")) > limit {
		return errTooDense
	}
	return nil
}
