package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	maxMessage = 8 << 20  // bytes of a line
	longKept   = 64 << 10 // of a longer one, to find whose answer it is
)

// batched is the one version of the protocol in which a line may hold several messages.
const batched = "2025-03-26"

// Streams is the protocol on standard streams: a message a line. A line that is no message, or one
// longer than maxMessage, is answered with an error of JSON-RPC and the session goes on; the
// protocol's library would end it, and the cases with it.
func Streams(in io.Reader, out io.Writer) mcp.Transport {
	w := &oneWriter{w: out}
	return &mcp.IOTransport{Reader: io.NopCloser(&messages{in: bufio.NewReaderSize(in, 64<<10), refused: w}), Writer: w}
}

// A oneWriter lets whole lines of several writers through, one after the other. It stays open.
type oneWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (w *oneWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.Write(p)
}

func (*oneWriter) Close() error { return nil }

// Messages reads the lines of in that are messages, and answers the others.
type messages struct {
	in      *bufio.Reader
	refused io.Writer
	line    []byte // what is not read of it yet
	batches bool   // the client speaks the version that has them
}

func (m *messages) Read(p []byte) (int, error) {
	for len(m.line) == 0 {
		line, long, err := m.next()
		switch {
		case err != nil && len(line) == 0 && !long:
			return 0, err
		case long:
			err = m.refuse(line, jsonrpc.CodeInvalidRequest, fmt.Sprintf("the message is longer than %s; name a file instead of sending its text", sizeWords(maxMessage)))
		case len(bytes.TrimSpace(line)) == 0:
			err = nil
		case !json.Valid(line):
			err = m.refuse(nil, jsonrpc.CodeParseError, "the line is not JSON; a message is one line")
		case !m.message(line):
			err = m.refuse(line, jsonrpc.CodeInvalidRequest, "the line is no message of JSON-RPC 2.0")
		default:
			m.line, err = append(line, '\n'), nil
		}
		if err != nil {
			return 0, err
		}
	}
	n := copy(p, m.line)
	m.line = m.line[n:]
	return n, nil
}

// next is the next line without its end. One that is too long is read to its end, and what it
// begins with is kept.
func (m *messages) next() (line []byte, long bool, err error) {
	for {
		part, err := m.in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxMessage; long {
			line = line[:min(len(line), longKept)]
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimRight(line, "\r\n"), long, err
		}
	}
}

// message reports whether a line is one message, or a batch of some where there are batches.
func (m *messages) message(line []byte) bool {
	var batch []json.RawMessage
	if bytes.HasPrefix(bytes.TrimSpace(line), []byte("[")) {
		if !m.batches || json.Unmarshal(line, &batch) != nil || len(batch) == 0 {
			return false
		}
	} else {
		batch = append(batch, line)
	}
	for _, one := range batch {
		msg, err := jsonrpc.DecodeMessage(one)
		if err != nil {
			return false
		}
		if r, ok := msg.(*jsonrpc.Request); ok && r.Method == "initialize" {
			var hello struct {
				Version string `json:"protocolVersion"`
			}
			m.batches = json.Unmarshal(r.Params, &hello) == nil && hello.Version == batched
		}
	}
	return true
}

// refuse answers a line that begins so.
func (m *messages) refuse(line []byte, code int64, says string) error {
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": idOf(line), "error": map[string]any{"code": code, "message": says}})
	if err != nil {
		return err
	}
	_, err = m.refused.Write(append(b, '\n'))
	return err
}

// idOf is the id of the request that begins so, where it is a word or a number and stands in what
// there is; else nil.
func idOf(begin []byte) any {
	d := json.NewDecoder(bytes.NewReader(begin))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return nil
		}
		if key != "id" {
			continue
		}
		var id any
		if json.Unmarshal(value, &id) == nil {
			switch id.(type) {
			case string, float64:
				return value
			}
		}
		return nil
	}
	return nil
}
