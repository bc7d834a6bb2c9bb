package faults_test

import (
	"compress/gzip"
	"context"
	"io"
	"syscall"

	"github.com/retrychaos/retrychaos/faults"
)

// A sight is what the documentation says that a real net/http client sees.
type sight struct {
	text   string
	where  string
	is     error // errors.Is finds it; nil: no error, or one of decoding
	status int   // of the response, where there is one
}

func sights() []sight {
	deadline, eof, short, reset := context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, error(syscall.ECONNRESET)
	return []sight{
		{"latency delay=20ms", faults.WhereNowhere, nil, 200},
		{"latency delay=1h", faults.WhereDo, deadline, 0},
		{"hang", faults.WhereDo, deadline, 0},
		{"empty_response", faults.WhereDo, eof, 0},
		{"connection_reset", faults.WhereDo, reset, 0},
		{"truncated_body end=fin", faults.WhereBodyRead, short, 200},
		{"truncated_body end=rst", faults.WhereBodyRead, reset, 200},
		{"stall_body", faults.WhereBodyRead, deadline, 200},
		{"stall_body delay=20ms end=fin", faults.WhereBodyRead, short, 200},
		{"stall_body delay=20ms end=rst", faults.WhereBodyRead, reset, 200},
		{"stall_body delay=20ms end=normal", faults.WhereNowhere, nil, 200},
		{"503", faults.WhereNowhere, nil, 503},
		{"malformed_json variant=html", faults.WhereDecoding, nil, 200},
		{"slow_read rate=1KiB", faults.WhereNowhere, nil, 200},
		{"slow_read rate=1", faults.WhereDo, deadline, 0},
		{"partial_request end=hang", faults.WhereDo, deadline, 0},
		{"partial_request end=fin", faults.WhereDo, eof, 0},
		{"partial_request end=rst", faults.WhereDo, reset, 0},
		{"early_response", faults.WhereNowhere, nil, 413},
		{"early_response code=503 end=fin", faults.WhereNowhere, nil, 503},
		{"expect_continue_ignored", faults.WhereNowhere, nil, 200},
		{"expect_continue_417", faults.WhereNowhere, nil, 417},
		{"expect_continue_error", faults.WhereNowhere, nil, 503},
		{"truncated_head end=fin", faults.WhereDo, short, 0},
		{"truncated_head end=rst", faults.WhereDo, short, 0},
		{"truncated_head end=hang", faults.WhereDo, deadline, 0},
		{"garbage_response variant=banner", faults.WhereDo, says("malformed HTTP response"), 0},
		{"garbage_response variant=html", faults.WhereDo, says("malformed HTTP status code"), 0},
		{"garbage_response variant=binary", faults.WhereDo, says("malformed HTTP response"), 0},
		{"bad_status_line variant=no_code", faults.WhereDo, says("malformed HTTP response"), 0},
		{"bad_status_line variant=word_code", faults.WhereDo, says("malformed HTTP status code"), 0},
		{"bad_status_line variant=long_code", faults.WhereDo, says("malformed HTTP status code"), 0},
		{"bad_status_line variant=protocol", faults.WhereDo, says("malformed HTTP version"), 0},
		{"header_too_large variant=line", faults.WhereDo, says("exceeded"), 0},
		{"header_too_large variant=lines", faults.WhereDo, says("exceeded"), 0},
		{"two_content_lengths", faults.WhereDo, says("multiple Content-Length"), 0},
		{"interim count=3", faults.WhereNowhere, nil, 200},
		{"interim then=503", faults.WhereNowhere, nil, 503},
		{"interim end=hang", faults.WhereDo, deadline, 0},
		{"interim end=fin", faults.WhereDo, short, 0},
		{"interim end=rst", faults.WhereDo, reset, 0},
		{"broken_stream end=fin", faults.WhereBodyRead, short, 200},
		{"broken_stream end=rst", faults.WhereBodyRead, reset, 200},
		{"broken_stream end=hang", faults.WhereBodyRead, deadline, 200},
		{"missing_final_chunk end=fin", faults.WhereBodyRead, short, 200},
		{"missing_final_chunk end=rst", faults.WhereBodyRead, reset, 200},
		{"missing_final_chunk end=hang", faults.WhereBodyRead, deadline, 200},
		{"malformed_chunk variant=size", faults.WhereBodyRead, says("invalid byte in chunk length"), 200},
		{"malformed_chunk variant=length", faults.WhereBodyRead, says("malformed chunked encoding"), 200},
		{"malformed_chunk variant=huge", faults.WhereBodyRead, says("http chunk length too large"), 200},
		{"content_length_short", faults.WhereDecoding, nil, 200},
		{"content_length_long end=fin", faults.WhereBodyRead, short, 200},
		{"content_length_long end=rst", faults.WhereBodyRead, reset, 200},
		{"content_length_long end=hang", faults.WhereBodyRead, deadline, 200},
		{"dribble delay=1ms", faults.WhereNowhere, nil, 200},
		{"dribble delay=1s", faults.WhereBodyRead, deadline, 200},
		{"bandwidth rate=1MiB size=20KiB", faults.WhereNowhere, nil, 200},
		{"bandwidth rate=10", faults.WhereBodyRead, deadline, 200},
		{"slow_close delay=20ms", faults.WhereNowhere, nil, 200},
		{"slow_close", faults.WhereBodyRead, deadline, 200},
		{"gzip_truncated", faults.WhereBodyRead, short, 200},
		{"gzip_corrupted variant=checksum", faults.WhereBodyRead, gzip.ErrChecksum, 200},
		{"gzip_corrupted variant=header", faults.WhereBodyRead, gzip.ErrHeader, 200},
		{"rate_limit quota=1 window=3s", faults.WhereNowhere, nil, 429},
		{"redirect", faults.WhereNowhere, nil, 200},
		{"redirect code=308 to=other", faults.WhereNowhere, nil, 200},
	}
}

// says is an error that has no type or value to know it by, only its text.
type says string

func (s says) Error() string { return string(s) }
