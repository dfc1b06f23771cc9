package ingest

import (
	"errors"
	"testing"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// TestEveryMessageIsWeighed holds the hand-written shape of a request against the
// generated one: a message it does not know would be a way around the bound.
func TestEveryMessageIsWeighed(t *testing.T) {
	t.Parallel()
	seen := map[protoreflect.FullName]bool{}
	var walk func(d protoreflect.MessageDescriptor, kind messageKind)
	walk = func(d protoreflect.MessageDescriptor, kind messageKind) {
		if seen[d.FullName()] {
			return
		}
		seen[d.FullName()] = true
		fields := d.Fields()
		for i := range fields.Len() {
			f := fields.Get(i)
			child, ok := kind[protowire.Number(f.Number())]
			if isMessage := f.Kind() == protoreflect.MessageKind; isMessage != ok {
				t.Errorf("%s: a message %v, weighed %v", f.FullName(), isMessage, ok)
			} else if isMessage {
				walk(f.Message(), child)
			}
		}
	}
	walk((&collogspb.ExportLogsServiceRequest{}).ProtoReflect().Descriptor(), requestKind)
}

func TestWeighCountsAtEveryLevel(t *testing.T) {
	t.Parallel()
	record := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), []byte{0x32, 0, 0x08, 7, 0x32, 0}) // two attributes
	scope := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), record)
	b := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), scope)
	if err := weighProto(b, 5); err != nil {
		t.Error(err)
	}
	if err := weighProto(b, 4); !errors.Is(err, errTooDense) {
		t.Errorf("error is %v: want %v", err, errTooDense)
	}
}
