package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// agent is a command of the scripts: it starts inquest mcp with its arguments, as a client would,
// and calls the tools that standard input names, one a line with its arguments in JSON. CASE
// stands for the case of the answer before, REF for the place of the first fault in it. It prints
// what the tools say; then it ends the server and prints with what status that ended.
func agent() {
	if err := new(agency).run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

type agency struct {
	session   *mcp.ClientSession
	case_, at string
}

func (a *agency) run(ctx context.Context, args []string) error {
	cmd := exec.Command("inquest", append([]string{"mcp"}, args...)...)
	overHTTP := len(args) > 0 && strings.HasPrefix(args[0], "--http")
	var err error
	var end func() error
	if overHTTP {
		end, err = a.overHTTP(ctx, cmd)
	} else {
		end, err = a.overStreams(ctx, cmd)
	}
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		tool, in, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if tool == "" {
			continue
		}
		if err := a.call(ctx, tool, in); err != nil {
			return err
		}
	}
	if err := end(); err != nil {
		return err
	}
	fmt.Println("the server ended with status", cmd.ProcessState.ExitCode())
	return nil
}

// overStreams speaks on the server's standard streams, and ends it by closing its input.
func (a *agency) overStreams(ctx context.Context, cmd *exec.Cmd) (func() error, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if err := a.connect(ctx, &mcp.IOTransport{Reader: out, Writer: in}); err != nil {
		return nil, err
	}
	return func() error {
		in.Close()
		rest, _ := io.ReadAll(out)
		if len(rest) > 0 {
			return fmt.Errorf("standard output holds %q behind the last answer", rest)
		}
		return ended(cmd.Wait())
	}, nil
}

// overHTTP reads the address and the token that the server prints, and ends it as Ctrl-C does.
func (a *agency) overHTTP(ctx context.Context, cmd *exec.Cmd) (func() error, error) {
	errs, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	said := bufio.NewReader(errs)
	first, err := said.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("%s: %w", first, ended(cmd.Wait()))
	}
	second, err := said.ReadString('\n')
	if err != nil {
		return nil, err
	}
	address := strings.TrimSpace(strings.TrimPrefix(first, "inquest mcp listens on "))
	_, token, _ := strings.Cut(strings.TrimSpace(second), "Bearer ")
	res, err := http.Post(address, "application/json", strings.NewReader("{}"))
	if err != nil {
		return nil, err
	}
	res.Body.Close()
	fmt.Println("without the token:", res.StatusCode)
	client := &http.Client{Transport: withToken(token)}
	if err := a.connect(ctx, &mcp.StreamableClientTransport{Endpoint: address, HTTPClient: client}); err != nil {
		return nil, err
	}
	return func() error {
		if runtime.GOOS == "windows" { // has no interrupt that one process sends another
			a.session.Close()
			return ended(errors.Join(cmd.Process.Kill(), cmd.Wait()))
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			return err
		}
		rest, _ := io.ReadAll(said)
		if len(rest) > 0 {
			return fmt.Errorf("standard error holds %q", rest)
		}
		return ended(cmd.Wait())
	}, nil
}

// ended is err where it says more than a status.
func ended(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

type withToken string

func (t withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(t))
	return http.DefaultTransport.RoundTrip(r)
}

func (a *agency) connect(ctx context.Context, tr mcp.Transport) error {
	s, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(ctx, tr, nil)
	if err != nil {
		return err
	}
	a.session = s
	list, err := s.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	var names []string
	for _, t := range list.Tools {
		names = append(names, t.Name)
	}
	fmt.Println("tools:", strings.Join(names, " "))
	return nil
}

func (a *agency) call(ctx context.Context, tool, in string) error {
	res, err := a.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(strings.NewReplacer("CASE", a.case_, "REF", a.at).Replace(in))})
	if err != nil {
		return fmt.Errorf("%s: %w", tool, err)
	}
	if res.IsError {
		fmt.Print("error: ")
	}
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			fmt.Println(t.Text)
		}
	}
	var got struct {
		Case    string
		Verdict *struct {
			First *struct{ At struct{ Ref string } } `json:"first_fault"`
		}
	}
	data, err := json.Marshal(res.StructuredContent)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &got); err == nil && got.Case != "" {
		a.case_ = got.Case
		if got.Verdict != nil && got.Verdict.First != nil {
			a.at = got.Verdict.First.At.Ref
		}
	}
	return nil
}
