package faults

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// An Authority is a certificate authority made for one run: it stands behind the server's certificate and
// behind the broken ones of tls_bad_certificate. Its keys are random, whatever the seed of the run: nothing
// that is decided or reported depends on them. It is safe for concurrent use.
type Authority struct {
	name  string
	root  *x509.Certificate
	key   crypto.Signer
	good  tls.Certificate
	made  time.Time
	alien *Authority // that nobody trusts
}

// validity is how long a certificate is good for before and after its making: longer than any run.
const validity = 30 * 24 * time.Hour

// wrongName is the name in a certificate of variant wrong_name (reserved by RFC 6761 §6.4).
const wrongName = "elsewhere.invalid"

// NewAuthority makes an authority and a server certificate for name and for 127.0.0.1. They are valid
// around the present of the calling goroutine's clock, which in a bubble is the virtual one.
func NewAuthority(name string) (*Authority, error) {
	a, err := newAuthority(name, "retrychaos run")
	if err != nil {
		return nil, err
	}
	if a.alien, err = newAuthority(name, "retrychaos stranger"); err != nil {
		return nil, err
	}
	a.good, err = a.issue(name, a.made.Add(validity))
	return a, err
}

func newAuthority(name, subject string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("faults: making a key: %w", err)
	}
	a := &Authority{name: name, key: key, made: time.Now()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: subject},
		NotBefore: a.made.Add(-validity), NotAfter: a.made.Add(validity),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("faults: making an authority: %w", err)
	}
	a.root, err = x509.ParseCertificate(der)
	return a, err
}

// issue makes a certificate for a name and 127.0.0.1, or for wrongName alone.
func (a *Authority) issue(name string, until time.Time) (tls.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: a.made.Add(-validity), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if name != wrongName {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.root, a.key.Public(), a.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("faults: making a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.key}, nil
}

// Pool holds the authority, for those who are to trust it.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.root)
	return p
}

// PEM is the authority's certificate as a file holds it.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.root.Raw})
}

// Server is the configuration of a server that is well. It speaks HTTP/1.1 only.
func (a *Authority) Server() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{a.good}, NextProtos: []string{HTTP1}}
}

// Variants of tls_bad_certificate.
const (
	certUntrusted = "untrusted"
	certExpired   = "expired"
	certWrongName = "wrong_name"
)

func (a *Authority) broken(variant string) (tls.Certificate, error) {
	switch variant {
	case certUntrusted:
		return a.alien.issue(a.name, a.made.Add(validity))
	case certExpired:
		return a.issue(a.name, a.made.Add(-time.Hour))
	case certWrongName:
		return a.issue(wrongName, a.made.Add(validity))
	}
	return tls.Certificate{}, fmt.Errorf("faults: no variant %q of a bad certificate", variant)
}
