//go:build race

package scenarios

// racing: the race detector has sync.Pool forget at random, so that what it keeps is allocated again and again.
const racing = true
