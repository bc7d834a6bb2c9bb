package world

import "sync"

// window is how many bytes a connection holds in one direction before a
// writer has to wait.
const window = 64 << 10

// The sizes of a buffer: what net/http writes at once, a middle, and the window.
const (
	smallBuffer  = 4 << 10
	mediumBuffer = 16 << 10
)

// Buffers are pooled by size. They go back whenever they run empty, so an idle
// connection holds none. The pools keep pointers to arrays because a slice
// header would have to be allocated for each Put.
var (
	smallPool  = sync.Pool{New: func() any { return new([smallBuffer]byte) }}
	mediumPool = sync.Pool{New: func() any { return new([mediumBuffer]byte) }}
	largePool  = sync.Pool{New: func() any { return new([window]byte) }}
)

// buffer holds the bytes of one direction that have arrived and are unread.
// The zero value is empty. The owner's lock guards it.
type buffer struct {
	mem  []byte // from a pool, or nil
	r, w int    // mem[r:w] is unread
}

func (b *buffer) len() int { return b.w - b.r }

// room is how many bytes still fit into the window.
func (b *buffer) room() int { return window - b.len() }

// write takes as much of p as the window has room for.
func (b *buffer) write(p []byte) int {
	p = p[:min(len(p), b.room())]
	if len(p) > len(b.mem)-b.w {
		b.grow(b.len() + len(p))
	}
	b.w += copy(b.mem[b.w:], p)
	return len(p)
}

// grow moves the unread bytes to the front of a buffer that holds size bytes.
func (b *buffer) grow(size int) {
	mem := b.mem
	if size > len(mem) {
		mem = takeBuffer(size)
	}
	n := copy(mem, b.mem[b.r:b.w])
	if len(mem) != len(b.mem) {
		giveBuffer(b.mem)
	}
	b.mem, b.r, b.w = mem, 0, n
}

func (b *buffer) read(p []byte) int {
	n := copy(p, b.mem[b.r:b.w])
	b.r += n
	if b.r == b.w {
		b.discard()
	}
	return n
}

// discard drops what is unread and gives the memory back.
func (b *buffer) discard() {
	giveBuffer(b.mem)
	*b = buffer{}
}

func takeBuffer(size int) []byte {
	switch {
	case size <= smallBuffer:
		return smallPool.Get().(*[smallBuffer]byte)[:]
	case size <= mediumBuffer:
		return mediumPool.Get().(*[mediumBuffer]byte)[:]
	default:
		return largePool.Get().(*[window]byte)[:]
	}
}

func giveBuffer(mem []byte) {
	switch len(mem) {
	case smallBuffer:
		smallPool.Put((*[smallBuffer]byte)(mem))
	case mediumBuffer:
		mediumPool.Put((*[mediumBuffer]byte)(mem))
	case window:
		largePool.Put((*[window]byte)(mem))
	}
}
