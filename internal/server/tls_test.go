package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/config"
)

// certificate makes a certificate that signs itself, and writes it and its key
// into files.
func certificate(t *testing.T) (certFile, keyFile string, pair tls.Certificate, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	certFile, keyFile = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	for path, text := range map[string][]byte{certFile: certPEM, keyFile: keyPEM} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if pair, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return certFile, keyFile, pair, pool
}

func TestReceiversSpeakTLSAndAskForClientCertificates(t *testing.T) {
	certFile, keyFile, pair, pool := certificate(t)
	o := options(t)
	o.Config = config.Default()
	o.Config.OTLP.TLS = &config.ServerTLS{CertFile: certFile, KeyFile: keyFile, ClientCAFile: certFile}
	s := start(t, o)

	for name, c := range map[string]struct {
		tls  *tls.Config
		want string // in the error; none if empty
	}{
		"with the right certificate": {&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}, ""},
		"without a certificate":      {&tls.Config{RootCAs: pool}, "certificate required"},
		"without trust":              {&tls.Config{Certificates: []tls.Certificate{pair}}, "unknown authority"},
	} {
		transport := &http.Transport{TLSClientConfig: c.tls, DisableKeepAlives: true}
		r, err := (&http.Client{Transport: transport}).Post("https://"+s.Addresses().HTTP.String()+"/v1/logs", "application/json", strings.NewReader("{}"))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("HTTP %s: %v", name, err)
		case c.want == "" && r.StatusCode != http.StatusOK:
			t.Errorf("HTTP %s: %s", name, r.Status)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("HTTP %s: %v: want %q", name, err, c.want)
		}
		if err == nil {
			r.Body.Close()
		}
		c.tls.NextProtos = []string{"h2"}
		if err := greet(s.Addresses().GRPC.String(), c.tls); (err == nil) != (c.want == "") {
			t.Errorf("gRPC %s: %v: want %q", name, err, c.want)
		}
	}
}

// greet makes a TLS connection and reads a byte of what the server says: with
// TLS 1.3 a server's refusal of a certificate comes after the handshake.
func greet(address string, c *tls.Config) error {
	conn, err := tls.Dial("tcp", address, c)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}
