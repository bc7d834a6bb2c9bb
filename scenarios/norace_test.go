//go:build !race

package scenarios

const racing = false
