package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inquest-dev/inquest/internal/desk"
)

// Budget is the most bytes that an answer takes: its text and its structured content, as JSON.
const Budget = 12_000

// errorRoom is the most bytes of an error's text.
const errorRoom = 1_200

// describe makes the description of a tool: what it is for, what it does beside answering, what
// bounds it, and what comes back. All tools have the same annotations: none changes anything of
// the user's, a second call does what the first did, and nothing leaves the machine.
func describe(name, title, use, effects, limits, returns string) *mcp.Tool {
	no := false
	return &mcp.Tool{
		Name: name, Title: title,
		Description: strings.Join([]string{use, "Side effects: " + effects, "Limits: " + limits, "Returns: " + returns}, "\n"),
		Annotations: &mcp.ToolAnnotations{
			Title: title, ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no,
		},
	}
}

// A failure is an error that says what to do about it. Its cause may have text from outside in
// it, and is quoted.
type failure struct {
	says  string // what was done, to what, and what to do now
	cause error  // nil where says is all
}

func (f *failure) Error() string {
	if f.cause == nil {
		return f.says
	}
	return f.says + " Cause: " + quote(f.cause.Error(), 400)
}

func (f *failure) Unwrap() error { return f.cause }

func failed(cause error, format string, args ...any) error {
	return &failure{fmt.Sprintf(format, args...), cause}
}

// add offers a tool. run gets checked arguments and a context that ends with the call and with
// the server; it returns the answer as a value and as text.
func add[In, Out any](s *server, t *mcp.Tool, run func(context.Context, *mcp.CallToolRequest, In) (Out, string, error)) {
	mcp.AddTool(s.mcp, t, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
		var none Out
		ctx, stop := s.within(ctx)
		defer stop()
		out, text, err := guarded(t.Name, func() (Out, string, error) { return run(ctx, req, in) })
		if err != nil {
			return nil, none, sayError(ctx, err)
		}
		if !fits(out, text) {
			return nil, none, failed(nil, "The answer of %s was larger than the %d bytes that an answer may have. Ask for less: a smaller window, fewer sections, one page.", t.Name, Budget)
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, out, nil
	})
}

// guarded calls run, and makes an error of its panic: a file that inquest fails over ends the call,
// not the server with its other calls and cases.
func guarded[Out any](tool string, run func() (Out, string, error)) (out Out, text string, err error) {
	defer func() {
		if x := recover(); x != nil {
			err = failed(fmt.Errorf("%v", x), "inquest itself failed in %s; its other tools and cases go on. Name fewer files to find the one over which it does, and report it.", tool)
		}
	}()
	return run()
}

// within is ctx until the server ends.
func (s *server) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if s.Done != nil {
		go func() {
			select {
			case <-s.Done:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return ctx, cancel
}

// sayError makes of any error one that says what to do.
func sayError(ctx context.Context, err error) error {
	var f *failure
	switch {
	case errors.As(err, &f):
		return f
	case ctx.Err() != nil, errors.Is(err, context.Canceled):
		return failed(nil, "The call was cancelled before it had an answer. Nothing was changed; call again to ask again.")
	case errors.Is(err, desk.ErrNoCase):
		return failed(nil, "There is no such case: it was never there, or has been removed since. Call diagnose with paths or text to make one.")
	case errors.Is(err, desk.ErrClosed):
		return failed(nil, "inquest mcp is ending. Start it again, and diagnose again: its cases are gone with it.")
	case errors.Is(err, desk.ErrTooMany), errors.Is(err, desk.ErrTooLarge):
		return failed(err, "More was asked for than is taken at once. Wait for the cases that are being read (diagnose with case), or name fewer and smaller paths.")
	}
	return failed(err, "It could not be answered. Check what was named, and call again with less or with other paths.")
}

// bound keeps errors within the budget, those too that the protocol's library makes of arguments
// that do not fit a schema: they repeat what was sent.
func bound(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		r, ok := res.(*mcp.CallToolResult)
		if err != nil || !ok || r == nil || !r.IsError {
			return res, err
		}
		for _, c := range r.Content {
			t, ok := c.(*mcp.TextContent)
			if !ok {
				continue
			}
			if misfit, ok := strings.CutPrefix(t.Text, "validating \"arguments\": "); ok {
				t.Text = "The arguments do not fit the tool's input schema. Correct them and call again. Cause: " + quote(misfit, 400)
			}
			t.Text = cut(bounded(t.Text, errorRoom), errorRoom)
		}
		return r, nil
	}
}

// lines puts what is said on lines of its own, and leaves out what is empty.
type lines struct{ b strings.Builder }

func (l *lines) add(format string, args ...any) {
	if l.b.Len() > 0 {
		l.b.WriteByte('\n')
	}
	fmt.Fprintf(&l.b, format, args...)
}

// with adds the line only where the last argument, a text, is not empty.
func (l *lines) with(format string, args ...any) {
	if s, ok := args[len(args)-1].(string); ok && s == "" {
		return
	}
	l.add(format, args...)
}

func (l *lines) String() string { return l.b.String() }

// fill takes items from the one at index from on for as long as they, as JSON and as lines of
// text, have room together in what an answer may have. It returns the index of the first that
// has none, and always takes one where there is one.
func fill[T any](from, n, count, room int, item func(i int) (T, string)) (taken []T, text []string, next int) {
	taken = []T{}
	for next = from; next < n && (count <= 0 || len(taken) < count); next++ {
		it, line := item(next)
		data, err := json.Marshal(it)
		if err != nil {
			continue
		}
		size := len(data) + 1 + jsonSize(line) + 2
		if room -= size; room < 0 && len(taken) > 0 {
			return taken, text, next
		}
		taken, text = append(taken, it), append(text, line)
	}
	return taken, text, next
}

// pageRoom is what the items of a page have together: half as value, half as text, less what
// stands around them.
const pageRoom = Budget - 2_400

// fits reports whether an answer keeps the budget.
func fits(out any, text string) bool {
	data, err := json.Marshal(out)
	return err == nil && len(data)+jsonSize(text) <= Budget-200
}

// headSize is the bytes that an answer takes before its items are in it.
func headSize(out any) int {
	data, err := json.Marshal(out)
	if err != nil {
		return Budget
	}
	return len(data)
}
