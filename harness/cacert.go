package harness

import (
	"errors"
	"os"
)

// cacert is a file with a certificate authority, for a process; "" for none.
type cacert string

// writeCA writes a certificate authority where a process can read it.
func writeCA(pem []byte) (cacert, error) {
	f, err := os.CreateTemp("", "retrychaos-*.pem")
	if err != nil {
		return "", err
	}
	_, err = f.Write(pem)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return cacert(f.Name()), nil
}

// Close removes the file.
func (c cacert) Close() error {
	if c == "" {
		return nil
	}
	return os.Remove(string(c))
}
