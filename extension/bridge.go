package main

/*
#cgo CFLAGS: -I${SRCDIR}/../c_shim -Wall -Wextra -Werror
#include "bridge.h"

int aidb_go_fd(void);
int aidb_go_request(uint32_t kind, uint64_t run, uint32_t seq, const void *body, size_t len);
AidbMsg *aidb_go_next(void);

static void *aidb_msg_data(AidbMsg *m) { return m->data; }

#ifdef __GLIBC__
#include <malloc.h>
static int trim_heap(void) { return malloc_trim(0); }
#else
static int trim_heap(void) { return 0; }
#endif
*/
import "C"

import (
	"errors"
	"os"
	"unsafe"

	"aidb/extension/internal/seam"
)

// The only file of the Go library that knows C: it copies messages in and out and decides nothing.

// sendRequest queues a request for the main thread.
func sendRequest(kind uint32, run uint64, seq uint32, body []byte) error {
	var p unsafe.Pointer
	if len(body) > 0 {
		p = unsafe.Pointer(&body[0])
	}
	if C.aidb_go_request(C.uint32_t(kind), C.uint64_t(run), C.uint32_t(seq), p, C.size_t(len(body))) != 0 {
		return errors.New("message too large or out of memory")
	}
	return nil
}

// nextMessage takes the oldest message of the main thread, if there is one.
func nextMessage() (seam.Message, bool) {
	m := C.aidb_go_next()
	if m == nil {
		return seam.Message{}, false
	}
	defer C.free(unsafe.Pointer(m))
	return seam.Message{
		Kind: uint32(m.kind), Run: uint64(m.run), Seq: uint32(m.seq),
		Body: C.GoBytes(C.aidb_msg_data(m), C.int(m.len)),
	}, true
}

// trimHeap gives back what C has freed, where the C library keeps it (see warm.c).
func trimHeap() { _ = C.trim_heap() }

// onWakeUp calls f now and whenever the main thread has queued something, for the life of the process. The runtime's
// poller waits for the eventfd, so no thread is held. Nothing is ever read from it: the poller reports every write, and
// one that comes while f runs is kept for when it returns.
func onWakeUp(f func()) error {
	wake, err := os.NewFile(uintptr(C.aidb_go_fd()), "aidb wake-ups").SyscallConn()
	if err != nil {
		return err
	}
	return wake.Read(func(uintptr) bool {
		f()
		return false
	})
}
