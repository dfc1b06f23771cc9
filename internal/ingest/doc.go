// Package ingest turns what arrives over OTLP into windows and vitals.
//
// A [Receiver] takes the logs service of OTLP over gRPC and over HTTP, in
// protobuf and in JSON, compressed or not. It serves neither by itself: its
// caller owns listeners, TLS and authentication. [Decode] does the turning, and
// also serves recordings.
//
// Everything that arrives is taken to be hostile. Requests are bounded in size,
// number and time. Records are checked one by one: a bad one is refused with one
// of a small fixed list of reasons, and costs no other. What is accepted can be
// trusted in form (names are short printable text, counts are not negative, a
// window ends after it starts), but not in sense: a clock may be wrong by
// years, and the text of a key may hold any bytes.
package ingest
