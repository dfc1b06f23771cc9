// Package e2e tests the main path with nothing made up: processes of a real
// service on a real Redis under load, the exporter as it is built, and a real
// Alertmanager.
//
//	go test -count=1 ./e2e
//	go test -count=1 -run Latency ./e2e -args -runs=30
package e2e
